"""PPSyn, made private: marginals are measured with their cells merged, where the model expects few rows."""

from dataclasses import replace
from fractions import Fraction

from typing_extensions import override

from ppsyn.arrays import Floats
from ppsyn.mechanisms import candidates as selection
from ppsyn.mechanisms.base import Method
from ppsyn.mechanisms.denoise import denoise, denoise_contrasts
from ppsyn.mechanisms.folding import folded
from ppsyn.mechanisms.one_way import coarse_requests, fine_requests
from ppsyn.mechanisms.state import Plan, Round, State
from ppsyn.model.inference_plan import Measurement
from ppsyn.privacy.budget import round_down
from ppsyn.privacy.requests import Candidate, Measured, MeasureRequest


class Partitioned(Method):
    """Coarse then fine one-way marginals; candidates at several granularities; answers shrunk towards the model."""

    @override
    def first(self, plan: Plan) -> tuple[MeasureRequest, ...]:
        return coarse_requests(plan, _initial_rho(plan))

    @override
    def second(self, state: State) -> tuple[MeasureRequest, ...]:
        return fine_requests(state.plan, state.model, _initial_rho(state.plan))

    @override
    def settle(self, state: State) -> State:
        """Fold large attributes, where the model lives on groups of their values from here on; plan the rounds."""
        round_rho = round_down(state.left / state.plan.config.rounds)
        return folded(replace(state, planned_rho=round_rho, round_rho=round_rho), state.plan.config.fold)

    @override
    def round_rho(self, plan: Plan) -> Fraction:
        return round_down((plan.rho - _initial_rho(plan)) / plan.config.rounds)

    @override
    def select_share(self, plan: Plan) -> Fraction:
        return Fraction(plan.config.select)

    @override
    def candidates(self, state: State, rho: Fraction) -> tuple[Candidate, ...]:
        cliques = selection.with_loose(state, selection.considered(state), selection.growing_cap(state, rho))
        return selection.partitioned(state, cliques, rho)

    @override
    def estimate(self, state: State, request: MeasureRequest, answer: Measured) -> Measurement:
        return replace(self._estimate(state, request, answer), is_loose=selection.is_loose(state, request.clique))

    def _estimate(self, state: State, request: MeasureRequest, answer: Measured) -> Measurement:
        partition = request.partition
        # Before the first stage ends the model knows nothing that an answer could be shrunk towards; nor does it
        # then know more of a small attribute than the other answer to the same question, which the fit will weigh.
        is_same = bool(state.one_way) and partition.is_finest
        if not (state.is_fine and state.plan.config.shrink) or is_same:
            return super().estimate(state, request, answer)
        expected = partition.sum_expected(state.model.project(request.clique))
        drawn = super().estimate(state, request, answer)
        if not partition.axes:
            return _bettered(drawn, *denoise(answer.noisy_counts, expected, answer.sigma))
        contrasts, deviation = denoise_contrasts(drawn.surprise(expected), partition.axes, drawn.scale)
        return _bettered(drawn, expected + contrasts, deviation)

    @override
    def is_annealed(self, plan: Plan, done: Round) -> bool:
        return done.noise > plan.config.eta * done.surprise


def _bettered(drawn: Measurement, denoised: Floats, deviation: float) -> Measurement:
    return replace(drawn, denoised=denoised, deviation=deviation)


def _initial_rho(plan: Plan) -> Fraction:
    return plan.rho * Fraction(plan.config.initial)
