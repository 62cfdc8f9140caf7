"""Algorithm 4 against a slow reference, and what its sequence promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ppsyn.benchmark.paper.merge_split import split_sequence
from ppsyn.benchmark.paper.sequence import least_total_error
from ppsyn.mechanisms.base import NOISE_L1
from ppsyn.privacy.partition import Partition, finest

UNHURRIED = settings(deadline=None, max_examples=50)  # the first call compiles
elements = st.sampled_from([0.0, -0.0]) | st.integers(0, 300).map(float) | st.floats(0, 1e6)
shapes = array_shapes(min_dims=1, max_dims=5, max_side=4)
marginals = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=elements))


def error_of(expected: np.ndarray, partition: Partition) -> float:
    """The reconstruction error, as it is defined."""
    return float(np.abs(expected.ravel() - partition.spread_evenly(partition.sum_expected(expected))).sum())


def deviation(expected: np.ndarray, box: tuple[slice, ...]) -> float:
    """The reconstruction error of one box."""
    return float(np.abs(expected[box] - expected[box].mean()).sum())


def halves_of(box: tuple[slice, ...], axis: int) -> list[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Every way to cut a box in two along an axis."""
    low, high = box[axis].start, box[axis].stop
    before, after = box[:axis], box[axis + 1 :]
    return [((*before, slice(low, cut), *after), (*before, slice(cut, high), *after)) for cut in range(low + 1, high)]


def slow_cut(expected: np.ndarray, box: tuple[slice, ...], turn: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The best cut of the first axis, from `turn` on, that does not raise the error; else of all axes."""
    error = deviation(expected, box)
    seen: list[tuple[tuple[slice, ...], tuple[slice, ...]]] = []
    for step in range(expected.ndim):
        seen += halves_of(box, (turn + step) % expected.ndim)
        left = [deviation(expected, low) + deviation(expected, high) for low, high in seen]
        if left and min(left) <= error * (1 + 1e-10):
            break
    return seen[next(cut for cut, kept in enumerate(left) if kept <= min(left) + 1e-10 * error)]


def slow_errors(expected: np.ndarray) -> list[float]:
    """RE_t by measuring every box and every cut at every step."""
    boxes = [tuple(slice(0, size) for size in expected.shape)]
    errors = [deviation(expected, boxes[0])]
    while len(boxes) < expected.size:
        worst = max(boxes, key=lambda box: deviation(expected, box))
        boxes.remove(worst)
        boxes.extend(slow_cut(expected, worst, (len(errors) - 1) % expected.ndim))
        errors.append(sum(deviation(expected, box) for box in boxes))
    return errors


@pytest.mark.parametrize("shape", [(17,), (6, 7), (4, 5, 3), (2, 3, 1, 4), (2, 2, 2, 2, 2, 2)])
def test_the_errors_are_those_of_a_slow_reading(shape: tuple[int, ...]) -> None:
    rng = np.random.Generator(np.random.PCG64(20240601))
    for _ in range(5):
        expected = rng.gamma(0.5, 100.0, shape)
        assert np.allclose(split_sequence(expected, expected.size).errors, slow_errors(expected), atol=1e-6)


@UNHURRIED
@given(marginals)
def test_every_step_adds_a_group_and_states_its_size_and_error(expected: np.ndarray) -> None:
    sequence = split_sequence(expected, expected.size)
    assert sequence.sizes.tolist() == list(range(1, sequence.sizes.size + 1))
    for index, size in enumerate(sequence.sizes):
        partition = sequence.partition_at(index)
        assert partition.count == size
        assert np.isclose(error_of(expected, partition), sequence.errors[index], atol=1e-9 * (1 + expected.sum()))


@UNHURRIED
@given(marginals)
def test_the_error_ends_at_zero_and_never_more_than_doubles(expected: np.ndarray) -> None:
    errors = split_sequence(expected, expected.size).errors
    assert errors[-1] == 0
    assert np.all(errors[1:] <= 2 * errors[:-1] + 1e-9 * (1 + expected.sum()))


@UNHURRIED
@given(arrays(np.float64, st.integers(1, 30), elements=elements))
def test_along_one_axis_the_error_never_rises(expected: np.ndarray) -> None:
    errors = split_sequence(expected, expected.size).errors
    assert np.all(np.diff(errors) <= 1e-9 * (1 + expected.sum()))


@UNHURRIED
@given(marginals)
def test_every_group_is_a_box(expected: np.ndarray) -> None:
    sequence = split_sequence(expected, expected.size)
    partition = sequence.partition_at(sequence.sizes.size // 2)
    for group in range(partition.count):
        codes = np.argwhere(partition.groups.reshape(expected.shape) == group)
        assert np.prod(codes.max(0) - codes.min(0) + 1) == len(codes)


@UNHURRIED
@given(marginals, st.floats(0.01, 1000), st.floats(1, 10))
def test_the_price_cuts_off_nothing_that_could_be_chosen(expected: np.ndarray, sigma: float, level: float) -> None:
    whole = split_sequence(expected, expected.size)
    priced = split_sequence(expected, expected.size, NOISE_L1 * sigma)
    assert priced.errors.size <= whole.errors.size
    costs = whole.errors + NOISE_L1 * sigma * level * whole.sizes
    best = least_total_error(priced, sigma * level)
    assert costs[best] <= costs.min() + 1e-9 * (1 + costs.max())


@UNHURRIED
@given(marginals, st.integers(1, 10))
def test_a_shorter_sequence_is_the_beginning_of_a_longer_one(expected: np.ndarray, most: int) -> None:
    short, whole = split_sequence(expected, most), split_sequence(expected, expected.size)
    assert short.sizes.size == min(most, whole.sizes.size)
    assert np.allclose(short.errors, whole.errors[: short.errors.size], atol=1e-9 * (1 + expected.sum()))
    assert short.partition_at(-1) == whole.partition_at(short.sizes.size - 1)


@UNHURRIED
@given(marginals)
def test_equal_input_gives_bit_equal_output_and_is_left_alone(expected: np.ndarray) -> None:
    before = expected.copy()
    first = split_sequence(expected, expected.size)
    second = split_sequence(np.asfortranarray(expected), expected.size)
    assert np.array_equal(expected, before)
    assert first.errors.tobytes() == second.errors.tobytes()
    assert first.order.tobytes() == second.order.tobytes()
    assert first.cuts.tobytes() == second.cuts.tobytes()


def test_a_cut_that_gains_nothing_may_lead_to_one_that_does() -> None:
    sequence = split_sequence(np.array([[0.0, 0.4], [0.4, 0.0]]), 4)
    assert np.allclose(sequence.errors, [0.8, 0.8, 0.4, 0.0])
    assert sequence.partition_at(-1) == finest(4)


def test_where_every_cut_raises_the_error_the_smallest_rise_is_taken() -> None:
    """The even spread is not the nearest constant in L1, so halves can fit worse than the whole."""
    sequence = split_sequence(np.array([[0.0, 4, 4, 4], [4, 4, 4, 8]]), 8)
    assert np.allclose(sequence.errors[:2], [8.0, 32 / 3])
    assert sequence.partition_at(1).groups.tolist() == [0, 1, 1, 1, 0, 1, 1, 1]


def test_dimensions_take_turns_and_pass_when_they_cannot_be_cut() -> None:
    expected = np.zeros((2, 2, 1))
    expected[1, 1, 0] = 9.0
    sequence = split_sequence(expected, 4)
    assert [sequence.partition_at(index).groups.tolist() for index in range(3)] == [
        [0, 0, 0, 0],
        [0, 0, 1, 1],
        [0, 0, 1, 2],
    ]


@pytest.mark.parametrize("expected", [np.zeros((3, 2)), -np.zeros((3, 2)), np.full((3, 2), 0.1), np.ones((1, 1))])
def test_even_counts_are_never_split(expected: np.ndarray) -> None:
    sequence = split_sequence(expected, expected.size)
    assert sequence.sizes.tolist() == [1]
    assert sequence.errors.tolist() == [0.0]
