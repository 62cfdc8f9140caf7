"""Algorithm 3 against a slow reference, and what its sequence promises."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ppsyn.benchmark.paper.merge_split import merge_sequence
from ppsyn.privacy.partition import Partition, finest

UNHURRIED = settings(deadline=None, max_examples=50)  # the first call compiles
elements = st.sampled_from([0.0, -0.0]) | st.integers(0, 300).map(float) | st.floats(0, 1e6)
one_way = arrays(np.float64, st.integers(1, 40), elements=elements)


def error_of(expected: np.ndarray, partition: Partition) -> float:
    """The reconstruction error, as it is defined."""
    return float(np.abs(expected.ravel() - partition.spread_evenly(partition.sum_expected(expected))).sum())


def deviation(counts: list[float]) -> float:
    """The reconstruction error of one group."""
    return float(np.abs(np.array(counts) - np.mean(counts)).sum())


def slow_errors(expected: np.ndarray) -> list[float]:
    """RE_t by trying every merge at every step."""
    intervals = [[count] for count in sorted(expected.tolist())]
    errors = [0.0]
    while len(intervals) > 1:
        pairs = list(pairwise(intervals))
        rises = [deviation(left + right) - deviation(left) - deviation(right) for left, right in pairs]
        at = int(np.argmin(rises))
        intervals[at : at + 2] = [intervals[at] + intervals[at + 1]]
        errors.append(sum(map(deviation, intervals)))
    return errors


@pytest.mark.parametrize("cells", [1, 2, 9, 40])
def test_the_errors_are_those_of_a_slow_reading(cells: int) -> None:
    rng = np.random.Generator(np.random.PCG64(20240601))
    for _ in range(5):
        expected = rng.gamma(0.5, 100.0, cells)
        assert np.allclose(merge_sequence(expected).errors, slow_errors(expected), atol=1e-6)


@UNHURRIED
@given(one_way)
def test_every_step_merges_two_groups_and_states_its_size_and_error(expected: np.ndarray) -> None:
    sequence = merge_sequence(expected)
    assert sequence.sizes.tolist() == list(range(expected.size, 0, -1))
    for index, size in enumerate(sequence.sizes):
        partition = sequence.partition_at(index)
        assert partition.count == size
        assert np.isclose(error_of(expected, partition), sequence.errors[index], atol=1e-9 * (1 + expected.sum()))


@UNHURRIED
@given(one_way)
def test_partitions_are_nested_from_the_cells_to_one_group(expected: np.ndarray) -> None:
    sequence = merge_sequence(expected)
    partitions = [sequence.partition_at(index) for index in range(expected.size)]
    assert partitions[0] == finest(expected.size)
    assert sequence.errors[0] == 0
    for finer, coarser in pairwise(partitions):
        assert len(set(zip(finer.groups, coarser.groups, strict=True))) == finer.count


@UNHURRIED
@given(one_way)
def test_groups_are_intervals_of_the_sorted_counts(expected: np.ndarray) -> None:
    sequence = merge_sequence(expected)
    for index in range(expected.size):
        groups = sequence.partition_at(index).groups[np.argsort(expected, kind="stable")]
        assert np.count_nonzero(np.diff(groups)) == sequence.sizes[index] - 1


@UNHURRIED
@given(one_way)
def test_merging_keeps_totals(expected: np.ndarray) -> None:
    sequence = merge_sequence(expected)
    for index in range(expected.size):
        assert np.isclose(sequence.partition_at(index).sum_expected(expected).sum(), expected.sum())


@UNHURRIED
@given(one_way)
def test_the_error_never_falls_by_more_than_half(expected: np.ndarray) -> None:
    errors = merge_sequence(expected).errors
    assert np.all(errors[1:] >= errors[:-1] / 2 - 1e-9 * (1 + expected.sum()))


def test_the_error_can_fall_while_groups_merge() -> None:
    """The even spread is not the nearest constant in L1, so a merge of skewed neighbours may help."""
    sequence = merge_sequence(np.repeat([2.0, 16.0, 24.0, 36.0, 52.0], [2, 5, 34, 2, 2]))
    assert np.diff(sequence.errors).min() < -4


def test_the_error_of_a_spike_on_a_slope_only_rises() -> None:
    counts = np.append(np.arange(98.0) ** 1.5, 15_000.0)
    assert np.all(np.diff(merge_sequence(counts).errors) >= 0)


@UNHURRIED
@given(one_way)
def test_equal_input_gives_bit_equal_output(expected: np.ndarray) -> None:
    first, second = merge_sequence(expected), merge_sequence(expected.copy())
    assert first.errors.tobytes() == second.errors.tobytes()
    assert first.order.tobytes() == second.order.tobytes()
    assert first.cuts.tobytes() == second.cuts.tobytes()


@pytest.mark.parametrize("expected", [np.zeros(9), -np.zeros(9), np.full(9, 0.1), np.full(9, 1e15)])
def test_even_counts_merge_without_error(expected: np.ndarray) -> None:
    assert not merge_sequence(expected).errors.any()


def test_all_rows_in_one_cell_are_merged_last() -> None:
    sequence = merge_sequence(np.array([0.0, 7.0, 0.0, 0.0]))
    assert sequence.partition_at(2).groups.tolist() == [0, 1, 0, 0]
    assert sequence.errors.tolist() == [0, 0, 0, 10.5]
