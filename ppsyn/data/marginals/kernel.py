"""All marginals of a block of rows in one go, some thousand rows at a time, which stay in the processor's cache."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ppsyn.arrays import Codes, Ints
from ppsyn.domain import Clique, Domain
from ppsyn.errors import ConfigError, InvariantError
from ppsyn.jit import compiled

Block: TypeAlias = Mapping[str, NDArray[np.integer]]
"""Codes of some rows, by attribute."""

_Codes: TypeAlias = NDArray[np.uint32]

_ROWS = 4096
_MOST_CELLS = 2**31 - 1


@dataclass(frozen=True)
class Layout:
    """Where in one flat array the counts of each marginal lie. All of it is public."""

    domain: Domain
    cliques: tuple[Clique, ...]

    def __post_init__(self) -> None:
        """Refuse a marginal that nobody could hold."""
        for clique in self.cliques:
            if self.domain.size(clique) > _MOST_CELLS:
                raise ConfigError(
                    f"Expected the marginal of {', '.join(clique)} to have at most {_MOST_CELLS} cells. "
                    "Give its attributes fewer bins, or leave it out of the workload."
                )

    @cached_property
    def starts(self) -> Ints:
        """Where each marginal begins; the last entry is where all end."""
        return np.cumsum([0, *map(self.domain.size, self.cliques)], dtype=np.int64)

    @cached_property
    def numbered(self) -> Codes:
        """For each marginal how many attributes it has, and which, by rank."""
        rank, widest = self.domain.rank, max(map(len, self.cliques), default=0)
        numbered = np.zeros((len(self.cliques), 1 + widest), np.int32)
        for row, clique in zip(numbered, self.cliques, strict=True):
            row[: 1 + len(clique)] = len(clique), *(rank[name] for name in clique)
        return numbered

    @cached_property
    def steps(self) -> Ints:
        """In which order to count, and whether the marginal before differs in its last attribute alone."""
        order = sorted(range(len(self.cliques)), key=lambda number: (self.cliques[number][:-1], number))
        before = [(), *(self.cliques[number] for number in order)]
        is_beside = [
            was != () and was[:-1] == self.cliques[number][:-1] for was, number in zip(before, order, strict=False)
        ]
        return np.array([order, is_beside], np.int64).T

    def empty(self) -> Ints:
        """Counts of no rows."""
        return np.zeros(int(self.starts[-1]), np.int64)

    def split(self, counts: Ints) -> list[Ints]:
        """The counts of each marginal."""
        return [counts[start:end] for start, end in pairwise(map(int, self.starts))]


def add_block(layout: Layout, block: Block, counts: Ints) -> None:
    """Add the rows of a block to the counts.

    Privacy:
        Reads private codes. Each row is counted once in each marginal.

    Raises:
        InvariantError: If a code is none of its attribute.
    """
    names, sizes = layout.domain.names, np.array(layout.domain.shape(layout.domain.names), np.uint32)
    codes = np.empty((len(names), len(block[names[0]])), np.uint32)
    for number, name in enumerate(names):
        codes[number] = block[name]
    if not (codes.max(axis=1, initial=0) < sizes).all():
        raise InvariantError("Codes outside their attributes' ranges were to be counted.")
    _add(codes, sizes, layout.numbered, layout.steps, layout.starts, counts)


@compiled
def _add(codes: _Codes, sizes: _Codes, cliques: Codes, steps: Ints, starts: Ints, counts: Ints) -> None:
    """For some rows at a time and each clique: number the cells of all its attributes but the last, then count.

    Numbers are unsigned, which spares a look for negative ones at every cell.
    """
    cells = np.empty(_ROWS, np.uint32)
    for start in range(0, codes.shape[1], _ROWS):
        rows = min(_ROWS, codes.shape[1] - start)
        for step in range(steps.shape[0]):
            clique, is_beside = steps[step]
            degree = cliques[clique, 0]
            if not is_beside:
                cells[:rows] = 0
                for place in range(1, degree):
                    attribute = cliques[clique, place]
                    column, size = codes[attribute, start : start + rows], sizes[attribute]
                    for row in range(rows):
                        cells[row] = cells[row] * size + column[row]
            last = cliques[clique, degree]
            column, size = codes[last, start : start + rows], sizes[last]
            table = counts[starts[clique] : starts[clique + 1]]
            for row in range(rows):
                table[cells[row] * size + column[row]] += 1


def count_blocks(domain: Domain, blocks: Iterable[Block], cliques: Sequence[Clique]) -> list[Ints]:
    """The counts of each marginal over all blocks."""
    layout = Layout(domain, tuple(cliques))
    counts = layout.empty()
    for block in blocks:
        add_block(layout, block, counts)
    return layout.split(counts)
