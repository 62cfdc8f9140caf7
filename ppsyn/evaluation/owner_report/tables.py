"""Both tables, counted and sampled, in bounded memory. Every result here is private."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals.kernel import Block, count_blocks
from ppsyn.domain import Clique, Domain

_CELLS = 2**23
"""Of each table that are counted at a time."""


@dataclass(frozen=True, slots=True, repr=False)
class Blocks:
    """A table that is read anew for every pass over it.

    Attributes:
        read: Gives its codes, some rows at a time.
    """

    domain: Domain
    read: Callable[[], Iterable[Block]]

    @override
    def __repr__(self) -> str:
        return "Blocks()"

    def count(self, cliques: Sequence[Clique]) -> list[Ints]:
        """The counts of each marginal."""
        return count_blocks(self.domain, self.read(), cliques)


@dataclass(frozen=True, slots=True, repr=False)
class Both:
    """The private table and the synthetic one."""

    private: Blocks
    synthetic: Blocks

    @override
    def __repr__(self) -> str:
        return "Both()"

    @property
    def domain(self) -> Domain:
        """Of both."""
        return self.private.domain

    def counts(self, cliques: Iterable[Clique]) -> Iterator[tuple[Clique, Ints, Ints]]:
        """Each marginal with its counts in the private and in the synthetic table. Private."""
        for part in _parts(self.domain, list(dict.fromkeys(cliques))):
            yield from zip(part, self.private.count(part), self.synthetic.count(part), strict=True)


def _parts(domain: Domain, cliques: list[Clique]) -> Iterator[list[Clique]]:
    """Marginals that are counted together."""
    part: list[Clique] = []
    for clique in cliques:
        if part and sum(map(domain.size, (*part, clique))) > _CELLS:
            yield part
            part = []
        part.append(clique)
    if part:
        yield part


def scaled(counts: Ints, rows: int) -> Floats:
    """Counts as they would be in a table of so many rows."""
    return counts.astype(np.float64) * (rows / max(1, int(counts.sum())))


def sampled(table: Blocks, most: int, seed: int) -> EncodedTable:
    """Some rows, each with the same chance, in random order. As private as the table."""
    rng = np.random.Generator(np.random.PCG64(seed))
    kept: Mapping[str, Codes] = {name: np.empty(0, np.int32) for name in table.domain.names}
    keys: Floats = np.empty(0)
    for block in table.read():
        fresh = rng.random(len(block[table.domain.names[0]]))
        keys = np.concatenate([keys, fresh])
        chosen = np.argsort(keys)[:most]
        kept = {name: np.concatenate([column, block[name].astype(np.int32)])[chosen] for name, column in kept.items()}
        keys = keys[chosen]
    return EncodedTable(table.domain, dict(kept))
