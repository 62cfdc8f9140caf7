"""Unordered codes are arranged by their counts, and the groups find their way back."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ppsyn.mechanisms.partitions.balanced import split_balanced
from ppsyn.mechanisms.partitions.order import arranged_cells, partition_in_order, restore
from ppsyn.privacy.partition import number_groups

UNHURRIED = settings(deadline=None, max_examples=50)  # the first call compiles
shapes = array_shapes(min_dims=1, max_dims=4, max_side=4)
marginals = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=st.integers(0, 50).map(float)))


def draw_orders(data: st.DataObject, expected: np.ndarray) -> tuple[bool, ...]:
    return tuple(data.draw(st.booleans()) for _ in expected.shape)


@UNHURRIED
@given(marginals, st.data())
def test_arranging_moves_every_cell_once(expected: np.ndarray, data: st.DataObject) -> None:
    cells = arranged_cells(expected, draw_orders(data, expected))
    assert cells.shape == expected.shape
    assert sorted(cells.ravel().tolist()) == list(range(expected.size))


@UNHURRIED
@given(marginals, st.data())
def test_unordered_axes_ascend_and_ordered_axes_stay(expected: np.ndarray, data: st.DataObject) -> None:
    is_ordered = draw_orders(data, expected)
    arranged = expected.ravel()[arranged_cells(expected, is_ordered)]
    for axis, ordered in enumerate(is_ordered):
        others = tuple(other for other in range(expected.ndim) if other != axis)
        before, after = expected.sum(axis=others), arranged.sum(axis=others)
        assert np.array_equal(after, before if ordered else np.sort(before))


@UNHURRIED
@given(marginals, st.data())
def test_restoring_gives_every_cell_the_group_it_had(expected: np.ndarray, data: st.DataObject) -> None:
    cells = arranged_cells(expected, draw_orders(data, expected))
    drawn = data.draw(arrays(np.int32, expected.size, elements=st.integers(0, 3)))
    arranged = number_groups(drawn)
    restored = restore(arranged, cells)
    assert number_groups(restored.groups[cells.ravel()]) == arranged


@UNHURRIED
@given(marginals)
def test_ordered_attributes_are_partitioned_as_they_are(expected: np.ndarray) -> None:
    is_ordered = (True,) * expected.ndim
    (partition,) = partition_in_order(expected, is_ordered, lambda arranged: [split_balanced(arranged, 20.0)])
    assert partition == split_balanced(expected, 20.0)


def test_rare_codes_of_a_nominal_attribute_share_a_group() -> None:
    expected = np.array([3.0, 50.0, 4.0, 60.0, 3.0])
    (partition,) = partition_in_order(expected, (False,), lambda arranged: [split_balanced(arranged, 10.0)])
    assert partition.groups.tolist() == [0, 1, 0, 2, 0]
