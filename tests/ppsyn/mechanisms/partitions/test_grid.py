"""Grids: every slice of every axis keeps enough rows for its boxes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ppsyn.errors import InvariantError
from ppsyn.mechanisms.partitions.grid import split_grid
from ppsyn.privacy.partition import MOST_BOXES, Partition

shapes = array_shapes(min_dims=2, max_dims=4, max_side=6)
marginals = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=st.integers(0, 400).map(float)))


@settings(deadline=None, max_examples=80)
@given(marginals, st.floats(0.5, 300))
def test_boxes_are_products_of_slices_and_every_slice_holds_what_its_boxes_need(
    expected: np.ndarray, least: float
) -> None:
    grid = split_grid(expected, least)
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
    grid = split_grid(np.ones((8, 8)), 4.0)
    assert grid is not None
    assert grid.axes == (4, 4)
    assert np.bincount(grid.groups).tolist() == [4] * 16


@pytest.mark.parametrize(
    "expected", [np.ones(8), np.zeros((3, 3)), np.ones((1, 9)), np.array([[9.0, 0.0], [9.0, 0.0]])]
)
def test_where_an_axis_cannot_be_cut_there_is_no_grid(expected: np.ndarray) -> None:
    assert split_grid(expected, 1.0) is None


def test_a_grid_has_no_more_boxes_than_fit_64_bits() -> None:
    grid = split_grid(np.ones((300, 300)), 1e-9)
    assert grid is not None
    assert grid.count <= MOST_BOXES


@pytest.mark.parametrize("axes", [(4,), (1, 4), (2, 3), (2, 2, 2)])
def test_groups_that_are_no_grid_are_refused(axes: tuple[int, ...]) -> None:
    with pytest.raises(InvariantError, match="grid"):
        Partition(np.arange(4, dtype=np.int32), 4, axes)
