"""Candidates of a round, from the workload and the model, never from data."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.domain import Attribute, Clique, Domain, downward_closure, maximal
from ppsyn.errors import ConfigError, ModelTooLargeError, SchemaError
from ppsyn.mechanisms.base import NOISE_L1, State
from ppsyn.mechanisms.grid import Strategy
from ppsyn.model.junction_tree import InteractionGraph, interaction_graph, table_mb
from ppsyn.privacy.partition import Partition, distinct, finest
from ppsyn.privacy.requests import GRID, MAX_PENALTY, Candidate, noise_scale, to_grid
from ppsyn.privacy.residuals import degrees
from ppsyn.schemas.config import WorkloadConfig
from ppsyn.schemas.limits import CELLS

ROUND_CELLS = CELLS
"""Cells of all marginals that a round considers. They bound its time and its memory."""

_MANY = 500
"""More triples than this are too many for a default workload."""

_REFINED_CELLS = 2**22
"""Cells of all marginals together that swap refinement works on."""

_PAIR = 2
"""Attributes of a marginal that may be measured off the tree; larger ones were seen to do harm (docs/mechanism.md)."""

_ENOUGH = 3
"""Questions about a marginal that earlier releases have answered, from which on no other is asked about it."""

_NAMED = 3
"""Attributes that an error names."""

_MOST = 200_000
"""More marginals than this are too many for any workload."""


def workload_cliques(domain: Domain, workload: WorkloadConfig) -> tuple[Clique, ...]:
    """The marginals a workload stands for.

    Raises:
        ConfigError: If there is none, or too many, or one that is too large.
    """
    cliques = _stated_cliques(domain, workload)
    for clique in cliques:
        if domain.size(clique) > ROUND_CELLS:
            sizes = ", ".join(f"{name!r} has {domain[name].size:,} values" for name in clique)
            raise ConfigError(
                f"Expected marginals of at most {ROUND_CELLS:,} cells in the workload, got one of "
                f"{domain.size(clique):,}: {sizes}. Take an attribute out of it, or give columns fewer bins or values "
                "in the schema."
            )
    return cliques


def _stated_cliques(domain: Domain, workload: WorkloadConfig) -> tuple[Clique, ...]:
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
    if len(cliques) > _MOST:
        raise ConfigError(
            f"Expected at most {_MOST:,} marginals in the workload; degree={degree} and "
            f"max_cells={workload.max_cells} make more. Lower one of them, or list marginals."
        )
    return cliques


def _default_cliques(domain: Domain, max_cells: int) -> tuple[Clique, ...]:
    """All triples, pairs in no triple and attributes in no pair; without triples if there are too many of them."""
    singles = tuple((name,) for name in domain.names)
    pairs, triples = _all_of(domain, 2, max_cells), _all_of(domain, 3, max_cells, _MANY)
    return maximal((*singles, *(pairs if len(pairs) <= _MOST else ()), *(triples if len(triples) <= _MANY else ())))


def _all_of(domain: Domain, degree: int, max_cells: int, most: int = _MOST) -> tuple[Clique, ...]:
    """All marginals of `degree` attributes with at most `max_cells` cells; at most `most + 1` of them."""
    return tuple(islice(_fitting(domain.attributes, degree, max_cells), most + 1))


def _fitting(attributes: Sequence[Attribute], degree: int, room: int) -> Iterator[Clique]:
    """In the attributes' order; what cannot fit is not gone through, for in a wide table it is nearly all."""
    if degree == 0:
        yield ()
        return
    least = min((attribute.size for attribute in attributes), default=1)
    for place, attribute in enumerate(attributes):
        if attribute.size * least ** (degree - 1) <= room:
            for rest in _fitting(attributes[place + 1 :], degree - 1, room // attribute.size):
                yield (attribute.name, *rest)


def refined_cliques(domain: Domain, config: WorkloadConfig) -> tuple[Clique, ...]:
    """The workload's marginals that swap refinement works on: the smallest, as many as there is room for."""
    found, room = list[Clique](), _REFINED_CELLS
    for clique in sorted(workload_cliques(domain, config), key=domain.size):
        room -= domain.size(clique)
        if room < 0:
            break
        found.append(clique)
    return tuple(found)


def candidate_cliques(domain: Domain, workload: tuple[Clique, ...]) -> tuple[Clique, ...]:
    """Every marginal that may be measured: the workload's downward closure and all single attributes."""
    return downward_closure((*workload, *((name,) for name in domain.names)))


def rotate(domain: Domain, cliques: Sequence[Clique], most: int = ROUND_CELLS) -> tuple[tuple[Clique, ...], ...]:
    """What each round looks at, one after another and then again: of too many marginals a part, from their sizes alone.

    Where they have no more than `most` cells in all, every round looks at all of them. Otherwise single attributes are
    always looked at, and so are marginals of more attributes, fewest first, as far as they fill half of the room. The
    others are dealt out like cards, largest first, so that the turns differ by less than one marginal.
    """
    cells = {clique: domain.size(clique) for clique in cliques}
    if sum(cells.values()) <= most:
        return (tuple(cliques),)
    always, place = _always(cells, most // 2), {clique: at for at, clique in enumerate(cliques)}
    rest = sorted((clique for clique in cliques if clique not in always), key=lambda clique: -cells[clique])
    room = max(most // 2, most - sum(cells[clique] for clique in always))
    count = max(1, math.ceil(sum(cells[clique] for clique in rest) / room))
    turns = (always.union(rest[turn::count]) for turn in range(count))
    return tuple(tuple(sorted(turn, key=place.__getitem__)) for turn in turns)


def _always(cells: Mapping[Clique, int], room: int) -> set[Clique]:
    found = {clique for clique in cells if len(clique) == 1}
    for degree in range(2, 1 + max(map(len, cells))):
        more = found | {clique for clique in cells if len(clique) == degree}
        if sum(cells[clique] for clique in more) > room:
            break
        found = more
    return found


def round_candidates(state: State) -> tuple[Clique, ...]:
    """The marginals that this round considers."""
    turns = state.plan.turns
    return turns[len(state.rounds) % len(turns)]


def check_smallest_model(domain: Domain, cap_mb: float) -> None:
    """Refuse a domain whose one-way model exceeds the size limit, by itself or once it keeps the rules."""
    needed = interaction_graph(replace(domain, zeros=()), ()).model_mb()
    if needed <= cap_mb:
        _check_rules_fit(domain, cap_mb)
    else:
        largest = sorted(domain.attributes, key=lambda attribute: -attribute.size)[:_NAMED]
        raise ModelTooLargeError(needed, cap_mb, {attribute.name: attribute.size for attribute in largest})


def _check_rules_fit(domain: Domain, cap_mb: float) -> None:
    for count, zeros in enumerate(domain.zeros, 1):
        needed = interaction_graph(replace(domain, zeros=domain.zeros[:count]), ()).model_mb()
        if needed > cap_mb:
            sizes = ", ".join(f"{name!r} has {domain[name].size:,} values" for name in zeros.clique)
            raise SchemaError(
                f"Expected rules that a model of max_model_size_mb={cap_mb:g} can keep; with the rule {zeros.rule!r} "
                f"it takes {needed:.3g} MB: {sizes}. Give columns fewer bins, leave out a rule, or raise "
                "max_model_size_mb."
            )


def size_limit(state: State, rho: Fraction) -> float:
    """The size limit of the model in MB. It grows with the fraction of the budget spent, the next rho included."""
    plan = state.plan
    return plan.config.max_model_size_mb * float((state.spent + rho) / plan.rho)


def within_size_limit(state: State, cliques: Iterable[Clique], cap_mb: float) -> tuple[Clique, ...]:
    """The cliques whose measurement keeps the model within the size limit."""
    room_mb = _room_mb(state, cap_mb)
    return tuple(clique for clique, growth in _growth_mb(state, cliques).items() if growth <= room_mb)


def with_off_tree(state: State, cliques: Iterable[Clique], cap_mb: float) -> tuple[Clique, ...]:
    """Cliques within the size limit, and pairs that the tree will never have room for but that fit off the tree."""
    now_mb, last_mb = _room_mb(state, cap_mb), _room_mb(state, state.plan.config.max_model_size_mb)
    return tuple(
        clique
        for clique, growth in _growth_mb(state, cliques).items()
        if growth <= now_mb or (growth > last_mb and len(clique) == _PAIR and _own_mb(state, clique) <= last_mb)
    )


def is_off_tree(state: State, clique: Clique) -> bool:
    """Whether measuring the clique would make the tree exceed its size limit. A single attribute never does."""
    return len(clique) > 1 and _growth_mb(state, [clique])[clique] > _room_mb(
        state, state.plan.config.max_model_size_mb
    )


def _own_mb(state: State, clique: Clique) -> float:
    model = state.model
    return 0.0 if clique in model.off_tree else table_mb(model.compression.model_domain, clique)


def _room_mb(state: State, cap_mb: float) -> float:
    """How much the model may still grow, in MB."""
    return max(0.0, cap_mb - _graph(state).model_mb() - state.model.off_tree_mb)


def _growth_mb(state: State, cliques: Iterable[Clique]) -> dict[Clique, float]:
    """How much each clique would make the tree grow, in MB: a prediction, without a fit."""
    graph, tree = _graph(state), state.model.tree
    now_mb = graph.model_mb()
    return {
        clique: 0.0 if tree.home(clique) is not None else max(0.0, graph.with_clique(clique).model_mb() - now_mb)
        for clique in cliques
    }


def _graph(state: State) -> InteractionGraph:
    """The graph of attributes that the tree joins."""
    return interaction_graph(state.model.tree.domain, [m.clique for m in state.evidence if not m.is_off_tree])


def candidate(state: State, clique: Clique, partition: Partition, penalty: float = 0.0, weight: int = 1) -> Candidate:
    """A marginal and a partition of the model's own cells of it; `penalty`, in rows, counts as often as it weighs."""
    expected = _expected(state, clique, partition)
    units = min(math.ceil(weight * penalty * GRID), MAX_PENALTY)
    return Candidate(clique, state.model.compression.to_full(clique, partition), expected, units, weight)


def _expected(state: State, clique: Clique, partition: Partition) -> Ints:
    """The model's group counts, in grid units."""
    return to_grid(partition.sum_expected(state.model.project_compressed(clique)))


def full_candidate(state: State, clique: Clique, rho: Fraction, weight: int = 1) -> Candidate:
    """A candidate of all cells of a marginal; the penalty is the noise of cells where rows are possible."""
    cells = finest(state.model.tree.domain.size(clique))
    noise = noise_l1(cells, noise_scale(rho, state.plan.sensitivity)) * float(state.model.possible(clique).mean())
    return candidate(state, clique, cells, noise, weight)


def partitioned_candidates(
    state: State, cliques: Iterable[Clique], rho: Fraction, strategy: Strategy, granularities: tuple[float, ...]
) -> tuple[Candidate, ...]:
    """Candidates of each clique at each granularity, with their expected noise as penalty."""
    plan, total = state.plan, state.model.total
    sigma = noise_scale(rho, plan.sensitivity)
    found: list[Candidate] = []
    for clique in cliques:
        is_ordered = tuple(plan.domain[name].is_ordered for name in clique)
        partitions = strategy(state.model.project_compressed(clique), is_ordered, sigma, granularities)
        partitions = _with_known(state, clique, partitions)
        for partition in _worthwhile(partitions, sigma, total):
            expected = _expected(state, clique, partition)
            units = noise_cost(expected, partition, sigma)
            found.append(Candidate(clique, state.model.compression.to_full(clique, partition), expected, units))
    return tuple(found)


def _with_known(state: State, clique: Clique, partitions: tuple[Partition, ...]) -> tuple[Partition, ...]:
    """The questions about a marginal that earlier releases have answered; new ones only while these are few.

    The answer to a question that was asked before adds to those before it, and tells what has changed since.
    """
    compression, past = state.model.compression, state.plan.past
    if past is None:
        return partitions
    asked = [b.partition for b in past.beliefs if b.clique == clique and compression.holds(clique, b.partition)]
    known = tuple(compression.to_compressed(clique, partition) for partition in asked)
    return known if len(known) >= _ENOUGH else distinct((*known, *partitions))


def noise_l1(partition: Partition, sigma: float) -> float:
    """The expected L1 norm of the noise on all groups, where that on a whole count has scale sigma.

    Of a grid contrasts are measured: a row moves them by less, and what they leave out carries no
    noise. With k of G dimensions left, both the scale and its part on each group fall by sqrt(k / G).
    """
    share = degrees(partition.axes) / partition.count if partition.axes else 1.0
    return NOISE_L1 * sigma * share * partition.count


def noise_cost(expected: Ints, partition: Partition, sigma: float) -> int:
    """What noise would cost a candidate, in grid units: of a group no more than the model expects in it.

    A group in which few rows are expected can lose no more than these, however large the noise: a fitted count is
    never negative, and the total is known. So many groups that are nearly empty cost little.
    """
    each = math.ceil(noise_l1(partition, sigma) * GRID / partition.count)
    return int(np.minimum(each, expected).sum())


def _worthwhile(partitions: tuple[Partition, ...], sigma: float, total: float) -> Iterator[Partition]:
    """The partitions whose noise is below the largest possible difference, or else the coarsest one."""
    coarsest = min((partition.count for partition in partitions), default=0)
    for partition in partitions:
        if partition.count == coarsest or noise_l1(partition, sigma) <= 2 * total:
            yield partition
