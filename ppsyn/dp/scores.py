"""The selection score and the bound on how far one row can move it."""

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.requests import GRID, Candidate

SENSITIVITY = GRID
"""One row moves a score by at most this many grid units (claim C2)."""


def score(candidate: Candidate, exact_counts: Ints) -> int:
    """How much of the marginal the model misses, net of the penalty, in grid units.

    Privacy:
        Claim C2. `expected` and `penalty` are released values on the grid. A row
        changes one group count by one, which moves one term by at most GRID. All
        arithmetic is on integers, so this holds exactly.
    """
    groups = candidate.partition.sum_counts(exact_counts)
    return int(np.abs(groups * GRID - candidate.expected).sum()) - candidate.penalty
