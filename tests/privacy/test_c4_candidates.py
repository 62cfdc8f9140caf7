"""Claim C4: what may be drawn is settled before the draw, from released values alone."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from privacy.instruments import PLENTY, drawn_for
from privacy.neighbours import encoded
from support.loops import ScriptedCurator, crowded_plan, steps

from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import InvariantError
from ppsyn.mechanisms import candidates as selection
from ppsyn.mechanisms.base import Plan, State
from ppsyn.mechanisms.loop import absorb, make_plan, next_request
from ppsyn.model.junction_tree import interaction_graph
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount
from ppsyn.privacy.requests import MeasureRequest, Selected, SelectRequest
from ppsyn.schemas.config import AlgorithmConfig, WorkloadConfig

DOMAIN = Domain(tuple(Attribute(f"a{place}", size) for place, size in enumerate([4, 3, 5, 2])))
ONE_WAY_MB = interaction_graph(DOMAIN, ()).model_mb()


def plan_with(max_model_size_mb: float) -> Plan:
    return make_plan(
        DOMAIN, Fraction(1, 10), 1, AlgorithmConfig(max_model_size_mb=max_model_size_mb, rounds=4, max_fit_steps=5)
    )


def selections(plan: Plan) -> Iterator[tuple[State, SelectRequest]]:
    for state, request in steps(plan, ScriptedCurator()):
        if isinstance(request, SelectRequest):
            yield state, request


def test_c4_a_tight_cap_takes_large_cliques_from_the_set_before_it_is_asked_about() -> None:
    tight = {c.clique for _, request in selections(plan_with(2 * ONE_WAY_MB)) for c in request.candidates}
    roomy = {c.clique for _, request in selections(plan_with(1.0)) for c in request.candidates}
    assert tight < roomy
    assert {len(clique) for clique in tight} < {len(clique) for clique in roomy}


@pytest.mark.parametrize("factor", [1.5, 3, 10])
def test_c4_every_candidate_keeps_the_model_under_the_cap(factor: float) -> None:
    for state, request in selections(plan_with(factor * ONE_WAY_MB)):
        graph = interaction_graph(DOMAIN, (measurement.clique for measurement in state.measurements))
        for candidate in request.candidates:
            grown = graph.with_clique(candidate.clique).model_mb()
            assert grown <= factor * ONE_WAY_MB or graph.holds(candidate.clique)


@pytest.mark.parametrize("cells", [600, 900, 3_000])
def test_c4_whatever_is_drawn_the_model_stays_under_the_cap_with_what_the_tree_has_no_room_for(cells: int) -> None:
    plan, off_tree = crowded_plan(cells, workload=WorkloadConfig(degree=3)), 0
    for seed in range(3):
        for state, _ in steps(plan, ScriptedCurator(seed)):
            assert state.model.size_mb <= plan.config.max_model_size_mb * (1 + 1e-12)
            off_tree += len(state.model.off_tree)
    assert off_tree


def test_c4_the_mechanism_runs_on_the_candidates_and_on_nothing_else() -> None:
    table = encoded(DOMAIN, [(0, 1, 2, 1), (3, 2, 4, 0)])
    for _, request in selections(plan_with(1.0)):
        assert len(drawn_for(table, request, 1).exact) == len(request.candidates)


def test_c4_an_empty_list_is_refused_and_not_charged() -> None:
    account = MemoryAccount(PLENTY)
    with pytest.raises(InvariantError, match="nothing was charged"):
        TableCurator(TableCounter(encoded(DOMAIN, [])), account).answer(SelectRequest((), Fraction(1, 10)))
    assert account.ledger.spent == 0


def test_c4_whichever_candidate_is_drawn_is_the_one_measured() -> None:
    state, request = next(selections(plan_with(1.0)))
    for index, candidate in enumerate(request.candidates):
        measured = next_request(absorb(state, request, Selected(index)))
        assert isinstance(measured, MeasureRequest)
        assert (measured.clique, measured.partition) == (candidate.clique, candidate.partition)


def test_c4_candidates_follow_from_the_answers_alone() -> None:
    first, second = ([r.digest() for _, r in steps(plan_with(1.0), ScriptedCurator(seed=5))] for _ in range(2))
    assert first == second


def test_c4_other_answers_give_other_candidates() -> None:
    first, second = ([r.digest() for _, r in steps(plan_with(1.0), ScriptedCurator(seed=s))] for s in (5, 6))
    assert first != second


def test_c4_single_attributes_are_always_candidates_so_there_is_always_something_to_draw() -> None:
    closure = selection.candidate_cliques(DOMAIN, (("a0", "a1"),))
    assert {(name,) for name in DOMAIN.names} <= set(closure)
    for _, request in selections(plan_with(1.001 * ONE_WAY_MB)):
        assert {(name,) for name in DOMAIN.names} <= {candidate.clique for candidate in request.candidates}


def crowded(max_model_size_mb: float = 1.0, most: int = 60) -> Plan:
    """A plan with more marginals than a round has room for."""
    plan = plan_with(max_model_size_mb)
    return replace(plan, turns=selection.rotate(DOMAIN, plan.turns[0], most))


def test_c4_marginals_that_take_turns_are_called_up_by_the_number_of_rounds_whatever_the_answers() -> None:
    plan = crowded()
    assert len(plan.turns) > 1
    for seed in (1, 2):
        for state, request in steps(plan, ScriptedCurator(seed=seed)):
            if isinstance(request, SelectRequest):
                turn = plan.turns[len(state.rounds) % len(plan.turns)]
                assert {candidate.clique for candidate in request.candidates} == set(turn)


def test_c4_turns_are_the_same_for_tables_of_any_content() -> None:
    """They are settled by `make_plan`, which is given no table."""
    assert crowded().turns == crowded().turns
    assert set().union(*crowded().turns) == set(plan_with(1.0).turns[0])


def test_c4_a_lost_selection_does_not_move_the_turn_on() -> None:
    plan = crowded()
    first = next(number for number, (_, r) in enumerate(steps(plan, ScriptedCurator())) if isinstance(r, SelectRequest))
    asked = [r for _, r in steps(plan, ScriptedCurator(lost=frozenset({first}))) if isinstance(r, SelectRequest)]
    assert {c.clique for c in asked[0].candidates} == {c.clique for c in asked[1].candidates} == set(plan.turns[0])
