"""The loop as a pure state machine: what to ask next, and what an answer changes.

What is worth asking is the mechanism's to say; the order of requests and the
budget to its last fraction are settled here. The loop holds no data. The same answers
give the same requests and the same model, to the last bit, so a run resumes by
replaying the answers it has paid for.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ppsyn.domain import Domain
from ppsyn.errors import ConfigError, InvariantError
from ppsyn.mechanisms import MECHANISMS
from ppsyn.mechanisms import candidates as selection
from ppsyn.mechanisms.base import NOISE_L1, Mechanism, Plan, Round, State
from ppsyn.mechanisms.past import Past
from ppsyn.mechanisms.recall import current, recall
from ppsyn.model.compression import Compression
from ppsyn.model.estimation import ENGINES, Effort
from ppsyn.model.graphical_model import uniform_model
from ppsyn.model.measurement import Measurement
from ppsyn.possible import check_rules
from ppsyn.privacy.budget import round_down
from ppsyn.privacy.partition import equal_width
from ppsyn.privacy.requests import Answer, Curator, Lost, Measured, MeasureRequest, Request, Selected, SelectRequest
from ppsyn.schemas.config import AlgorithmConfig

_TOLERANCE = 1e-4
_FINAL_TOLERANCE = 1e-5
_SMALLEST_RHO = Fraction(1, 2**60)
_REMAINDER_GROUPS = 16


def make_plan(  # noqa: PLR0913, PLR0917  # all that a run depends on
    domain: Domain,
    rho: Fraction,
    sensitivity: int,
    config: AlgorithmConfig,
    mechanism: Mechanism | None = None,
    past: Past | None = None,
) -> Plan:
    """Check the public inputs; nothing is spent.

    Args:
        domain: The attributes.
        rho: The whole budget.
        sensitivity: Rows that one unit of privacy may own.
        config: What a release file says of the algorithm.
        mechanism: The mechanism with other constants than its own; only a benchmark has one.
        past: What earlier releases tell.

    Raises:
        SchemaError: If rules contradict each other, or cannot be kept under the cap; they are named.
        ConfigError: If the workload names unknown attributes, or the budget is too small to divide.
        ModelTooLargeError: If the domain cannot be modelled under the cap.
    """
    check_rules(domain)
    if domain.zeros and config.estimator == "mbi":
        raise ConfigError(
            f"Expected estimator: tree with the rule {domain.zeros[0].rule!r} and others of the schema: mbi does not "
            "keep them. Remove `estimator`."
        )
    selection.check_smallest_model(domain, config.max_model_size_mb)
    workload = selection.workload_cliques(domain, config.workload)
    turns = selection.rotate(domain, selection.candidate_cliques(domain, workload))
    plan = Plan(domain, rho, sensitivity, config, mechanism or MECHANISMS[config.mechanism], workload, turns, past)
    state = start(plan)
    costs = [request.rho for request in state.one_way] + [state.round_rho] * (state.round_rho > 0)
    if min(costs) < _SMALLEST_RHO:
        raise ConfigError("Expected a larger budget: it is too small to measure anything. Raise epsilon, delta or rho.")
    return plan


def start(plan: Plan) -> State:
    """The state before anything was asked."""
    first, round_rho = plan.mechanism.initial_requests(plan), plan.mechanism.round_rho(plan)
    state = State(plan, Fraction(0), first, round_rho, round_rho, uniform_model(Compression(plan.domain)))
    if plan.past is None:
        return state
    return _refit(recall(state, 1 if first else None), 2, _TOLERANCE)


def next_request(state: State) -> Request | None:
    """The next question, or None when the budget is used exactly."""
    match state.stage:
        case "one-way":
            return state.one_way[0]
        case "select":
            return _select(state)
        case "measure":
            return _measure(state)
        case "done":
            return None


def _measure(state: State) -> MeasureRequest:
    if state.chosen is None:
        return _remainder(state)
    return MeasureRequest(state.chosen.clique, state.chosen.partition, _measure_rho(state))


def _remainder(state: State) -> MeasureRequest:
    """What is less than a round is worth goes to the largest attribute, in groups that the model holds apart."""
    compression = state.model.compression
    largest = max(compression.model_domain.attributes, key=lambda attribute: attribute.size)
    groups = compression.to_full((largest.name,), equal_width(largest.size, _REMAINDER_GROUPS))
    return MeasureRequest((largest.name,), groups, state.left)


def _is_last(state: State) -> bool:
    return state.left < 2 * state.round_rho


def _select_rho(state: State) -> Fraction:
    whole = state.left if _is_last(state) else state.round_rho
    return round_down(whole * state.plan.mechanism.select_share(state.plan))


def _measure_rho(state: State) -> Fraction:
    """What is left of the round after its selection; the last round takes all there is."""
    share = state.round_rho - round_down(state.round_rho * state.plan.mechanism.select_share(state.plan))
    return state.left if state.left < share + state.round_rho else share


def _select(state: State) -> SelectRequest:
    rho = _select_rho(state)
    after = replace(state, spent=state.spent + rho)
    return SelectRequest(state.plan.mechanism.candidates(after, _measure_rho(after)), rho)


def absorb(state: State, request: Request, answer: Answer) -> State:
    """The state after an answer. `request` is what `next_request(state)` asked."""
    state = replace(state, spent=state.spent + request.rho)
    match request, answer:
        case MeasureRequest(), Measured():
            return _absorb_measurement(state, request, answer)
        case SelectRequest(), Selected():
            return replace(state, chosen=request.candidates[answer.index])
        case _, Lost():
            return _absorb_loss(state)
        case _:
            raise InvariantError("An answer does not fit its request.")


def _absorb_loss(state: State) -> State:
    """The budget is gone and the answer with it; go on with what is left."""
    if state.one_way:
        return _after_one_way(replace(state, one_way=state.one_way[1:]))
    state = replace(state, chosen=None)
    return _finish(state) if state.left == 0 else state


def _absorb_measurement(state: State, request: MeasureRequest, answer: Measured) -> State:
    mechanism, clique, partition = state.plan.mechanism, request.clique, request.partition
    expected = partition.sum_expected(state.model.project(clique))
    drawn = Measurement(clique, partition, answer.noisy_counts, answer.sigma)
    told = mechanism.estimate(state, request, answer)
    state = current(replace(state, measurements=(*state.measurements, drawn), told=(*state.told, told)))
    if state.one_way:
        return _after_one_way(replace(state, one_way=state.one_way[1:]))
    state = _after_round(replace(state, chosen=None))
    distance = float(np.abs(drawn.difference(expected)).sum())
    moved = float(np.abs(drawn.contrast(partition.sum_expected(state.model.project(clique)) - expected)).sum())
    noise = NOISE_L1 * drawn.count_sigma * partition.count
    done = Round(clique, partition.count, drawn.count_sigma, distance, noise, moved)
    round_rho = state.round_rho * 4 if mechanism.should_anneal(state.plan, done) else state.round_rho
    return replace(state, rounds=(*state.rounds, done), round_rho=round_rho)


def _after_one_way(state: State) -> State:
    """Between the stages, and after the last, the model is fitted to their answers."""
    if state.one_way:
        return state
    if state.left == 0:
        return _finish(state)
    state, mechanism = _refit(state, 2, _TOLERANCE), state.plan.mechanism
    if not state.is_fine:
        state = replace(state, one_way=mechanism.followup_requests(state), is_fine=True)
    return state if state.one_way else _refit(recall(mechanism.before_rounds(state)), 2, _TOLERANCE)


def _after_round(state: State) -> State:
    if state.left == 0:
        return _finish(state)
    return _refit(state, 1, _TOLERANCE) if state.plan.mechanism.fits_every_round else state


def _finish(state: State) -> State:
    """The last fit tries hardest."""
    return _refit(state, 4, _FINAL_TOLERANCE)


def _refit(state: State, times: int, tolerance: float) -> State:
    effort = Effort(times * state.plan.config.max_fit_steps, tolerance)
    fit = ENGINES[state.plan.config.estimator]
    return replace(state, model=fit(state.evidence, state.model, effort).model)


def run(curator: Curator, state: State, watch: Callable[[State], None] = lambda _: None) -> State:
    """Ask, absorb, repeat, until nothing is left to ask."""
    while (request := next_request(state)) is not None:
        state = absorb(state, request, curator.answer(request))
        watch(state)
    return state
