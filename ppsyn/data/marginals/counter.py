"""Exact marginals on demand: counted in as few passes over the rows as memory allows, each once if it can be kept."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

from ppsyn.arrays import Ints
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals.kernel import count_blocks
from ppsyn.domain import Clique, Domain

ROOM_MB = 256
"""Default memory for exact marginals."""

_BLOCK_ROWS = 2**17
_CELL_BYTES = 8
_SPARE = 4
"""A pass whose counts are not kept takes this part of the room, beside what is kept."""


class Rows(Protocol):
    """A private table that can be counted, wherever it is."""

    @property
    def domain(self) -> Domain:
        """Its attributes."""
        ...

    def count(self, cliques: Sequence[Clique]) -> Sequence[Ints]:
        """The exact counts of each marginal, flat in C order, from one pass over all rows."""
        ...


class TableCounter:
    """Exact marginals of a table. Those that there is room for are kept, and serve the lower ones by their sums.

    Privacy:
        Holds private counts. Which marginals are counted together and which are kept
        follows from the order of the questions and from the domain, never from a count.
    """

    def __init__(self, private_table: EncodedTable | Rows, room_mb: float = ROOM_MB) -> None:
        """Count `private_table`, with room for so many MB of counts."""
        self._rows = _Memory(private_table) if isinstance(private_table, EncodedTable) else private_table
        self._room = self._left = cells_in(room_mb)
        self._known: dict[Clique, Ints] = {}
        self._holders: dict[str, set[Clique]] = {}

    def __repr__(self) -> str:
        """Show nothing of the table."""
        return "TableCounter()"

    def counts(self, clique: Clique) -> Ints:
        """Exact counts of the clique's cells, flat in C order."""
        ((_, counts),) = self.marginals([clique])
        return counts

    def marginals(self, cliques: Iterable[Clique]) -> Iterator[tuple[Clique, Ints]]:
        """Each of the cliques once, in any order, with its exact counts."""
        missing: list[Clique] = []
        for clique in dict.fromkeys(cliques):
            counts = self._find(clique)
            if counts is None:
                missing.append(clique)
            else:
                yield clique, counts
        waiting = group_under_supersets(self._rows.domain, missing)
        while waiting:
            found = self._count(_taken(self._rows.domain, waiting, max(self._left, self._room // _SPARE)))
            self.keep(found)
            yield from found.items()

    def keep(self, found: Mapping[Clique, Ints]) -> None:
        """Have these counts at hand from now on, if there is room for all of them."""
        cells = sum(counts.size for counts in found.values())
        if cells <= self._left:
            self._left -= cells
            self._known.update(found)
            for clique in found:
                for name in clique:
                    self._holders.setdefault(name, set()).add(clique)

    def _count(self, tops: Mapping[Clique, Sequence[Clique]]) -> dict[Clique, Ints]:
        """One pass over the rows."""
        found: dict[Clique, Ints] = {}
        for (top, below), counts in zip(tops.items(), self._rows.count(list(tops)), strict=True):
            for clique in (top, *below):
                found[clique] = marginalize(self._rows.domain, top, counts, clique)
        return found

    def _find(self, clique: Clique) -> Ints | None:
        """The counts, if a marginal that is kept has them."""
        if clique in self._known:
            return self._known[clique]
        above = set[Clique].intersection(*(self._holders.get(name, set()) for name in clique))
        if not above:
            return None
        smallest = min(above, key=lambda clique: self._known[clique].size)
        return marginalize(self._rows.domain, smallest, self._known[smallest], clique)


@dataclass(frozen=True, slots=True)
class _Memory:
    """A table in memory, in blocks."""

    table: EncodedTable

    @property
    def domain(self) -> Domain:
        return self.table.domain

    def count(self, cliques: Sequence[Clique]) -> list[Ints]:
        columns = self.table.columns
        starts = range(0, len(columns[self.domain.names[0]]), _BLOCK_ROWS)
        blocks = ({name: codes[start : start + _BLOCK_ROWS] for name, codes in columns.items()} for start in starts)
        return count_blocks(self.domain, blocks, cliques)


def cells_in(megabytes: float) -> int:
    """How many counts so much memory holds."""
    return int(megabytes * 2**20) // _CELL_BYTES


def fitting(domain: Domain, cliques: Iterable[Clique], room_mb: float) -> tuple[Clique, ...]:
    """The marginals that are kept for a whole run: the smallest, as many as there is room for. A public rule."""
    room, kept = cells_in(room_mb), list[Clique]()
    for clique in sorted(set(cliques), key=lambda clique: (domain.size(clique), clique)):
        room -= domain.size(clique)
        if room < 0:
            break
        kept.append(clique)
    return tuple(kept)


def group_under_supersets(domain: Domain, cliques: Iterable[Clique]) -> dict[Clique, list[Clique]]:
    """The cliques that no other of them contains, each with those that are to be summed from it."""
    tops: dict[Clique, list[Clique]] = {}
    homes: dict[Clique, Clique] = {}
    for clique in sorted(set(cliques), key=lambda clique: (-len(clique), domain.size(clique), clique)):
        if clique in homes:
            tops[homes[clique]].append(clique)
            continue
        tops[clique] = []
        for degree in range(1, len(clique)):
            for below in combinations(clique, degree):
                homes.setdefault(below, clique)
    return tops


def _taken(domain: Domain, waiting: dict[Clique, list[Clique]], room: int) -> dict[Clique, list[Clique]]:
    """Those at the head of the queue that there is room for, or else the first, taken out of it."""
    taken: dict[Clique, list[Clique]] = {}
    while waiting:
        top = next(iter(waiting))
        room -= sum(map(domain.size, (top, *waiting[top])))
        if taken and room < 0:
            break
        taken[top] = waiting.pop(top)
    return taken


def marginalize(domain: Domain, above: Clique, counts: Ints, clique: Clique) -> Ints:
    """The counts of a clique from those of one that contains it; nobody can change them."""
    others = tuple(place for place, name in enumerate(above) if name not in clique)
    sums = counts.reshape(domain.shape(above)).sum(axis=others).ravel() if others else counts
    sums.flags.writeable = False
    return sums
