"""What is asked to learn how good a release is, and what the noisy answers say.

Every question follows from public and released values. From answers to figures with error bars:

Let n be the number of rows, N its noisy value, p and q the shares of the cells in the private and in the synthetic
table, and T half the sum of |p - q|. The figure that is asked for is D, the sum of |n p - N q|, and

    |D / (2 N) - T| <= half the sum of |(n / N - 1) p| = |n - N| / (2 N).

With noise Z on D, the estimate (D + Z) / (2 N) is therefore wrong by at most (|Z| + |n - N|) / (2 N). This is as true
of the mean and of the largest of several T. |Z| + |Y| exceeds w only if Z + Y or Z - Y does, on either side: for
independent Gaussians of scales s and t that has a probability of at most 4 P(G > w / hypot(s, t)), G standard normal.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.domain import Clique, Domain
from ppsyn.errors import ConfigError
from ppsyn.mechanisms.candidates import workload_cliques
from ppsyn.privacy.budget import round_down
from ppsyn.privacy.partition import equal_width, finest
from ppsyn.privacy.requests import GRID, Candidate, CompareRequest, Figure, Measured, MeasureRequest, to_grid
from ppsyn.schemas.config import WorkloadConfig
from ppsyn.schemas.quality import MarginalSet, NoisyRows, QualityFigure, Statistic

SURE = 2.2414027276
"""A standard normal is larger with a probability of 0.0125: four such tails make 5%."""

WORKLOAD, SINGLES, PAIRS = "workload", "single attributes", "pairs of attributes"

_MOST_PAIRS = 500
"""Where there are more, their mean is not worth the counting."""


def sets_of(domain: Domain, workload: WorkloadConfig, named: Sequence[Clique] = ()) -> tuple[MarginalSet, ...]:
    """What figures are about: the workload, attributes, pairs, and marginals that somebody asks for by name.

    Raises:
        ConfigError: If a named marginal is not one of the table, or has too many cells.
    """
    cliques = workload_cliques(domain, workload)
    singles: tuple[Clique, ...] = tuple((name,) for name in domain.names)
    pairs = tuple(pair for pair in combinations(domain.names, 2) if domain.size(pair) <= workload.max_cells)
    found = {WORKLOAD: cliques, SINGLES: singles, PAIRS: pairs if len(pairs) <= _MOST_PAIRS else ()}
    kept: dict[frozenset[Clique], str] = {}
    for name, marginals in found.items():
        if marginals:
            kept.setdefault(frozenset(marginals), name)
    sets = [MarginalSet(name=name, marginals=found[name]) for name in kept.values()]
    requested = dict.fromkeys(_checked(domain, names) for names in named)
    return (*sets, *(MarginalSet(name=" x ".join(clique), marginals=(clique,)) for clique in requested))


_MOST_CELLS = 10_000_000
"""Of a marginal that is asked for by name: its counts have to fit into memory."""


def _checked(domain: Domain, names: Sequence[str]) -> Clique:
    clique = domain.clique(names)
    if domain.size(clique) > _MOST_CELLS:
        raise ConfigError(f"Expected at most {_MOST_CELLS:,} cells in the marginal {', '.join(clique)}.")
    return clique


def cliques_of(sets: Sequence[MarginalSet]) -> tuple[Clique, ...]:
    """All marginals of the sets, each once."""
    return tuple(dict.fromkeys(clique for one in sets for clique in one.marginals))


def shares_of(rho: Fraction, sets: Sequence[MarginalSet]) -> tuple[Fraction, Fraction]:
    """What the number of rows and what the figures get, together all of it.

    The error of a figure grows with the noise of both. Of k figures each has a variance of k / rho, so that the sum
    k / second + 1 / first is least where the first share is the second over the square root of k.
    """
    figures = sum(len(one.statistics) for one in sets)
    first = round_down(rho / Fraction(1 + math.sqrt(figures)))
    return first, rho - first


def rows_request(domain: Domain, rho: Fraction) -> MeasureRequest:
    """Ask how many rows there are: one group of all the values of an attribute."""
    first = domain.attributes[0]
    return MeasureRequest((first.name,), equal_width(first.size, 1), rho)


def compare_request(
    sets: Sequence[MarginalSet], synthetic: Mapping[Clique, Ints], rows: int, rho: Fraction
) -> CompareRequest:
    """Ask how far the private table is from the synthetic one.

    Args:
        sets: What figures are about.
        synthetic: Counts of the synthetic table's marginals.
        rows: The number of rows that they are scaled to, a released value.
        rho: What to spend.
    """
    cliques = cliques_of(sets)
    at = {clique: number for number, clique in enumerate(cliques)}
    return CompareRequest(
        tuple(_candidate(clique, synthetic[clique], rows) for clique in cliques),
        tuple(
            Figure(statistic, tuple(at[clique] for clique in one.marginals))
            for one in sets
            for statistic in one.statistics
        ),
        rho,
    )


def _candidate(clique: Clique, counts: Ints, rows: int) -> Candidate:
    scale = rows / max(1, int(counts.sum()))
    return Candidate(clique, finest(counts.size), to_grid(counts.astype(np.float64) * scale), penalty=0)


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
