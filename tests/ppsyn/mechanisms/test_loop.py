from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.loops import ScriptedCurator, replay, small_plan, steps

from ppsyn.benchmark.paper.strategies import STRATEGIES
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import ConfigError, InvariantError, ModelTooLargeError
from ppsyn.mechanisms.base import Plan, State
from ppsyn.mechanisms.loop import absorb, next_request, run, start
from ppsyn.privacy.budget import round_down
from ppsyn.privacy.requests import Answer, Lost, MeasureRequest, Request, Selected, SelectRequest
from ppsyn.schemas.config import WorkloadConfig


def recorded(seed: int) -> tuple[State, ScriptedCurator, list[Answer]]:
    plan, answers = small_plan(), list[Answer]()
    curator = ScriptedCurator(seed)
    state = start(plan)
    while (request := next_request(state)) is not None:
        answers.append(curator.answer(request))
        state = absorb(state, request, answers[-1])
    return state, curator, answers


def recorded_requests(plan: Plan) -> list[Request]:
    curator = ScriptedCurator(12)
    run(curator, start(plan))
    return curator.asked


@given(st.integers(0, 2**32), st.floats(1e-4, 2.0), st.integers(1, 40), st.floats(0.05, 0.9), st.floats(0.05, 0.9))
@settings(max_examples=15, deadline=None)
def test_the_budget_is_used_exactly(seed: int, rho: float, rounds: int, initial: float, select: float) -> None:
    plan = small_plan(rho, rounds=rounds, one_way_fraction=initial, select_budget_fraction=select, max_fit_steps=5)
    curator = ScriptedCurator(seed)
    state = run(curator, start(plan))
    assert sum((request.rho for request in curator.asked), Fraction(0)) == plan.rho == state.spent


@given(st.integers(0, 2**32), st.sets(st.integers(0, 40)))
@settings(max_examples=15, deadline=None)
def test_lost_answers_are_charged_and_the_rest_of_the_budget_is_used(seed: int, lost: set[int]) -> None:
    plan = small_plan(max_fit_steps=5)
    curator = ScriptedCurator(seed, lost=frozenset(lost))
    state = run(curator, start(plan))
    assert state.left == 0
    assert sum((request.rho for request in curator.asked), Fraction(0)) == plan.rho
    assert np.isfinite(state.model.total)


def test_a_run_that_loses_every_answer_still_ends_with_a_uniform_model() -> None:
    state = run(ScriptedCurator(0, lost=frozenset(range(10_000))), start(small_plan()))
    assert state.left == 0
    assert state.measurements == ()
    assert np.allclose(state.model.project(("a",)), 1 / 3)


def test_the_same_answers_give_the_same_requests_and_the_same_bits() -> None:
    state, curator, answers = recorded(3)
    again, asked = replay(small_plan(), answers)
    assert [request.digest() for request in asked] == [request.digest() for request in curator.asked]
    assert all(np.array_equal(x, y) for x, y in zip(state.model.beliefs, again.model.beliefs, strict=True))
    assert state.model.total == again.model.total
    assert state.rounds == again.rounds


def test_a_resumed_run_goes_on_as_the_first_would_have() -> None:
    state, curator, answers = recorded(4)
    half, _ = replay(small_plan(), answers[: len(answers) // 2])
    rest = iter(answers[len(answers) // 2 :])
    while (request := next_request(half)) is not None:
        assert request.digest() in {asked.digest() for asked in curator.asked}
        half = absorb(half, request, next(rest))
    assert all(np.array_equal(x, y) for x, y in zip(state.model.beliefs, half.model.beliefs, strict=True))


@pytest.mark.parametrize(("size", "fraction"), [(2, 0.4), (3, 0.25), (16, 0.2 * (1 + 1 / 225))])
def test_the_fewer_values_attributes_have_the_more_their_one_way_marginals_get(size: int, fraction: float) -> None:
    plan = small_plan(domain=Domain(tuple(Attribute(name, size) for name in "abcdef")))
    assert float(sum(request.rho for request in start(plan).one_way) / plan.rho) == pytest.approx(fraction)


def test_one_way_marginals_come_first_and_large_ones_twice() -> None:
    curator = ScriptedCurator(5, rows=300_000)
    run(curator, start(small_plan()))
    first = [request for request in curator.asked[:5] if isinstance(request, MeasureRequest)]
    assert [request.clique for request in first] == [("a",), ("b",), ("c",), ("d",), ("b",)]
    assert [request.partition.count for request in first[:4]] == [3, 16, 2, 5]
    assert isinstance(curator.asked[5], SelectRequest)


FEW_VALUES = 1 + ((1 / 2 + 1 / 23 + 1 + 1 / 4) / 4) ** 2
"""By which the attributes of the small plan raise the least fraction for one-way marginals."""


@pytest.mark.parametrize(("rows", "share"), [(100, 0.6), (300_000, 0.3 * FEW_VALUES)])
def test_noisy_attributes_are_measured_again_and_clear_ones_are_not(rows: int, share: float) -> None:
    plan, spent = small_plan(rho=0.05, one_way_fraction=0.3, max_one_way_fraction=0.6), Fraction(0)
    for state, request in steps(plan, ScriptedCurator(5, rows=rows)):
        if isinstance(request, SelectRequest):
            assert state.planned_rho == round_down(state.left / plan.config.rounds)
            break
        spent += request.rho
    assert float(spent) == pytest.approx(share * 0.05)


def test_first_shares_follow_the_two_thirds_rule() -> None:
    requests = start(small_plan(rho=1.0, one_way_fraction=0.2, coarse_fraction=0.25)).one_way
    shares = np.array([float(request.rho) for request in requests])
    weights = np.array([3, 24, 2, 5]) ** (2 / 3)
    assert np.allclose(shares, 0.2 * FEW_VALUES * weights / weights.sum() * [1, 0.25, 1, 1])


def test_both_stages_of_the_first_measurements_cost_their_share_and_no_more() -> None:
    plan, spent = small_plan(rho=1.0, one_way_fraction=0.2, max_one_way_fraction=0.2), Fraction(0)
    for request in recorded_requests(plan):
        if isinstance(request, SelectRequest):
            break
        spent += request.rho
    assert 1 - 1e-9 < float(spent) / (0.2 * FEW_VALUES) <= 1


def test_surprising_answers_keep_the_noise_and_dull_ones_halve_it() -> None:
    state, curator, _ = recorded(6)
    costs = [request.rho for request in curator.asked if isinstance(request, SelectRequest)]
    for before, after, done in zip(costs[:-2], costs[1:-1], state.rounds, strict=False):
        assert float(after / before) == pytest.approx(4 if done.noise > done.distance else 1, rel=1e-9)


def test_every_request_keeps_the_model_under_its_cap() -> None:
    plan = small_plan(max_model_size_mb=0.0009)
    state = run(ScriptedCurator(7), start(plan))
    assert sum(belief.size for belief in state.model.beliefs) * 8 / 2**20 <= 0.0009


def test_a_domain_too_large_for_the_cap_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(ModelTooLargeError) as caught:
        small_plan(domain=Domain((Attribute("a", 10_000),)), max_model_size_mb=0.01)
    assert caught.value.needed_mb == pytest.approx(10_000 * 8 / 2**20)
    assert "max_model_size_mb" in str(caught.value)


def test_a_budget_too_small_to_divide_is_refused() -> None:
    with pytest.raises(ConfigError, match="larger budget"):
        small_plan(rho=2.0**-62)


def test_a_workload_that_names_unknown_attributes_is_refused_with_their_names() -> None:
    with pytest.raises(ConfigError, match="'zip'"):
        small_plan(workload=WorkloadConfig(cliques=(("a", "zip"),)))


def test_an_answer_of_the_wrong_kind_is_our_mistake() -> None:
    state = start(small_plan())
    request = next_request(state)
    assert request is not None
    with pytest.raises(InvariantError):
        absorb(state, request, Selected(0))


def test_attributes_outside_the_workload_are_measured_alone() -> None:
    plan = small_plan(workload=WorkloadConfig(cliques=(("a", "c"),)))
    state = run(ScriptedCurator(8), start(plan))
    assert {("b",), ("d",)} <= {measurement.clique for measurement in state.measurements}


@pytest.mark.parametrize("name", ["balanced", "merge-split", "cells"])
def test_every_partition_strategy_runs_to_the_end(name: str) -> None:
    state = run(ScriptedCurator(9), start(small_plan(strategy=STRATEGIES[name])))
    assert state.left == 0
    assert name != "cells" or all(m.partition.is_finest for m in state.measurements if len(m.clique) > 1)


def test_a_table_of_one_constant_attribute_still_tells_its_total() -> None:
    domain = Domain((Attribute("only", 1),))
    state = run(ScriptedCurator(10, rows=2_000), start(small_plan(domain=domain, workload=WorkloadConfig(degree=1))))
    assert state.measurements
    assert abs(state.model.total - 2_000) < 200


def test_lost_is_charged_before_the_next_request() -> None:
    state = start(small_plan())
    request = next_request(state)
    assert request is not None
    assert absorb(state, request, Lost()).spent == request.rho


@pytest.mark.slow
def test_mbi_s_estimator_can_drive_the_loop() -> None:
    state = run(ScriptedCurator(13), start(small_plan(estimator="mbi", rounds=2, max_fit_steps=50)))
    assert state.left == 0
    assert np.isfinite(state.model.project(("a", "c"))).all()
