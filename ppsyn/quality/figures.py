"""From noisy answers to figures with error bars.

Let n be the number of rows, N its noisy value, p and q the shares of the cells in the private and in the synthetic
table, and T half the sum of |p - q|. The figure that is asked for is D, the sum of |n p - N q|, and

    |D / (2 N) - T| <= half the sum of |(n / N - 1) p| = |n - N| / (2 N).

With noise Z on D, the estimate (D + Z) / (2 N) is therefore wrong by at most (|Z| + |n - N|) / (2 N). This is as true
of the mean and of the largest of several T. |Z| + |Y| exceeds w only if Z + Y or Z - Y does, on either side: for
independent Gaussians of scales s and t that has a probability of at most 4 P(G > w / hypot(s, t)), G standard normal.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.domain import Clique
from ppsyn.privacy.requests import GRID, Measured
from ppsyn.schemas.quality import MarginalSet, NoisyRows, QualityFigure, Statistic

SURE = 2.2414027276
"""A standard normal is larger with a probability of 0.0125: four such tails make 5%."""


def expected_reach(rho: float, figures: int, max_rows: int, rows: int) -> float:
    """How far a bar will reach to either side, about, as a share of the rows."""
    return SURE * max_rows * (1 + math.sqrt(figures)) / math.sqrt(2 * rho) / (2 * max(1, rows))


def rows_of(answer: Measured) -> NoisyRows:
    """The noisy number of rows."""
    return NoisyRows(noisy=int(answer.noisy_counts[0]), sigma=answer.sigma)


def scaled_to(rows: NoisyRows) -> int:
    """The number of rows that the synthetic table is scaled to: the noisy one, but at least one."""
    return max(1, rows.noisy)


def figures_of(
    sets: Sequence[MarginalSet], synthetic: Mapping[Clique, Ints], rows: NoisyRows, answer: Measured
) -> tuple[QualityFigure, ...]:
    """The figures, in the order of the sets.

    Args:
        sets: What they are about.
        synthetic: Counts of the synthetic table's marginals, which say how far rounding to the grid may matter.
        rows: The noisy number of rows.
        answer: To the question that the sets made.
    """
    noisy = iter(answer.noisy_counts.tolist())
    reach = SURE * math.hypot(answer.sigma / GRID, rows.sigma)
    return tuple(
        _figure(one, statistic, next(noisy), scaled_to(rows), reach + _rounding(one, synthetic))
        for one in sets
        for statistic in one.statistics
    )


def _rounding(one: MarginalSet, synthetic: Mapping[Clique, Ints]) -> float:
    """Half a unit for each cell that is not empty, and one more for the mean: in rows."""
    return (max(np.count_nonzero(synthetic[clique]) for clique in one.marginals) / 2 + 1) / GRID


def _figure(one: MarginalSet, statistic: Statistic, noisy: int, rows: int, reach: float) -> QualityFigure:
    found = noisy / GRID
    lower, distance, upper = (_clipped(moved / (2 * rows)) for moved in (found - reach, found, found + reach))
    return QualityFigure(about=one.name, statistic=statistic, noisy=noisy, distance=distance, lower=lower, upper=upper)


def _clipped(distance: float) -> float:
    return min(1.0, max(0.0, distance))
