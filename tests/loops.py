"""Curators without data, for the loop's tests."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ppsyn.domain import Attribute, Domain
from ppsyn.requests import Answer, Lost, Measured, MeasureRequest, Request, Selected, noise_scale
from ppsyn.synthesizer import Plan, State, absorb, make_plan, next_request, start
from schemas.config import AlgorithmConfig, WorkloadConfig

SMALL = Domain(
    (Attribute("a", 3), Attribute("b", 24), Attribute("c", 2), Attribute("d", 5, is_ordered=False), Attribute("e", 1))
)


def small_plan(rho: float = 0.05, sensitivity: int = 1, domain: Domain = SMALL, **settings: object) -> Plan:
    config = AlgorithmConfig.model_validate({"rounds": 8, "workload": WorkloadConfig(degree=2), **settings})
    return make_plan(domain, Fraction(rho), sensitivity, config)


class ScriptedCurator:
    """Answers from its own generator: it has no table."""

    def __init__(self, seed: int, rows: int = 2_000, loses: Callable[[int], bool] = lambda _: False) -> None:
        self.rng, self.rows, self.loses, self.asked = np.random.default_rng(seed), rows, loses, list[Request]()

    def answer(self, request: Request) -> Answer:
        self.asked.append(request)
        if self.loses(len(self.asked) - 1):
            return Lost()
        if isinstance(request, MeasureRequest):
            sigma = noise_scale(request.rho, 1)
            share = self.rng.dirichlet(np.ones(request.partition.count))
            noisy = self.rows * share + self.rng.normal(0, sigma, share.size)
            return Measured(np.rint(noisy).astype(np.int64), sigma)
        return Selected(int(self.rng.integers(len(request.candidates))))


def replay(plan: Plan, answers: list[Answer]) -> tuple[State, list[Request]]:
    """Run the loop on stored answers."""
    state, asked = start(plan), list[Request]()
    for answer in answers:
        request = next_request(state)
        assert request is not None
        asked.append(request)
        state = absorb(state, request, answer)
    return state, asked
