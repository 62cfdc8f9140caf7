"""What is asked to learn how good a release is. Every question follows from public and released values."""

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
from ppsyn.privacy.requests import Candidate, CompareRequest, Figure, MeasureRequest, to_grid
from ppsyn.schemas.config import WorkloadConfig
from ppsyn.schemas.quality import MarginalSet

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
    asked = dict.fromkeys(_checked(domain, names) for names in named)
    return (*sets, *(MarginalSet(name=" x ".join(clique), marginals=(clique,)) for clique in asked))


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
