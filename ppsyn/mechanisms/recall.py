"""What the fit uses of the past: as much as the model has room for, what tells most first."""

import math
from collections.abc import Iterator
from dataclasses import replace

from ppsyn.mechanisms.base import State
from ppsyn.mechanisms.past import Belief, confronted
from ppsyn.model.junction_tree import interaction_graph, table_mb

_PAIR = 2
"""Attributes of a marginal that may be loose."""


def recall(state: State, most: int | None = None) -> State:
    """Choose what of the past the fit uses: marginals of at most so many attributes that fit the model and its cap."""
    past = state.plan.past
    if past is None:
        return state
    beliefs, compression = confronted(past, state.measurements).beliefs, state.model.compression
    fitting = [
        index
        for index, belief in enumerate(beliefs)
        if len(belief.clique) <= (most or math.inf)
        and not (len(belief.clique) == 1 and belief.clique[0] in compression.attributes)
        and compression.holds(belief.clique, belief.partition)
    ]
    return current(replace(state, learned=dict(_room(state, beliefs, fitting))))


def current(state: State) -> State:
    """The state with evidence that takes in all its answers: what they make of the past, and themselves."""
    past = state.plan.past
    if past is None:
        return replace(state, evidence=state.told)
    aged = confronted(past, state.measurements).beliefs
    found = (
        replace(aged[index].measurement(), is_off_tree=is_off_tree) for index, is_off_tree in state.learned.items()
    )
    return replace(state, evidence=(*found, *state.told))


def _room(state: State, beliefs: tuple[Belief, ...], fitting: list[int]) -> Iterator[tuple[int, bool]]:
    """Which of these the model has room for, and whether beside its tree."""
    domain, cap_mb = state.model.compression.model_domain, state.plan.config.max_model_size_mb
    graph, beside, off_tree_mb = interaction_graph(domain, ()), set[tuple[str, ...]](), 0.0
    found = dict[int, bool]()
    for index in sorted(fitting, key=lambda index: (len(beliefs[index].clique) > 1, -_telling(beliefs[index]))):
        clique = beliefs[index].clique
        if clique in beside or graph.holds(clique):
            found[index] = clique in beside
        elif (larger := graph.with_clique(clique)).model_mb() + off_tree_mb <= cap_mb:
            graph, found[index] = larger, False
        elif len(clique) == _PAIR and state.plan.mechanism.refines_rows:
            own_mb = table_mb(domain, clique)
            if graph.model_mb() + off_tree_mb + own_mb <= cap_mb:
                found[index], off_tree_mb = True, off_tree_mb + own_mb
                beside.add(clique)
    yield from sorted(found.items())


def _telling(belief: Belief) -> float:
    return belief.degrees / belief.variance
