"""Which questions are worth asking: candidates from the workload and the model, never from data."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

from ppsyn.domain import Clique, Domain, downward_closure, maximal
from ppsyn.errors import ConfigError, ModelTooLargeError
from ppsyn.model.graphical import GraphicalModel
from ppsyn.model.tree import interaction_graph
from ppsyn.partition.cells import Partition
from ppsyn.partition.sequence import NOISE_L1
from ppsyn.partition.strategies import STRATEGIES
from ppsyn.requests import GRID, MAX_PENALTY, Candidate, noise_scale, to_grid
from schemas.config import AlgorithmConfig, WorkloadConfig

_MANY = 500
"""More triples than this are too many for a default workload."""


def workload_cliques(domain: Domain, workload: WorkloadConfig) -> tuple[Clique, ...]:
    """The marginals a workload stands for."""
    if workload.cliques is not None:
        return tuple(dict.fromkeys(domain.clique(names) for names in workload.cliques))
    if workload.degree is None:
        return _default_cliques(domain, workload.max_cells)
    degree = min(workload.degree, len(domain.names))
    cliques = _all_of(domain, degree, workload.max_cells)
    if not cliques:
        raise ConfigError(
            f"Expected marginals of {degree} attributes with at most max_cells={workload.max_cells} cells; "
            "there is none. Raise max_cells, lower degree, or give attributes fewer bins."
        )
    return cliques


def _default_cliques(domain: Domain, max_cells: int) -> tuple[Clique, ...]:
    """Triples, pairs that no triple holds, and attributes that no pair holds; no triples where they are too many."""
    singles = tuple((name,) for name in domain.names)
    pairs, triples = (_all_of(domain, degree, max_cells) for degree in (2, 3))
    return maximal((*singles, *pairs, *(triples if len(triples) <= _MANY else ())))


def _all_of(domain: Domain, degree: int, max_cells: int) -> tuple[Clique, ...]:
    return tuple(clique for clique in combinations(domain.names, degree) if domain.size(clique) <= max_cells)


def candidate_cliques(domain: Domain, workload: tuple[Clique, ...]) -> tuple[Clique, ...]:
    """Every marginal that may be measured: the workload's downward closure and all single attributes."""
    return downward_closure((*workload, *((name,) for name in domain.names)))


def check_smallest_model(domain: Domain, cap_mb: float) -> None:
    """Refuse a domain whose one-way model passes the cap."""
    needed = interaction_graph(domain, ()).model_mb()
    if needed > cap_mb:
        raise ModelTooLargeError(needed, cap_mb)


def affordable(
    model: GraphicalModel, measured: tuple[Clique, ...], cliques: tuple[Clique, ...], cap_mb: float
) -> Iterator[Clique]:
    """The cliques whose measurement keeps the model under the cap, predicted before fitting."""
    graph = interaction_graph(model.domain, measured)
    for clique in cliques:
        if model.tree.home(clique) is not None or graph.with_clique(clique).model_mb() <= cap_mb:
            yield clique


def candidates(
    model: GraphicalModel, cliques: Iterator[Clique], rho: Fraction, sensitivity: int, config: AlgorithmConfig
) -> tuple[Candidate, ...]:
    """Each clique at each granularity, with what the model expects and what noise would cost."""
    sigma, strategy, domain = noise_scale(rho, sensitivity), STRATEGIES[config.partition], model.domain
    found: list[Candidate] = []
    for clique in cliques:
        expected = model.project(clique)
        is_ordered = tuple(domain[name].is_ordered for name in clique)
        for partition in _worthwhile(strategy(expected, is_ordered, sigma, config.levels), sigma, model.total):
            penalty = min(math.ceil(NOISE_L1 * sigma * partition.count * GRID), MAX_PENALTY)
            found.append(Candidate(clique, partition, to_grid(partition.sum_expected(expected)), penalty))
    return tuple(found)


def _worthwhile(partitions: tuple[Partition, ...], sigma: float, total: float) -> Iterator[Partition]:
    """The partitions whose noise does not drown the largest difference there could be, or else the coarsest."""
    coarsest = min(partition.count for partition in partitions)
    for partition in partitions:
        if partition.count == coarsest or NOISE_L1 * sigma * partition.count <= 2 * total:
            yield partition
