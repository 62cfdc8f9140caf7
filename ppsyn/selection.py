"""Which questions are worth asking: candidates from the workload and the model, never from data."""

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import combinations

from ppsyn.domain import Clique, Domain, downward_closure, maximal
from ppsyn.errors import ConfigError, ModelTooLargeError
from ppsyn.model.tree import interaction_graph
from ppsyn.partition.cells import Partition, finest
from ppsyn.partition.sequence import NOISE_L1
from ppsyn.partition.strategies import STRATEGIES
from ppsyn.requests import GRID, MAX_PENALTY, Candidate, noise_scale, to_grid
from ppsyn.state import State
from schemas.config import WorkloadConfig

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


def growing_cap(state: State, rho: Fraction) -> float:
    """The cap on the model, in MB, grows with the part of the budget that is spent once rho is."""
    plan = state.plan
    return plan.config.model_mb * float((state.spent + rho) / plan.rho)


def affordable(state: State, cliques: Iterable[Clique], cap_mb: float) -> dict[Clique, float]:
    """The cliques whose measurement keeps the model under the cap, and by how many MB each would make it grow.

    Both are predicted before anything is fitted.
    """
    tree = state.model.tree
    graph = interaction_graph(tree.domain, [m.clique for m in state.evidence])
    now_mb, found = graph.model_mb(), dict[Clique, float]()
    for clique in cliques:
        then_mb = now_mb if tree.home(clique) is not None else graph.with_clique(clique).model_mb()
        if then_mb <= max(cap_mb, now_mb):
            found[clique] = max(0.0, then_mb - now_mb)
    return found


def candidate(state: State, clique: Clique, partition: Partition, penalty: float = 0.0, weight: int = 1) -> Candidate:
    """A marginal and a partition of the model's own cells of it; `penalty`, in rows, counts as often as it weighs."""
    expected = to_grid(partition.sum_expected(state.model.project_inner(clique)))
    units = min(math.ceil(weight * penalty * GRID), MAX_PENALTY)
    return Candidate(clique, state.model.fold.lift(clique, partition), expected, units, weight)


def whole(state: State, clique: Clique, rho: Fraction, weight: int = 1) -> Candidate:
    """A marginal cell by cell, less the noise it would carry."""
    cells = finest(state.model.tree.domain.size(clique))
    return candidate(state, clique, cells, noise_l1(cells, noise_scale(rho, state.plan.sensitivity)), weight)


def partitioned(state: State, growth_mb: Mapping[Clique, float], rho: Fraction) -> tuple[Candidate, ...]:
    """Each clique at each granularity, less the noise it would carry and the room it would take up in the model."""
    plan, total = state.plan, state.model.total
    sigma, strategy = noise_scale(rho, plan.sensitivity), STRATEGIES[plan.config.partition]
    found: list[Candidate] = []
    for clique, growth in growth_mb.items():
        room = plan.config.thrift * total * growth / plan.config.model_mb
        is_ordered = tuple(plan.domain[name].is_ordered for name in clique)
        partitions = strategy(state.model.project_inner(clique), is_ordered, sigma, plan.config.levels)
        for partition in _worthwhile(partitions, sigma, total):
            found.append(candidate(state, clique, partition, noise_l1(partition, sigma) + room))
    return tuple(found)


def noise_l1(partition: Partition, sigma: float) -> float:
    """The expected L1 norm of the noise on all groups."""
    return NOISE_L1 * sigma * partition.count


def _worthwhile(partitions: tuple[Partition, ...], sigma: float, total: float) -> Iterator[Partition]:
    """The partitions whose noise does not drown the largest difference there could be, or else the coarsest."""
    coarsest = min(partition.count for partition in partitions)
    for partition in partitions:
        if partition.count == coarsest or noise_l1(partition, sigma) <= 2 * total:
            yield partition
