"""Counts of marginals over blocks of codes, as private or as public as the codes are."""

from collections.abc import Iterable, Mapping

import numpy as np

from ppsyn.arrays import Codes, Ints
from ppsyn.domain import Clique, Domain


def tally(blocks: Iterable[Mapping[str, Codes]], domain: Domain, cliques: Iterable[Clique]) -> dict[Clique, Ints]:
    """Exact counts of each clique's cells, flat in C order, in one pass over the blocks."""
    counts = {clique: np.zeros(domain.size(clique), np.int64) for clique in cliques}
    for codes in blocks:
        for clique, sums in counts.items():
            cells = np.ravel_multi_index([codes[name] for name in clique], domain.shape(clique))
            np.add(sums, np.bincount(cells, minlength=sums.size), out=sums)
    return counts
