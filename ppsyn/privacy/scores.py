"""The score of a candidate, figures of several scores, and the bounds on how far one row can move them."""

from collections.abc import Sequence
from math import isqrt

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.errors import InvariantError
from ppsyn.privacy.requests import GRID, Candidate, Figure

_MOST_WEIGHED_ROWS = 2**52
"""Scores of more might not fit 64 bits (claim C2)."""


def sensitivity(candidates: Sequence[Candidate]) -> int:
    """One row moves the score of each candidate by at most this many grid units (claim C2)."""
    return GRID * max(candidate.weight for candidate in candidates)


def score(candidate: Candidate, exact_counts: Ints) -> int:
    """How much of the marginal the model misses, times its weight, net of the penalty, in grid units.

    Privacy:
        Claim C2. `expected`, `penalty` and `weight` are released values on the grid. A
        row changes one group count by one, which moves one term by at most GRID, and
        the score by at most GRID * weight. All arithmetic is on integers, so this holds exactly.

    Raises:
        InvariantError: If there are so many rows that it might not.
    """
    if candidate.weight * int(exact_counts.sum()) >= _MOST_WEIGHED_ROWS:
        raise InvariantError("Expected a table of fewer than 2^52 rows over the largest weight; nothing was charged.")
    groups = candidate.partition.sum_counts(exact_counts)
    return candidate.weight * int(np.abs(groups * GRID - candidate.expected).sum()) - candidate.penalty


def aggregate(figure: Figure, scores: Sequence[int]) -> int:
    """The mean of the figure's scores, rounded down, or the largest of them.

    Privacy:
        Claim C12. If every score moves by at most a whole number s, so does the
        figure: the largest of numbers moves by no more than they do, and a mean
        that moves by at most s still does so when rounded down.
    """
    members = [scores[member] for member in figure.members]
    return max(members) if figure.statistic == "worst" else sum(members) // len(members)


def joint_sensitivity(move: int, figures: int) -> int:
    """The L2 norm, rounded up, of so many figures that each move by at most `move` (claim C12)."""
    return isqrt(figures * move * move - 1) + 1
