"""A partition: which group each cell of a marginal belongs to."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.errors import InvariantError
from ppsyn.jit import compiled

MOST_ROWS = 2**37
"""Of a table of fewer rows all sums fit 64 bits (claim C1), and no two persons have the same pseudonym (claim C8)."""

MOST_BOXES = 2**14
"""Of a grid: residuals of more might not fit 64 bits (claim C1)."""


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Groups 0 to count - 1 that cover every cell of a marginal exactly once.

    Cells are numbered in C order of the clique's shape. Every group holds a cell.

    Attributes:
        axes: How many groups there are along each axis, where they are the boxes of a
            grid in C order: of those only residuals are measured. Empty otherwise.
    """

    groups: Codes
    count: int
    axes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse groups that are missing, empty or out of range."""
        if self.groups.ndim != 1 or self.groups.dtype != np.int32 or not 1 <= self.count <= self.groups.size:
            raise InvariantError("Expected a flat int32 vector of groups and 1 <= count <= cells.")
        if self.groups.min() < 0 or self.groups.max() >= self.count:
            raise InvariantError("Expected groups from 0 to count - 1.")
        if not np.bincount(self.groups, minlength=self.count).all():
            raise InvariantError("Expected every group to hold a cell.")
        if self.axes and not (len(self.axes) > 1 < min(self.axes) and math.prod(self.axes) == self.count <= MOST_BOXES):
            raise InvariantError("Expected a grid of at least two groups along each of at least two axes.")
        self.groups.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        """Equal when the groups are, and what is measured of them."""
        return isinstance(other, Partition) and self.axes == other.axes and np.array_equal(self.groups, other.groups)

    def __hash__(self) -> int:
        """Hash of the groups."""
        return hash(self.groups.tobytes())

    @property
    def cells(self) -> int:
        """The number of cells of the marginal."""
        return self.groups.size

    @property
    def is_finest(self) -> bool:
        """Whether every cell is a group of its own."""
        return self.count == self.groups.size

    def sum_counts(self, counts: Ints) -> Ints:
        """Exact integer group counts of exact integer cell counts."""
        sums = np.zeros(self.count, np.int64)
        np.add.at(sums, self.groups, counts.ravel())
        return sums

    def sum_expected(self, expected: Floats) -> Floats:
        """Group sums of a model's expected cell counts."""
        return np.bincount(self.groups, weights=expected.ravel(), minlength=self.count).astype(np.float64, copy=False)

    def spread_evenly(self, group_counts: Floats) -> Floats:
        """The paper's Est: each group's count divided evenly over its cells."""
        sizes = np.bincount(self.groups, minlength=self.count)
        return (group_counts / sizes)[self.groups]


def finest(cells: int) -> Partition:
    """Every cell its own group: the marginal itself."""
    return Partition(np.arange(cells, dtype=np.int32), cells)


def number_groups(labels: Codes) -> Partition:
    """Cells with the same label form a group; groups are numbered by their first cell.

    So partitions with the same groups are equal, whatever their labels were.
    Labels are not negative; a label need not be used.
    """
    groups, count = _number(labels)
    return Partition(groups, count)


@compiled
def _number(labels: Codes) -> tuple[Codes, int]:
    numbers = np.full(labels.max() + 1, -1, np.int32)
    groups = np.empty_like(labels)
    count = 0
    for cell, label in enumerate(labels):
        if numbers[label] < 0:
            numbers[label] = count
            count += 1
        groups[cell] = numbers[label]
    return groups, count


def distinct(partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    """The partitions without repeats, in order."""
    return tuple(dict.fromkeys(partitions))


def equal_width(cells: int, most: int) -> Partition:
    """Neighbouring cells in at most `most` groups of sizes as equal as can be."""
    count = min(cells, most)
    return Partition((np.arange(cells, dtype=np.int64) * count // cells).astype(np.int32), count)
