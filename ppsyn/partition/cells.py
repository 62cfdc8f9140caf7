"""A partition: which group each cell of a marginal belongs to."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.errors import InvariantError


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Groups 0 to count - 1 that cover every cell of a marginal exactly once.

    Cells are numbered in C order of the clique's shape. Every group holds a cell.
    """

    groups: Codes
    count: int

    def __post_init__(self) -> None:
        """Refuse groups that are missing, empty or out of range."""
        if self.groups.ndim != 1 or self.groups.dtype != np.int32 or not 1 <= self.count <= self.groups.size:
            raise InvariantError("Expected a flat int32 vector of groups and 1 <= count <= cells.")
        if self.groups.min() < 0 or np.bincount(self.groups, minlength=self.count).size != self.count:
            raise InvariantError("Expected groups from 0 to count - 1.")
        if not np.bincount(self.groups, minlength=self.count).all():
            raise InvariantError("Expected every group to hold a cell.")
        self.groups.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        """Equal when the groups are."""
        return isinstance(other, Partition) and np.array_equal(self.groups, other.groups)

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
        return np.bincount(self.groups, weights=expected.ravel(), minlength=self.count)

    def spread_evenly(self, group_counts: Floats) -> Floats:
        """The paper's Est: each group's count divided evenly over its cells."""
        sizes = np.bincount(self.groups, minlength=self.count)
        return (group_counts / sizes)[self.groups]


def finest(cells: int) -> Partition:
    """Every cell its own group: the marginal itself."""
    return Partition(np.arange(cells, dtype=np.int32), cells)


def distinct(partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    """The partitions without repeats, in order."""
    return tuple(dict.fromkeys(partitions))
