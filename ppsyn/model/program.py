"""Build the index arrays that the kernel runs on."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.domain import Clique, Domain
from ppsyn.errors import InvariantError
from ppsyn.model.kernel import Program
from ppsyn.model.tree import JunctionTree
from ppsyn.partition.cells import Partition
from ppsyn.partition.contrasts import UNIT, centred, degrees


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Noisy group counts of one marginal, or contrasts of them where they form a grid: a released value.

    Attributes:
        noisy_counts: As they were drawn, with `sigma` the scale of their noise.
        denoised: A better estimate of the counts, where there is one; the fit aims at it.
        deviation: The standard deviation of that estimate.
        is_loose: Whether the tree has no room for the marginal, which is then known beside it.
    """

    clique: Clique
    partition: Partition
    noisy_counts: Ints
    sigma: float
    denoised: Floats | None = None
    deviation: float | None = None
    is_loose: bool = False

    @property
    def target(self) -> Floats:
        """What a fit should reproduce of the group counts; of a grid, up to what its contrasts leave out."""
        return self.noisy_counts / self.unit if self.denoised is None else self.denoised

    @property
    def scale(self) -> float:
        """How closely a fit should reproduce it: the standard deviation in every direction that was measured."""
        return self.sigma / self.unit if self.deviation is None else self.deviation

    @property
    def count_sigma(self) -> float:
        """The standard deviation of the noise on what was learned about each group's count."""
        axes = self.partition.axes
        return self.sigma / self.unit * (math.sqrt(degrees(axes) / self.partition.count) if axes else 1.0)

    def surprise(self, expected: Floats) -> Floats:
        """How far the answer as drawn is from expected group counts; of a grid, in its contrasts."""
        return self.contrast(self.noisy_counts / self.unit - expected)

    def contrast(self, difference: Floats) -> Floats:
        """The part of a difference of group counts that was measured."""
        return centred(difference, self.partition.axes) if self.partition.axes else difference

    @property
    def unit(self) -> float:
        """What stands for one row in the answer as drawn."""
        return unit_of(self.partition)


def unit_of(partition: Partition) -> float:
    """What stands for one row in an answer about the groups."""
    return float(UNIT * partition.count) if partition.axes else 1.0


def cell_index(domain: Domain, outer: Clique, inner: Clique) -> Codes:
    """For each cell of `outer`, the cell of `inner` it belongs to."""
    index = np.zeros(domain.shape(outer), np.int32)
    stride = 1
    for name in reversed(inner):
        size = domain[name].size
        shape = [size if name == other else 1 for other in outer]
        index += (np.arange(size, dtype=np.int32) * np.int32(stride)).reshape(shape)
        stride *= size
    return index.ravel()


class _Links:
    """Stretches of the value buffer and the links that fill them."""

    def __init__(self, domain: Domain, tree: JunctionTree) -> None:
        self.domain, self.tree = domain, tree
        self.node_start = _offsets(domain.size(node) for node in tree.nodes)
        self.end = int(self.node_start[-1])
        self.clique_at: dict[Clique, int] = {}
        self.group_at: dict[tuple[Clique, Partition], int] = {}
        self.rows: list[tuple[int, int, int]] = []
        self.indices: list[Codes] = []

    def _link(self, start: int, index: Codes, size: int) -> int:
        at = self.end
        self.rows.append((start, index.size, at))
        self.indices.append(index)
        self.end += size
        return at

    def add_potentials(self, clique: Clique, home: int) -> None:
        """A clique that carries potentials is linked from its home."""
        index = cell_index(self.domain, self.tree.nodes[home], clique)
        self.clique_at[clique] = self._link(int(self.node_start[home]), index, self.domain.size(clique))

    def add_clique(self, clique: Clique) -> int:
        """Where the clique's marginal stands; linked from the smallest superset there is."""
        if clique not in self.clique_at:
            outer, start = self._source(clique)
            index = cell_index(self.domain, outer, clique)
            self.clique_at[clique] = self._link(start, index, self.domain.size(clique))
        return self.clique_at[clique]

    def _source(self, clique: Clique) -> tuple[Clique, int]:
        within = [other for other in self.clique_at if set(clique) <= set(other)]
        if within:
            outer = min(within, key=lambda other: (self.domain.size(other), other))
            return outer, self.clique_at[outer]
        home = self.tree.home(clique)
        if home is None:
            raise InvariantError("A measured clique has no home in its own tree.")
        return self.tree.nodes[home], int(self.node_start[home])

    def add_groups(self, clique: Clique, partition: Partition) -> int:
        """Where the partition's group sums stand."""
        if partition.is_finest and np.array_equal(partition.groups, np.arange(partition.count)):
            return self.add_clique(clique)
        key = (clique, partition)
        if key not in self.group_at:
            self.group_at[key] = self._link(self.add_clique(clique), partition.groups, partition.count)
        return self.group_at[key]


def build(tree: JunctionTree, cliques: Sequence[Clique], measurements: Sequence[Measurement]) -> Program:
    """The program of a tree whose potentials stand on `cliques` (maximal, so disjoint in the buffer)."""
    domain, links = tree.domain, _Links(tree.domain, tree)
    for clique in cliques:
        home = tree.home(clique)
        if home is None:
            raise InvariantError("A clique with potentials has no home in its own tree.")
        links.add_potentials(clique, home)
    for clique in sorted({m.clique for m in measurements}, key=lambda clique: (-len(clique), clique)):
        links.add_clique(clique)
    measured_at = [links.add_groups(m.clique, m.partition) for m in measurements]
    separators = [tree.separator(k) for k in range(len(tree.nodes))]
    into = [
        cell_index(domain, tree.nodes[parent], separator) if parent >= 0 else np.zeros(0, np.int32)
        for parent, separator in zip(tree.parents, separators, strict=True)
    ]
    rows = np.array(links.rows, np.int64).reshape(-1, 3)
    return Program(
        node_start=links.node_start,
        parent=np.array(tree.parents, np.int64),
        separator_start=_offsets(domain.size(separator) for separator in separators),
        own=_joined(cell_index(domain, node, sep) for node, sep in zip(tree.nodes, separators, strict=True)),
        into_start=_offsets(index.size for index in into),
        into=_joined(into),
        potentials=len(cliques),
        link_from=rows[:, 0].copy(),
        link_size=rows[:, 1].copy(),
        link_to=rows[:, 2].copy(),
        link_index_start=_offsets(index.size for index in links.indices)[:-1],
        link_index=_joined(links.indices),
        measured_at=np.array(measured_at, np.int64),
        measured_size=np.array([m.partition.count for m in measurements], np.int64),
        answer_start=_offsets(m.partition.count for m in measurements)[:-1],
        answers=np.concatenate([np.zeros(0), *(m.target for m in measurements)]),
        precision=np.array([m.scale**-2 for m in measurements], np.float64),
        axes_start=_offsets(len(m.partition.axes) for m in measurements),
        axes=np.array([slices for m in measurements for slices in m.partition.axes], np.int64),
        values=links.end,
    )


def _offsets(sizes: Iterable[int]) -> Ints:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _joined(parts: Iterable[Codes]) -> Codes:
    return np.concatenate([np.zeros(0, np.int32), *parts])
