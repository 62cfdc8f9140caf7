"""Grids: every slice of every axis keeps enough rows for its boxes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ppsyn.benchmark.paper.strategies import split_balanced
from ppsyn.errors import InvariantError
from ppsyn.mechanisms.grid import arranged_cells, partition_in_order, restore, split_grids, split_run
from ppsyn.privacy.partition import MOST_BOXES, Partition, distinct, number_groups

shapes = array_shapes(min_dims=2, max_dims=4, max_side=6)
marginals = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=st.integers(0, 400).map(float)))


@settings(deadline=None, max_examples=80)
@given(marginals, st.floats(0.5, 300))
def test_boxes_are_products_of_slices_and_every_slice_holds_what_its_boxes_need(
    expected: np.ndarray, least: float
) -> None:
    grid = next(split_grids(expected, [least]), None)
    if grid is None:
        return
    assert math.prod(grid.axes) == grid.count
    boxes = grid.groups.reshape(expected.shape)
    places = np.unravel_index(boxes, grid.axes)
    for axis, place in enumerate(places):
        along = place.swapaxes(0, axis).reshape(expected.shape[axis], -1)
        assert (along == along[:, :1]).all(), "a slice depends on another axis"
        assert (np.diff(along[:, 0]) >= 0).all(), "a slice is not a run of codes"
        rows = np.bincount(place.ravel(), weights=expected.ravel(), minlength=grid.axes[axis])
        assert rows.min() >= least * grid.count / grid.axes[axis] * (1 - 1e-9)


def test_axes_are_cut_in_turns_at_their_most_balanced_points() -> None:
    grid = next(split_grids(np.ones((8, 8)), [4.0]))
    assert grid is not None
    assert grid.axes == (4, 4)
    assert np.bincount(grid.groups).tolist() == [4] * 16


@pytest.mark.parametrize(
    "expected", [np.ones(8), np.zeros((3, 3)), np.ones((1, 9)), np.array([[9.0, 0.0], [9.0, 0.0]])]
)
def test_where_an_axis_cannot_be_cut_there_is_no_grid(expected: np.ndarray) -> None:
    assert list(split_grids(expected, [1.0, 2.0])) == []


def test_a_grid_has_no_more_boxes_than_fit_64_bits() -> None:
    grid = next(split_grids(np.ones((300, 300)), [1e-9]))
    assert grid is not None
    assert grid.count <= MOST_BOXES


@pytest.mark.parametrize("axes", [(4,), (1, 4), (2, 3), (2, 2, 2)])
def test_groups_that_are_no_grid_are_refused(axes: tuple[int, ...]) -> None:
    with pytest.raises(InvariantError, match="grid"):
        Partition(np.arange(4, dtype=np.int32), 4, axes)


UNHURRIED = settings(deadline=None, max_examples=50)  # the first call compiles
tables = array_shapes(min_dims=1, max_dims=4, max_side=4).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(0, 50).map(float))
)
one_ways = arrays(np.float64, st.integers(1, 40), elements=st.sampled_from([0.0, -0.0]) | st.floats(0, 400))


def draw_orders(data: st.DataObject, expected: np.ndarray) -> tuple[bool, ...]:
    return tuple(data.draw(st.booleans()) for _ in expected.shape)


@UNHURRIED
@given(tables, st.data())
def test_arranging_moves_every_cell_once(expected: np.ndarray, data: st.DataObject) -> None:
    cells = arranged_cells(expected, draw_orders(data, expected))
    assert cells.shape == expected.shape
    assert sorted(cells.ravel().tolist()) == list(range(expected.size))


@UNHURRIED
@given(tables, st.data())
def test_unordered_axes_ascend_and_ordered_axes_stay(expected: np.ndarray, data: st.DataObject) -> None:
    is_ordered = draw_orders(data, expected)
    arranged = expected.ravel()[arranged_cells(expected, is_ordered)]
    for axis, ordered in enumerate(is_ordered):
        others = tuple(other for other in range(expected.ndim) if other != axis)
        before, after = expected.sum(axis=others), arranged.sum(axis=others)
        assert np.array_equal(after, before if ordered else np.sort(before))


@UNHURRIED
@given(tables, st.data())
def test_restoring_gives_every_cell_the_group_it_had(expected: np.ndarray, data: st.DataObject) -> None:
    cells = arranged_cells(expected, draw_orders(data, expected))
    drawn = data.draw(arrays(np.int32, expected.size, elements=st.integers(0, 3)))
    arranged = number_groups(drawn)
    restored = restore(arranged, cells)
    assert number_groups(restored.groups[cells.ravel()]) == arranged


@UNHURRIED
@given(one_ways)
def test_ordered_attributes_are_partitioned_as_they_are(expected: np.ndarray) -> None:
    (partition,) = partition_in_order(expected, (True,), lambda arranged: [split_run(arranged, 20.0)])
    assert partition == split_run(expected, 20.0)


@settings(deadline=None, max_examples=200)
@given(one_ways, st.floats(0, 300))
def test_runs_are_the_boxes_of_a_balanced_split_in_one_dimension(expected: np.ndarray, least: float) -> None:
    assert split_run(expected, least) == split_balanced(expected, least)


def test_rare_codes_of_a_nominal_attribute_share_a_group() -> None:
    expected = np.array([3.0, 50.0, 4.0, 60.0, 3.0])
    (partition,) = partition_in_order(expected, (False,), lambda arranged: [split_run(arranged, 10.0)])
    assert partition.groups.tolist() == [0, 1, 0, 2, 0]


@settings(deadline=None, max_examples=40)
@given(marginals, st.lists(st.floats(0.5, 300), max_size=5))
def test_grids_of_several_levels_are_those_of_each_alone_without_repeats(
    expected: np.ndarray, leasts: list[float]
) -> None:
    alone = (grid for least in leasts for grid in split_grids(expected, [least]))
    assert tuple(split_grids(expected, leasts)) == distinct(alone)
