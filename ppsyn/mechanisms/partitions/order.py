"""An order for codes that have none, taken from the model."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ppsyn.arrays import Floats, Ints
from ppsyn.privacy.partition import Partition, number_groups

Partitioner: TypeAlias = Callable[[Floats], Iterable[Partition]]
"""Builds partitions of a marginal whose neighbouring codes may share a group."""


def partition_in_order(expected: Floats, is_ordered: tuple[bool, ...], build: Partitioner) -> tuple[Partition, ...]:
    """What `build` makes of the marginal with its unordered codes arranged, for the cells as they were.

    The codes of an unordered attribute are arranged by their expected one-way
    counts, ascending as in Algorithm 3, so that rare codes come to share groups.
    """
    if all(is_ordered):
        return tuple(build(expected))
    cells = arranged_cells(expected, is_ordered)
    return tuple(restore(partition, cells) for partition in build(expected.ravel()[cells]))


def arranged_cells(expected: Floats, is_ordered: tuple[bool, ...]) -> Ints:
    """The cell that comes to each place of the arranged marginal, in the marginal's shape."""
    codes = [_codes_in_order(expected, axis, ordered) for axis, ordered in enumerate(is_ordered)]
    return np.ravel_multi_index(np.ix_(*codes), expected.shape)


def restore(partition: Partition, cells: Ints) -> Partition:
    """A partition of an arranged marginal, for the cells as they were."""
    labels = np.empty_like(partition.groups)
    labels[cells.ravel()] = partition.groups
    return replace(partition, groups=labels) if partition.axes else number_groups(labels)


def _codes_in_order(expected: Floats, axis: int, ordered: bool) -> Ints:
    if ordered:
        return np.arange(expected.shape[axis], dtype=np.int64)
    others = tuple(other for other in range(expected.ndim) if other != axis)
    one_way: Floats = expected.sum(axis=others)
    return np.argsort(one_way, kind="stable")
