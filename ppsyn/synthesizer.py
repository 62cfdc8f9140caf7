"""PPSyn as a pure state machine: what to ask next, and what an answer changes.

It holds no data. The same answers give the same requests and the same model, to
the last bit, so a run resumes by replaying the answers it has paid for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ppsyn import selection
from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.errors import ConfigError, InvariantError
from ppsyn.model.engines import ENGINES
from ppsyn.model.fit import Effort
from ppsyn.model.graphical import GraphicalModel, unfitted
from ppsyn.model.program import Measurement
from ppsyn.partition.balanced import split_balanced
from ppsyn.partition.cells import Partition, equal_width
from ppsyn.partition.order import partition_in_order
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
    noise_scale,
)
from ppsyn.shares import divide, floored
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
        moved: L1 change of the measured groups by the fit.
        noise: Expected L1 norm of the noise they carried.
    """

    clique: Clique
    groups: int
    sigma: float
    moved: float
    noise: float


@dataclass(frozen=True, slots=True)
class State:
    """Everything the loop knows.

    Attributes:
        spent: What the requests so far have cost, lost answers included.
        one_way: Marginals still to be measured before the rounds begin.
        round_rho: What the next round may cost.
        chosen: The selected candidate that is to be measured next.
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


def make_plan(domain: Domain, rho: Fraction, sensitivity: int, config: AlgorithmConfig) -> Plan:
    """Check the public inputs; nothing is spent.

    Raises:
        ConfigError: If the workload names unknown attributes, or the budget is too small to divide.
        ModelTooLargeError: If the domain cannot be modelled under the cap.
    """
    selection.check_smallest_model(domain, config.model_mb)
    workload = selection.workload_cliques(domain, config.workload)
    plan = Plan(domain, rho, sensitivity, config, workload, selection.candidate_cliques(domain, workload))
    if floored(rho / config.rounds) < _SMALLEST_RHO or min(r.rho for r in _coarse(plan)) < _SMALLEST_RHO:
        raise ConfigError("Expected a larger budget: it is too small to measure anything. Raise epsilon, delta or rho.")
    return plan


def start(plan: Plan) -> State:
    """The state before anything was asked."""
    after = plan.rho * (1 - Fraction(plan.config.initial))
    return State(plan, Fraction(0), _coarse(plan), floored(after / plan.config.rounds), unfitted(plan.domain))


def _one_way(
    plan: Plan, rho: Fraction, sizes: Sequence[int], partition: Callable[[int, Fraction], Partition]
) -> tuple[MeasureRequest, ...]:
    shares = divide(rho, [size ** (2 / 3) for size in sizes])
    return tuple(
        MeasureRequest((a.name,), partition(i, share), share)
        for i, (a, share) in enumerate(zip(_informative(plan.domain), shares, strict=True))
    )


def _informative(domain: Domain) -> tuple[Attribute, ...]:
    return tuple(a for a in domain.attributes if a.size > 1) or domain.attributes[:1]


def _coarse(plan: Plan) -> tuple[MeasureRequest, ...]:
    most = plan.config.coarse_groups
    attributes = _informative(plan.domain)
    rho = plan.rho * Fraction(plan.config.initial) * Fraction(plan.config.coarse)
    return _one_way(
        plan, rho, [min(a.size, most) for a in attributes], lambda i, _: equal_width(attributes[i].size, most)
    )


def _fine(state: State) -> tuple[MeasureRequest, ...]:
    plan = state.plan
    attributes = _informative(plan.domain)
    rho = plan.rho * Fraction(plan.config.initial) * (1 - Fraction(plan.config.coarse))

    def partition(i: int, share: Fraction) -> Partition:
        name = attributes[i].name
        sigma = noise_scale(share, plan.sensitivity)
        found = partition_in_order(
            state.model.project((name,)),
            (attributes[i].is_ordered,),
            lambda x: (split_balanced(x, plan.config.fine_level * sigma),),
        )
        return tuple(found)[0]

    return _one_way(plan, rho, [a.size for a in attributes], partition)


def next_request(state: State) -> Request | None:
    """The next question, or None when the budget is used exactly."""
    if state.one_way:
        return state.one_way[0]
    if state.chosen is not None:
        return MeasureRequest(state.chosen.clique, state.chosen.partition, _measure_rho(state))
    if state.left == 0:
        return None
    return _select(state)


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
    return _finish(replace(state, chosen=None))


def _absorb_measurement(state: State, request: MeasureRequest, answer: Measured) -> State:
    import os

    SH = os.environ.get("SH", "none")
    y = answer.noisy_counts.astype(float)
    sig = answer.sigma
    if SH != "none" and (state.is_fine):
        m = request.partition.sum_expected(state.model.project(request.clique))
        d = y - m
        k = d.size
        s2 = answer.sigma**2
        js = max(0.0, 1 - s2 * max(k - 2, 0) / max(float(d @ d), 1e-9)) if k > 2 else 1.0
        if SH == "js":
            d = js * d
        if SH == "sure":
            a = np.sort(np.abs(d))
            c = np.cumsum(a**2)
            i = np.arange(1, k + 1)
            risk = k * s2 - 2 * s2 * i + c + (k - i) * a**2
            j = int(np.argmin(risk))
            t = a[j]
            rjs = k * s2 - s2 * s2 * (k - 2) ** 2 / max(float(d @ d), 1e-9) if k > 2 else k * s2
            if risk[j] < rjs and k > 2:
                d = np.sign(d) * np.maximum(np.abs(d) - t, 0)
            else:
                d = js * d
        if SH in ("haar", "haarh"):
            n2 = 1 << max(0, (k - 1).bit_length())
            # haar on padded: use scipy-free orthonormal DCT-II instead
            jj = np.arange(k)
            B = np.sqrt(2.0 / k) * np.cos(np.pi * (jj[None, :] + 0.5) * jj[:, None] / k)
            B[0] /= np.sqrt(2.0)
            c = B @ d
            a0 = 0
            width = 1
            out = c.copy()
            while a0 < k:
                b0 = min(k, a0 + width)
                if k - b0 < width // 2:
                    b0 = k
                blk = c[a0:b0]
                nb = b0 - a0
                if nb > 2:
                    out[a0:b0] = blk * max(0.0, 1 - s2 * (nb - 2) / max(float(blk @ blk), 1e-9))
                a0 = b0
                width = max(2, width * 2)
            d = B.T @ out
        if SH == "half":
            d = 0.8 * d
        y = m + d
        raw = float(np.abs(answer.noisy_counts - m).sum())
        if os.environ.get("SW"):
            sig = answer.sigma * max(js, 0.1) ** 0.5
    measurement = Measurement(request.clique, request.partition, y, sig)
    state = replace(state, measurements=(*state.measurements, measurement))
    if state.one_way:
        return _after_one_way(replace(state, one_way=state.one_way[1:]))
    before = request.partition.sum_expected(state.model.project(request.clique))
    state = _refit(state, 1, _TOLERANCE)
    after = request.partition.sum_expected(state.model.project(request.clique))
    moved = float(np.abs(after - before).sum())
    if SH != "none":
        moved = raw
    noise = selection.NOISE_L1 * answer.sigma * request.partition.count
    done = Round(request.clique, request.partition.count, answer.sigma, moved, noise)
    is_too_noisy = noise > state.plan.config.eta * moved
    round_rho = state.round_rho * 4 if is_too_noisy else state.round_rho
    return _finish(replace(state, rounds=(*state.rounds, done), chosen=None, round_rho=round_rho))


def _after_one_way(state: State) -> State:
    if state.one_way:
        return state
    state = _refit(state, 2, _TOLERANCE)
    return state if state.is_fine else replace(state, one_way=_fine(state), is_fine=True)


def _finish(state: State) -> State:
    """The last fit tries hardest."""
    return _refit(state, 3, _FINAL_TOLERANCE) if state.left == 0 else state


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
