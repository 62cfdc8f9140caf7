"""PPSyn as a pure state machine: what to ask next, and what an answer changes.

It holds no data. The same answers give the same requests and the same model, to
the last bit, so a run resumes by replaying the answers it has paid for.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from ppsyn import selection
from ppsyn.denoise import denoise
from ppsyn.domain import Clique, Domain
from ppsyn.errors import ConfigError, InvariantError
from ppsyn.model.engines import ENGINES
from ppsyn.model.fit import Effort
from ppsyn.model.graphical import GraphicalModel, unfitted
from ppsyn.model.program import Measurement
from ppsyn.one_way import coarse_requests, fine_requests
from ppsyn.partition.cells import equal_width
from ppsyn.partition.sequence import NOISE_L1
from ppsyn.requests import (
    Answer,
    Candidate,
    Curator,
    Lost,
    Measured,
    MeasureRequest,
    Request,
    Selected,
    SelectRequest,
)
from ppsyn.shares import floored
from schemas.config import AlgorithmConfig

_TOLERANCE = 1e-4
_FINAL_TOLERANCE = 1e-5
_SMALLEST_RHO = Fraction(1, 2**60)


@dataclass(frozen=True, slots=True)
class Plan:
    """The public inputs of a run.

    Attributes:
        rho: The whole budget.
        sensitivity: Rows that one unit of privacy may own.
        cliques: What may be measured.
    """

    domain: Domain
    rho: Fraction
    sensitivity: int
    config: AlgorithmConfig
    workload: tuple[Clique, ...]
    cliques: tuple[Clique, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """What a round did: released values only.

    Attributes:
        surprise: L1 distance of the answer from what the model expected.
        noise: Expected L1 norm of the noise in the answer.
    """

    clique: Clique
    groups: int
    sigma: float
    surprise: float
    noise: float


@dataclass(frozen=True, slots=True)
class State:
    """Everything the loop knows.

    Attributes:
        spent: What the requests so far have cost, lost answers included.
        one_way: Marginals of single attributes still to be measured in this stage.
        round_rho: What the next round may cost.
        chosen: The selected candidate that is to be measured next.
        is_fine: Whether the coarse stage of the one-way marginals is over.
    """

    plan: Plan
    spent: Fraction
    one_way: tuple[MeasureRequest, ...]
    round_rho: Fraction
    model: GraphicalModel
    measurements: tuple[Measurement, ...] = ()
    rounds: tuple[Round, ...] = ()
    chosen: Candidate | None = None
    is_fine: bool = False

    @property
    def left(self) -> Fraction:
        """What may still be spent."""
        return self.plan.rho - self.spent

    @property
    def stage(self) -> Literal["one-way", "select", "measure", "done"]:
        """What comes next."""
        if self.one_way:
            return "one-way"
        if self.chosen is not None:
            return "measure"
        if self.left == 0:
            return "done"
        # Lost selections can leave less than a round is worth; it is measured without selecting.
        return "measure" if 2 * self.left < _planned_round_rho(self.plan) else "select"


def make_plan(domain: Domain, rho: Fraction, sensitivity: int, config: AlgorithmConfig) -> Plan:
    """Check the public inputs; nothing is spent.

    Raises:
        ConfigError: If the workload names unknown attributes, or the budget is too small to divide.
        ModelTooLargeError: If the domain cannot be modelled under the cap.
    """
    selection.check_smallest_model(domain, config.model_mb)
    workload = selection.workload_cliques(domain, config.workload)
    plan = Plan(domain, rho, sensitivity, config, workload, selection.candidate_cliques(domain, workload))
    state = start(plan)
    if min(state.round_rho, *(request.rho for request in state.one_way)) < _SMALLEST_RHO:
        raise ConfigError("Expected a larger budget: it is too small to measure anything. Raise epsilon, delta or rho.")
    return plan


def start(plan: Plan) -> State:
    """The state before anything was asked."""
    config = plan.config
    coarse = coarse_requests(plan.domain, _initial_rho(plan), config.coarse, config.coarse_groups)
    return State(plan, Fraction(0), coarse, _planned_round_rho(plan), unfitted(plan.domain))


def _initial_rho(plan: Plan) -> Fraction:
    return plan.rho * Fraction(plan.config.initial)


def _planned_round_rho(plan: Plan) -> Fraction:
    return floored((plan.rho - _initial_rho(plan)) / plan.config.rounds)


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
    """What is less than a round is worth goes to the largest attribute."""
    largest = max(state.plan.domain.attributes, key=lambda attribute: attribute.size)
    return MeasureRequest((largest.name,), equal_width(largest.size, state.plan.config.coarse_groups), state.left)


def _is_last(state: State) -> bool:
    return state.left < 2 * state.round_rho


def _select_rho(state: State) -> Fraction:
    whole = state.left if _is_last(state) else state.round_rho
    return floored(whole * Fraction(state.plan.config.select))


def _measure_rho(state: State) -> Fraction:
    """What is left of the round after its selection; the last round takes all there is."""
    share = state.round_rho - floored(state.round_rho * Fraction(state.plan.config.select))
    return state.left if state.left < share + state.round_rho else share


def _select(state: State) -> SelectRequest:
    plan, config = state.plan, state.plan.config
    rho = _select_rho(state)
    after = replace(state, spent=state.spent + rho)
    measure_rho = _measure_rho(after)
    cap_mb = config.model_mb * float((after.spent + measure_rho) / plan.rho)
    measured = tuple(measurement.clique for measurement in state.measurements)
    cliques = selection.affordable(state.model, measured, plan.cliques, cap_mb)
    return SelectRequest(selection.candidates(state.model, cliques, measure_rho, plan.sensitivity, config), rho)


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
    expected = request.partition.sum_expected(state.model.project(request.clique))
    # Before the coarse stage ends the model knows nothing that an answer could be shrunk towards.
    better = denoise(answer.noisy_counts, expected, answer.sigma) if state.is_fine else (None, None)
    measurement = Measurement(request.clique, request.partition, answer.noisy_counts, answer.sigma, *better)
    state = replace(state, measurements=(*state.measurements, measurement))
    if state.one_way:
        return _after_one_way(replace(state, one_way=state.one_way[1:]))
    surprise = float(np.abs(answer.noisy_counts - expected).sum())
    noise = NOISE_L1 * answer.sigma * request.partition.count
    done = Round(request.clique, request.partition.count, answer.sigma, surprise, noise)
    round_rho = state.round_rho * 4 if noise > state.plan.config.eta * surprise else state.round_rho
    state = replace(state, rounds=(*state.rounds, done), chosen=None, round_rho=round_rho)
    return _finish(state) if state.left == 0 else _refit(state, 1, _TOLERANCE)


def _after_one_way(state: State) -> State:
    """Between the stages, and after the last, the model is fitted to what they told."""
    if state.one_way:
        return state
    state = _refit(state, 2, _TOLERANCE)
    if state.is_fine:
        return state
    plan, config = state.plan, state.plan.config
    fine = fine_requests(state.model, _initial_rho(plan), config.coarse, config.coarse_groups, plan.sensitivity)
    return replace(state, one_way=fine, is_fine=True)


def _finish(state: State) -> State:
    """The last fit tries hardest."""
    return _refit(state, 4, _FINAL_TOLERANCE)


def _refit(state: State, times: int, tolerance: float) -> State:
    effort = Effort(times * state.plan.config.iterations, tolerance)
    fit = ENGINES[state.plan.config.engine]
    return replace(state, model=fit(state.plan.domain, state.measurements, state.model, effort).model)


def run(curator: Curator, state: State, watch: Callable[[State], None] = lambda _: None) -> State:
    """Ask, absorb, repeat, until nothing is left to ask."""
    while (request := next_request(state)) is not None:
        state = absorb(state, request, curator.answer(request))
        watch(state)
    return state
