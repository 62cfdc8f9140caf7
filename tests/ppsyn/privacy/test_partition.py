"""A partition covers every cell once, and sums and spreads lose no rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppsyn.errors import InvariantError
from ppsyn.privacy.partition import Partition, distinct, equal_width, finest, number_groups

UNHURRIED = settings(deadline=None, max_examples=50)  # the first call compiles
labels = st.lists(st.integers(0, 8), min_size=1, max_size=30).map(lambda drawn: np.array(drawn, np.int32))


@UNHURRIED
@given(labels)
def test_groups_are_numbered_by_their_first_cell(labels: np.ndarray) -> None:
    seen = list(dict.fromkeys(labels.tolist()))
    partition = number_groups(labels)
    assert partition.groups.tolist() == [seen.index(label) for label in labels]
    assert partition.count == len(seen)


@UNHURRIED
@given(labels, st.permutations(range(9)))
def test_the_same_groups_are_equal_whatever_their_labels(labels: np.ndarray, renamed: list[int]) -> None:
    other = number_groups(np.array(renamed, np.int32)[labels])
    assert number_groups(labels) == other
    assert hash(number_groups(labels)) == hash(other)


@UNHURRIED
@given(labels, st.data())
def test_group_counts_sum_to_the_rows_of_the_table(labels: np.ndarray, data: st.DataObject) -> None:
    partition = number_groups(labels)
    rows = data.draw(st.lists(st.integers(0, labels.size - 1)))
    counts = np.bincount(np.array(rows, np.int64), minlength=labels.size)
    sums = partition.sum_counts(counts)
    assert sums.sum() == len(rows)
    assert sums.tolist() == partition.sum_expected(counts.astype(float)).tolist()
    assert sums.tolist() == [int(counts[partition.groups == group].sum()) for group in range(partition.count)]


@UNHURRIED
@given(labels, st.data())
def test_spreading_evenly_keeps_every_group_count(labels: np.ndarray, data: st.DataObject) -> None:
    partition = number_groups(labels)
    drawn = st.lists(st.integers(0, 1000), min_size=partition.count, max_size=partition.count)
    group_counts = np.array(data.draw(drawn), np.float64)
    cells = partition.spread_evenly(group_counts)
    assert np.allclose(partition.sum_expected(cells), group_counts)
    assert all(np.unique(cells[partition.groups == group]).size == 1 for group in range(partition.count))


@pytest.mark.parametrize(
    ("groups", "count"),
    [
        (np.array([0, 2], np.int32), 2),
        (np.array([0, 0], np.int32), 2),
        (np.array([-1, 0], np.int32), 1),
        (np.array([0, 1], np.int64), 2),
        (np.array([[0, 1]], np.int32), 2),
        (np.array([0], np.int32), 2),
        (np.array([0], np.int32), 0),
    ],
)
def test_groups_that_are_missing_empty_or_out_of_range_are_refused(groups: np.ndarray, count: int) -> None:
    with pytest.raises(InvariantError):
        Partition(groups, count)


def test_repeats_are_dropped_and_order_is_kept() -> None:
    pair = number_groups(np.array([0, 0, 1], np.int32))
    assert distinct((finest(3), pair, finest(3), pair)) == (finest(3), pair)


@pytest.mark.parametrize(("cells", "most", "sizes"), [(7, 3, [3, 2, 2]), (3, 16, [1, 1, 1]), (5, 1, [5])])
def test_equal_width_groups_differ_by_one_cell_at_most(cells: int, most: int, sizes: list[int]) -> None:
    assert np.bincount(equal_width(cells, most).groups).tolist() == sizes
