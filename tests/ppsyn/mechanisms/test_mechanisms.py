from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.loops import SMALL, ScriptedCurator, crowded_plan, small_plan, steps

from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Domain
from ppsyn.mechanisms import MECHANISMS
from ppsyn.mechanisms.base import State
from ppsyn.mechanisms.loop import absorb, next_request, run, start
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount
from ppsyn.privacy.requests import Answer, MeasureRequest, SelectRequest
from ppsyn.runs.checkpoints import freeze, thaw
from ppsyn.schemas.config import AlgorithmConfig
from ppsyn.serialization import Fitted, pack, unpack

NAMES = sorted(MECHANISMS)


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 50), lost=st.frozensets(st.integers(0, 40), max_size=6))
@settings(deadline=None, max_examples=8)
def test_every_method_uses_its_budget_to_the_last_fraction(name: str, seed: int, lost: frozenset[int]) -> None:
    plan, curator = small_plan(mechanism=name), ScriptedCurator(seed, lost=lost)
    state = run(curator, start(plan))
    assert curator.spent == plan.rho == state.spent
    assert state.stage == "done"


@given(lost=st.frozensets(st.integers(6, 40), min_size=5))
@settings(deadline=None, max_examples=15)
def test_a_run_with_compressed_attributes_survives_any_losses(lost: frozenset[int]) -> None:
    plan, curator = small_plan(max_values=3), ScriptedCurator(1, lost=lost)
    assert run(curator, start(plan)).stage == "done"
    assert curator.spent == plan.rho


def test_what_lost_selections_leave_is_measured_in_groups_that_the_model_holds_apart() -> None:
    # All selections are lost, so that the last of the budget is less than a round is worth.
    plan, curator = small_plan(max_values=3), ScriptedCurator(1, lost=frozenset(range(6, 1000)))
    last = [(state, request) for state, request in steps(plan, curator)][-1]
    assert isinstance(last[1], MeasureRequest)
    assert last[0].model.compression.attributes
    last[0].model.compression.to_compressed(last[1].clique, last[1].partition)


@pytest.mark.parametrize("name", NAMES)
def test_every_method_asks_the_same_of_the_same_answers(name: str) -> None:
    plan, curator = small_plan(mechanism=name), ScriptedCurator(3)
    asked = [(state, request) for state, request in steps(plan, curator)]
    again = [request.digest() for _, request in steps(plan, ScriptedCurator(3))]
    assert [request.digest() for _, request in asked] == again


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_of_every_method_goes_on_as_the_run_would_have(name: str) -> None:
    plan = small_plan(**({"max_values": 2} if name == "ppsyn" else {"mechanism": name}))
    states = [state for state, _ in steps(plan, ScriptedCurator(5)) if not state.one_way and state.chosen is None]
    for state in states[:3]:
        again = thaw(plan, unpack(pack(freeze(state, {})), plan.domain))
        left, right = next_request(state), next_request(again)
        assert left is not None
        assert right is not None
        assert left.digest() == right.digest()
        assert again.planned_rho == state.planned_rho


def test_a_checkpoint_with_off_tree_pairs_goes_on_to_the_same_model() -> None:
    plan, curator = crowded_plan(), ScriptedCurator(1)
    states, answers = list[State](), list[Answer]()
    for state, request in steps(plan, ScriptedCurator(1)):
        states.append(state)
        answers.append(curator.answer(request))
    at = next(i for i, s in enumerate(states) if s.model.off_tree and s.chosen is None)
    state = thaw(plan, unpack(pack(freeze(states[at], {})), plan.domain))
    for answer in answers[at:]:
        request = next_request(state)
        assert request is not None
        state = absorb(state, request, answer)
    whole = run(ScriptedCurator(1), start(plan))
    assert pack(freeze(state, {})) == pack(freeze(whole, {}))


@pytest.mark.parametrize("name", NAMES)
def test_a_domain_of_one_value_is_released_by_every_mechanism(name: str) -> None:
    plan = small_plan(domain=Domain((Attribute("only", 1),)), workload={"degree": 1}, mechanism=name)
    assert run(ScriptedCurator(), start(plan)).stage == "done"


def test_rounds_are_refused_with_a_mechanism_that_plans_its_own() -> None:
    with pytest.raises(ValidationError, match="Expected no rounds: aim plans its own"):
        AlgorithmConfig.model_validate({"mechanism": "aim", "rounds": 7})
    whole = AlgorithmConfig.model_validate({"mechanism": "aim"})
    assert AlgorithmConfig.model_validate(whole.model_dump()) == whole


def test_aim_weighs_candidates_by_what_they_share_with_the_workload() -> None:
    plan = small_plan(mechanism="aim", workload={"cliques": (("a", "b"), ("a", "c"))})
    request = next(request for _, request in steps(plan, ScriptedCurator()) if isinstance(request, SelectRequest))
    weights = {candidate.clique: candidate.weight for candidate in request.candidates}
    assert weights["a",] == 2
    assert weights["a", "b"] == 3
    assert weights["b",] == 1
    assert all(candidate.partition.is_finest for candidate in request.candidates)


def test_aim_plans_sixteen_rounds_an_attribute_with_a_tenth_for_selection() -> None:
    plan = small_plan(mechanism="aim")
    whole = plan.rho / (16 * len(SMALL.attributes))
    costs = [request.rho for _, request in steps(plan, ScriptedCurator())]
    assert [float(cost / whole) for cost in costs[:5]] == pytest.approx([0.9] * 5)
    assert float(costs[5] / whole) == pytest.approx(0.1)
    assert float(costs[6] / whole) == pytest.approx(0.9)


def test_mst_chooses_a_spanning_tree_for_a_third_of_the_budget_each() -> None:
    plan, curator = small_plan(mechanism="mst"), ScriptedCurator(1)
    state = run(curator, start(plan))
    pairs = [done.clique for done in state.rounds]
    joined = {"a"}
    while grown := {name for pair in pairs if set(pair) & joined for name in pair} - joined:
        joined |= grown
    assert joined == {"a", "b", "c", "d"}
    assert len(pairs) == 3
    kinds = [sum((r.rho for r in curator.asked if isinstance(r, kind)), Fraction(0)) for kind in (SelectRequest,)]
    assert float(kinds[0] / plan.rho) == pytest.approx(1 / 3)


def test_mst_takes_values_that_are_hardly_there_as_one() -> None:
    rng = np.random.default_rng(0)
    domain = Domain((Attribute("a", 10), Attribute("b", 3)))
    table = EncodedTable(domain, {"a": rng.integers(0, 3, 4000, np.int32), "b": rng.integers(0, 3, 4000, np.int32)})
    plan = small_plan(rho=0.5, domain=domain, mechanism="mst")
    state = run(TableCurator(TableCounter(table), MemoryAccount(plan.rho)), start(plan))
    drawn, told = (next(m for m in of if m.clique == ("a",)) for of in (state.measurements, state.evidence))
    is_seen = drawn.noisy_counts >= 3 * drawn.sigma
    assert is_seen[:3].all()
    assert is_seen.sum() <= 6  # four of seven passed by noise alone: once in 10^10
    assert np.unique(told.partition.groups[~is_seen]).size == 1
    assert told.partition.count == is_seen.sum() + 1
    assert state.model.project(("a",))[3:].max() < 50


def test_mwem_asks_about_the_workload_alone() -> None:
    plan, curator = small_plan(mechanism="mwem"), ScriptedCurator(2)
    run(curator, start(plan))
    asked = {c.clique for r in curator.asked if isinstance(r, SelectRequest) for c in r.candidates}
    assert asked <= set(plan.workload)
    assert sum(isinstance(request, MeasureRequest) for request in curator.asked) == len(SMALL.attributes)


def test_independent_measures_each_attribute_once() -> None:
    plan, curator = small_plan(mechanism="independent"), ScriptedCurator(2)
    run(curator, start(plan))
    assert [request.clique for request in curator.asked if isinstance(request, MeasureRequest)] == [
        ("a",),
        ("b",),
        ("c",),
        ("d",),
    ]


@pytest.mark.parametrize("name", ["ppsyn", "aim", "mst", "mwem"])
def test_every_method_learns_a_dependency_that_is_plain_to_see(name: str) -> None:
    rng = np.random.default_rng(1)
    first = rng.integers(0, 4, 20_000, np.int32)
    columns = {"a": first, "b": (first + rng.integers(0, 2, 20_000)).astype(np.int32) % 4, "c": first // 2}
    domain = Domain((Attribute("a", 4), Attribute("b", 4), Attribute("c", 2)))
    table = EncodedTable(domain, {name: column.astype(np.int32) for name, column in columns.items()})
    plan = small_plan(rho=1.0, domain=domain, mechanism=name)
    state = run(TableCurator(TableCounter(table), MemoryAccount(plan.rho)), start(plan))
    for pair in combinations(domain.names, 2):
        real = TableCounter(table).counts(pair)
        assert np.abs(state.model.project(pair).ravel() - real).sum() / 2 < 0.03 * real.sum()


def test_an_attribute_that_is_compressed_is_measured_in_whole_groups() -> None:
    plan = small_plan(max_values=4, workload={"cliques": (("a", "b"), ("b", "c"))})
    compressed = [state for state, _ in steps(plan, ScriptedCurator(4)) if state.model.compression.attributes]
    assert compressed
    compression = compressed[0].model.compression
    assert compression.model_domain["b"].size <= 4
    for state in compressed:
        for measurement in state.evidence:
            compression.to_compressed(measurement.clique, measurement.partition)


def test_an_attribute_whose_answers_were_all_lost_is_not_compressed() -> None:
    plan = small_plan(max_values=4)
    requests = [request for _, request in steps(plan, ScriptedCurator())]
    lost = frozenset(i for i, request in enumerate(requests[:8]) if getattr(request, "clique", None) == ("b",))
    state = run(ScriptedCurator(lost=lost), start(plan))
    assert "b" not in state.model.compression.attributes


def test_attributes_that_the_workload_uses_get_more() -> None:
    often, seldom = (small_plan(workload={"cliques": cliques}) for cliques in ((("a", "c"), ("a", "d")), (("b", "d"),)))
    (left, right) = (
        next(request.rho for request in start(plan).one_way if request.clique == ("a",)) for plan in (often, seldom)
    )
    assert left > right > 0


def test_a_compression_survives_packing() -> None:
    state = run(ScriptedCurator(7), start(small_plan(max_values=3)))
    fitted = unpack(pack(Fitted(state.measurements, state.evidence, state.rounds, state.model, {})), state.plan.domain)
    for clique in (("b",), ("a", "b"), ("b", "d")):
        np.testing.assert_array_equal(fitted.model.project(clique), state.model.project(clique))
