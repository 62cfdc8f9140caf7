"""Build the index arrays that the kernel runs on."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.domain import Clique, Domain
from ppsyn.errors import InvariantError
from ppsyn.model import kernel
from ppsyn.model.junction_tree import JunctionTree
from ppsyn.model.kernel import Program
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition

_T = TypeVar("_T", bound=np.generic)

_ROW = 16
"""Cells of a row at least, unless a table has fewer."""


def laid_out(domain: Domain, clique: Clique) -> Clique:
    """The attributes in the order of the kernel's tables: the largest last, so that its values are neighbours."""
    return tuple(clique[axis] for axis in _order(domain.shape(clique)))


def flat(table: NDArray[_T]) -> NDArray[_T]:
    """The cells of a table, one axis an attribute, in the order of the kernel's tables."""
    return table.transpose(_order(table.shape)).ravel()


def unflat(cells: Floats, shape: tuple[int, ...]) -> Floats:
    """The table that has these cells: the inverse of `flat`."""
    order = _order(shape)
    table = np.empty(shape)
    table.transpose(order)[...] = cells.reshape([shape[axis] for axis in order])
    return table


def _order(shape: tuple[int, ...]) -> list[int]:
    return sorted(range(len(shape)), key=shape.__getitem__)


def cell_index(domain: Domain, outer: Clique, inner: Clique) -> Codes:
    """For each cell of `outer`, the first cell of `inner` that agrees with it on what both have."""
    index = np.zeros(domain.shape(outer), np.int32)
    stride = 1
    for name in reversed(inner):
        size = domain[name].size
        if name in outer:
            shape = [size if name == other else 1 for other in outer]
            index += (np.arange(size, dtype=np.int32) * np.int32(stride)).reshape(shape)
        stride *= size
    return index.ravel()


class _Maps:
    """Maps from the rows of tables to smaller tables."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.rows: list[tuple[int, int, int]] = []
        self.parts: list[Codes] = []
        self.size = 0

    def row(self, clique: Clique) -> int:
        """The length of the rows of a clique's table."""
        return self.domain.size(self._cut(clique)[1])

    def _cut(self, clique: Clique) -> tuple[Clique, Clique]:
        """The attributes that rows differ by, and those that cells of one row differ by."""
        names, at = laid_out(self.domain, clique), len(clique)
        while at > 0 and self.domain.size(names[at:]) < _ROW:
            at -= 1
        return names[:at], names[at:]

    def add(self, outer: Clique, inner: Clique, at: int) -> None:
        """A map from the table of `outer` to that of `inner`, which starts at an offset."""
        names = laid_out(self.domain, inner)
        first, within = (cell_index(self.domain, part, names) for part in self._cut(outer))
        is_kept = np.array_equal(within, np.arange(within.size))
        kind = kernel.KEPT if is_kept else kernel.MIXED if within.any() else kernel.SUMMED
        self.rows.append((kind, self.size, self.size + first.size))
        self.parts += (first + np.int32(at), within)
        self.size += first.size + within.size


class _Marginals:
    """Where marginals and group sums stand, and what they are summed up from."""

    def __init__(self, domain: Domain, cliques: Sequence[Clique]) -> None:
        starts = _offsets(domain.size(clique) for clique in cliques)
        self.domain = domain
        self.clique_at = dict(zip(cliques, map(int, starts[:-1]), strict=True))
        self.group_at: dict[tuple[Clique, Partition], int] = {}
        self.links: list[tuple[Clique, Clique]] = []
        self.sums: list[tuple[Clique, Codes, int]] = []
        self.end = int(starts[-1])

    def _place(self, size: int) -> int:
        self.end += size
        return self.end - size

    def add_clique(self, clique: Clique) -> None:
        """Link the clique's marginal from the smallest superset there is."""
        if clique not in self.clique_at:
            within = [other for other in self.clique_at if set(clique) <= set(other)]
            if not within:
                raise InvariantError("A measured clique is in none that has potentials.")
            self.links.append((min(within, key=lambda other: (self.domain.size(other), other)), clique))
            self.clique_at[clique] = self._place(self.domain.size(clique))

    def add_groups(self, clique: Clique, partition: Partition) -> int:
        """Where the partition's group sums stand."""
        groups = flat(partition.groups.reshape(self.domain.shape(clique)))
        if np.array_equal(groups, np.arange(partition.count)):
            return self.clique_at[clique]
        key = (clique, partition)
        if key not in self.group_at:
            self.group_at[key] = self._place(partition.count)
            self.sums.append((clique, groups, self.group_at[key]))
        return self.group_at[key]


def build(tree: JunctionTree, cliques: Sequence[Clique], measurements: Sequence[Measurement]) -> Program:
    """The program of a tree whose potentials stand on `cliques`, of which none contains another."""
    domain, nodes = tree.domain, range(len(tree.nodes))
    marginals, maps = _Marginals(domain, cliques), _Maps(domain)
    for clique in sorted({m.clique for m in measurements}, key=lambda clique: (-len(clique), clique)):
        marginals.add_clique(clique)
    measured_at = [marginals.add_groups(m.clique, m.partition) for m in measurements]
    separators = [tree.separator(k) for k in nodes]
    separator_start = _offsets(domain.size(separator) for separator in separators)
    assigned: list[list[Clique]] = [[] for _ in nodes]
    for clique in cliques:
        home = tree.home(clique)
        if home is None:
            raise InvariantError("A clique with potentials has no home in its own tree.")
        assigned[home].append(clique)
    node_maps, node_cliques = [0], list[int]()
    for k in nodes:
        children = [other for other in sorted(tree.neighbours[k]) if other != tree.parents[k]]
        for other in (k, *children):
            maps.add(tree.nodes[k], separators[other], int(separator_start[other]))
        node_cliques.append(len(maps.rows))
        for clique in assigned[k]:
            maps.add(tree.nodes[k], clique, marginals.clique_at[clique])
        node_maps.append(len(maps.rows))
    for outer, inner in marginals.links:
        maps.add(outer, inner, marginals.clique_at[inner])
    return Program(
        node_start=_offsets(map(domain.size, tree.nodes)),
        node_row=_ints(map(maps.row, tree.nodes)),
        separator_start=separator_start,
        is_root=np.array(tree.parents, np.int64) < 0,
        node_maps=_ints(node_maps),
        node_cliques=_ints(node_cliques),
        link_from=_ints(marginals.clique_at[outer] for outer, _ in marginals.links),
        link_size=_ints(domain.size(outer) for outer, _ in marginals.links),
        link_row=_ints(maps.row(outer) for outer, _ in marginals.links),
        link_map=node_maps[-1],
        maps=np.array(maps.rows, np.int64).reshape(-1, 3),
        places=_joined(maps.parts),
        group_from=_ints(marginals.clique_at[clique] for clique, _, _ in marginals.sums),
        group_size=_ints(groups.size for _, groups, _ in marginals.sums),
        group_to=_ints(at for _, _, at in marginals.sums),
        group_start=_offsets(groups.size for _, groups, _ in marginals.sums),
        groups=_joined(groups for _, groups, _ in marginals.sums),
        measured_at=_ints(measured_at),
        measured_size=_ints(m.partition.count for m in measurements),
        answer_start=_offsets(m.partition.count for m in measurements),
        answers=np.concatenate([np.zeros(0), *(m.target for m in measurements)]),
        precision=np.array([m.scale**-2 for m in measurements], np.float64),
        axes_start=_offsets(len(m.partition.axes) for m in measurements),
        axes=_ints(slices for m in measurements for slices in m.partition.axes),
        marginals=marginals.end,
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.array([*values], np.int64)


def _offsets(sizes: Iterable[int]) -> Ints:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _joined(parts: Iterable[Codes]) -> Codes:
    return np.concatenate([np.zeros(0, np.int32), *parts])
