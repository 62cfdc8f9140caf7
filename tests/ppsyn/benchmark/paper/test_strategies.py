"""What every strategy promises, and what each adds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ppsyn.benchmark.paper.strategies import STRATEGIES
from ppsyn.mechanisms.base import NOISE_L1
from ppsyn.privacy.partition import Partition, distinct, finest, number_groups

LEVELS = (1.0, 2.0, 4.0, 8.0)
UNHURRIED = settings(deadline=None, max_examples=50)  # the first call compiles
names = st.sampled_from(sorted(STRATEGIES))
with_cells = st.sampled_from(sorted(STRATEGIES.keys() - {"grid"}))
elements = st.sampled_from([0.0, -0.0]) | st.integers(0, 300).map(float) | st.floats(0, 1e5)
shapes = array_shapes(min_dims=1, max_dims=4, max_side=5)
marginals = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=elements))
sigmas = st.floats(0.1, 200)


def draw_orders(data: st.DataObject, expected: np.ndarray) -> tuple[bool, ...]:
    return tuple(data.draw(st.booleans()) for _ in expected.shape)


@UNHURRIED
@given(with_cells, marginals, sigmas, st.data())
def test_candidates_are_distinct_with_the_cells_first(
    name: str, expected: np.ndarray, sigma: float, data: st.DataObject
) -> None:
    partitions = STRATEGIES[name](expected, draw_orders(data, expected), sigma, LEVELS)
    assert partitions[0] == finest(expected.size)
    assert distinct(partitions) == partitions
    assert len(partitions) <= 1 + len(LEVELS)
    assert all(partition.count > 1 for partition in partitions[1:])
    assert all(partition.cells == expected.size for partition in partitions)


@UNHURRIED
@given(names, marginals, sigmas, st.data())
def test_equal_input_gives_equal_candidates(name: str, expected: np.ndarray, sigma: float, data: st.DataObject) -> None:
    is_ordered = draw_orders(data, expected)
    expected.flags.writeable = False
    first = STRATEGIES[name](expected, is_ordered, sigma, LEVELS)
    assert first == STRATEGIES[name](expected.copy(), is_ordered, sigma, LEVELS)


@UNHURRIED
@given(marginals, sigmas, st.data())
def test_balanced_groups_stand_above_the_noise(expected: np.ndarray, sigma: float, data: st.DataObject) -> None:
    for partition in STRATEGIES["balanced"](expected, draw_orders(data, expected), sigma, LEVELS)[1:]:
        assert partition.sum_expected(expected).min() >= sigma - 1e-9 * expected.sum()


@UNHURRIED
@given(marginals, sigmas, st.data())
def test_merge_split_never_costs_more_than_one_group(expected: np.ndarray, sigma: float, data: st.DataObject) -> None:
    def total_error(partition: Partition) -> float:
        spread = partition.spread_evenly(partition.sum_expected(expected))
        return float(np.abs(expected.ravel() - spread).sum() + NOISE_L1 * sigma * partition.count)

    one_group = total_error(number_groups(np.zeros(expected.size, np.int32)))
    for partition in STRATEGIES["merge-split"](expected, draw_orders(data, expected), sigma, (1.0,))[1:]:
        assert total_error(partition) <= one_group + 1e-9 * (1 + one_group)


def rearranged(partition: Partition, shape: tuple[int, ...], codes: np.ndarray) -> Partition:
    groups = np.ascontiguousarray(partition.groups.reshape(shape)[codes].ravel())
    return replace(partition, groups=groups) if partition.axes else number_groups(groups)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@UNHURRIED
@given(data=st.data())
def test_permuting_nominal_codes_permutes_the_partition(name: str, data: st.DataObject) -> None:
    shape = data.draw(array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=4))
    expected = np.array(data.draw(st.permutations(range(int(np.prod(shape))))), np.float64).reshape(shape) ** 2
    one_way = expected.sum(axis=tuple(range(1, expected.ndim)))
    assume(np.unique(one_way).size == one_way.size)
    codes = np.array(data.draw(st.permutations(range(shape[0]))))
    is_ordered = (False, *(True,) * (expected.ndim - 1))
    partitions = STRATEGIES[name](expected, is_ordered, 3.0, LEVELS)
    permuted = STRATEGIES[name](expected[codes], is_ordered, 3.0, LEVELS)
    assert permuted == tuple(rearranged(partition, shape, codes) for partition in partitions)


@pytest.mark.parametrize("name", ["balanced", "merge-split"])
def test_higher_levels_are_coarser(name: str) -> None:
    rng = np.random.Generator(np.random.PCG64(20240601))
    first, second, third = (rng.dirichlet(np.full(size, 0.5)) for size in (10, 12, 8))
    expected = 30_000 * np.einsum("i,j,k->ijk", first, second, third)
    counts = [partition.count for partition in STRATEGIES[name](expected, (True, False, True), 20.0, LEVELS)]
    assert counts == sorted(counts, reverse=True)
    assert len(counts) == 5


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@pytest.mark.parametrize("expected", [np.array([7.0]), np.zeros((1, 1, 1)), np.zeros((4, 3)), -np.zeros(5)])
def test_where_there_is_nothing_to_tell_apart_only_the_cells_remain(name: str, expected: np.ndarray) -> None:
    left = () if name == "grid" and expected.ndim > 1 else (finest(expected.size),)
    assert STRATEGIES[name](expected, (False,) * expected.ndim, 10.0, LEVELS) == left


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_without_levels_only_the_cells_remain(name: str) -> None:
    assert STRATEGIES[name](np.arange(6.0), (True,), 1.0, ()) == (finest(6),)


def test_a_spike_gets_a_group_of_its_own() -> None:
    expected = np.full((9, 9), 2.0)
    expected[4, 4] = 5_000.0
    _, partition = STRATEGIES["merge-split"](expected, (True, True), 10.0, (1.0,))
    assert np.bincount(partition.groups)[partition.groups[40]] == 1
    assert partition.count == 5


def test_cells_is_the_marginal_itself() -> None:
    assert STRATEGIES["cells"](np.arange(12.0).reshape(3, 4), (True, False), 1.0, LEVELS) == (finest(12),)
