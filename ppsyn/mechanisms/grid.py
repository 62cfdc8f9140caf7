"""Partitions of a marginal, from released values alone: groups of expected rows that stand above the noise.

A marginal of several attributes is cut into the boxes of a grid: each axis in slices, whatever the
other axes are. A single attribute is cut in two, again and again. Codes without an order are first
arranged by their expected counts, so that rare codes come to share groups.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol, TypeAlias

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.jit import compiled
from ppsyn.privacy.partition import MOST_BOXES, Partition, distinct, finest, number_groups

Partitioner: TypeAlias = Callable[[Floats], Iterable[Partition]]
"""Builds partitions of a marginal whose neighbouring codes may share a group."""


class Strategy(Protocol):
    """Gives the candidate partitions of a marginal."""

    def __call__(
        self, expected: Floats, is_ordered: tuple[bool, ...], sigma: float, granularities: tuple[float, ...]
    ) -> tuple[Partition, ...]:
        """Partition a marginal at several granularities.

        Args:
            expected: The model's counts, as an array with one axis per attribute.
            is_ordered: Whether neighbouring codes of each attribute are neighbours in meaning.
            sigma: The scale of the noise that each group would carry.
            granularities: In units of that noise; higher is coarser.

        Returns:
            Distinct partitions; there may be none of several attributes together, where
            they cannot be told apart above the noise.
        """
        ...


def partition_grid(
    expected: Floats, is_ordered: tuple[bool, ...], sigma: float, granularities: tuple[float, ...]
) -> tuple[Partition, ...]:
    """Grids of on average granularity * sigma expected rows a box in every slice; single attributes in runs."""

    def build(arranged: Floats) -> Iterable[Partition]:
        if arranged.ndim == 1:
            return (split_run(arranged, granularity * sigma) for granularity in granularities)
        return split_grids(arranged, [granularity * sigma for granularity in granularities])

    partitions = partition_in_order(expected, is_ordered, build)
    return with_finest(expected.size, partitions) if expected.ndim == 1 else partitions


def with_finest(cells: int, partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    """The cells themselves, and the partitions that tell more than the total."""
    return distinct((finest(cells), *(partition for partition in partitions if partition.count > 1)))


def split_grids(expected: Floats, leasts: Iterable[float]) -> Iterator[Partition]:
    """Of each `least` a grid: slices cut in two, of the axis with the fewest first, while all keep it in every box.

    A slice of an axis is shared by as many boxes as the other axes have slices between them; it must
    hold `least` expected rows for each. The heaviest slice that can be cut is, at its most balanced
    point. There is no grid if an axis cannot be cut, or if there is only one; none comes twice.
    """
    if expected.ndim < 2:
        return
    sizes = np.array(expected.shape)
    sums = np.zeros((expected.ndim, int(sizes.max()) + 1))
    for axis in range(expected.ndim):
        one_way = expected.sum(axis=tuple(other for other in range(expected.ndim) if other != axis))
        sums[axis, 1 : one_way.size + 1] = np.cumsum(one_way)
    made = set[bytes]()
    for least in leasts:
        cuts, counts = _cut(sums, sizes, float(least), MOST_BOXES)
        if counts.min() >= 2 and (key := cuts.tobytes()) not in made:
            made.add(key)
            yield _grid(expected.shape, cuts, counts)


def _grid(shape: tuple[int, ...], cuts: Codes, counts: Ints) -> Partition:
    groups = np.zeros(1, np.int32)
    for axis, size in enumerate(shape):
        slices = np.cumsum(cuts[axis, :size], dtype=np.int32)
        groups = (groups[:, None] * np.int32(counts[axis]) + slices).ravel()
    axes = tuple(counts.tolist())
    return Partition(groups, math.prod(axes), axes)


@compiled
def _cut(sums: Floats, sizes: Ints, least: float, most: int) -> tuple[Codes, Ints]:
    """Which codes begin a slice other than the first, and the number of slices, of each axis."""
    axes = sizes.size
    cuts = np.zeros((axes, sums.shape[1]), np.int32)
    counts = np.ones(axes, np.int64)
    is_open = np.ones(axes, np.bool_)
    lightest = np.array([sums[axis, sizes[axis]] for axis in range(axes)])
    while is_open.any():
        axis = -1
        for other in range(axes):
            if is_open[other] and (axis < 0 or counts[other] < counts[axis]):
                axis = other
        boxes = counts.prod() // counts[axis] * (counts[axis] + 1)
        fits = boxes <= most
        for other in range(axes):
            if other != axis and lightest[other] < least * boxes / counts[other]:
                fits = False
        cut, lighter = -1, 0.0
        if fits and lightest[axis] >= least * boxes / (counts[axis] + 1):
            cut, lighter = _heaviest_cut(sums[axis], cuts[axis], sizes[axis], least * boxes / (counts[axis] + 1))
        if cut < 0:
            is_open[axis] = False
        else:
            cuts[axis, cut] = 1
            counts[axis] += 1
            lightest[axis] = min(lightest[axis], lighter)
    return cuts, counts


@compiled
def _heaviest_cut(sums: Floats, cuts: Codes, size: int, least: float) -> tuple[int, float]:
    """Where to cut the heaviest slice whose halves both keep `least`, and the rows of the lighter half; -1 for none."""
    best, best_rows, best_half = -1, 0.0, 0.0
    start = 0
    while start < size:
        end = start + 1
        while end < size and cuts[end] == 0:
            end += 1
        rows = sums[end] - sums[start]
        if rows > best_rows and rows >= 2 * least:
            at, half = -1, 0.0
            for cut in range(start + 1, end):
                smaller = min(sums[cut] - sums[start], sums[end] - sums[cut])
                if smaller > half:
                    at, half = cut, smaller
            if at >= 0 and half >= least:
                best, best_rows, best_half = at, rows, half
        start = end
    return best, best_half


def split_run(expected: Floats, least: float) -> Partition:
    """Cut runs of codes in two, each at its most balanced point, while both halves keep `least` expected rows."""
    return number_groups(_split_run(np.concatenate((np.zeros(1), np.cumsum(expected))), float(least)))


@compiled
def _split_run(sums: Floats, least: float) -> Codes:
    """The first code of the run that each code ends up in."""
    firsts = np.zeros(sums.size - 1, np.int32)
    runs = [(0, sums.size - 1)]
    while runs:
        start, end = runs.pop()
        firsts[start:end] = start
        rows, at, half = sums[end] - sums[start], start, -1.0
        for cut in range(start + 1, end):
            below = sums[cut] - sums[start]
            smaller = min(below, rows - below)
            if smaller > half:
                at, half = cut, smaller
        if half >= least:
            runs.append((start, at))
            runs.append((at, end))
    return firsts


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
