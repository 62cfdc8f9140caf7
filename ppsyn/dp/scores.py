"""The selection score and the bound on how far one row can move it."""

from collections.abc import Sequence

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.requests import GRID, Candidate


def sensitivity(candidates: Sequence[Candidate]) -> int:
    """One row moves the score of each candidate by at most this many grid units (claim C2)."""
    return GRID * max(candidate.weight for candidate in candidates)


def score(candidate: Candidate, exact_counts: Ints) -> int:
    """How much of the marginal the model misses, times its weight, net of the penalty, in grid units.

    Privacy:
        Claim C2. `expected`, `penalty` and `weight` are released values on the grid. A
        row changes one group count by one, which moves one term by at most GRID, and
        the score by at most GRID * weight. All arithmetic is on integers, so this holds exactly.
    """
    groups = candidate.partition.sum_counts(exact_counts)
    return candidate.weight * int(np.abs(groups * GRID - candidate.expected).sum()) - candidate.penalty
