"""The loop without a table: answers are made up from a seed, so whatever it asks follows from them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

import numpy as np

from ppsyn.domain import Attribute, Domain
from ppsyn.mechanisms.base import Plan, State
from ppsyn.mechanisms.grid import Strategy, partition_grid
from ppsyn.mechanisms.loop import absorb, make_plan, next_request, start
from ppsyn.mechanisms.ppsyn import PPSyn, PPSynParameters
from ppsyn.privacy.requests import Answer, Lost, Measured, MeasureRequest, Request, Selected, noise_scale
from ppsyn.privacy.residuals import exact_residuals
from ppsyn.schemas.config import AlgorithmConfig, WorkloadConfig

SMALL = Domain(
    (Attribute("a", 3), Attribute("b", 24), Attribute("c", 2), Attribute("d", 5, is_ordered=False), Attribute("e", 1))
)


_PARAMETERS = frozenset(field.name for field in fields(PPSynParameters))


def small_plan(
    rho: float = 0.05,
    sensitivity: int = 1,
    domain: Domain = SMALL,
    strategy: Strategy = partition_grid,
    **settings: Any,  # noqa: ANN401  # of several kinds
) -> Plan:
    """A plan; settings are those of a release file, and constants of ppsyn."""
    constants = {name: settings.pop(name) for name in _PARAMETERS & settings.keys()}
    is_ours = settings.get("mechanism", "ppsyn") == "ppsyn"
    rounds = {"rounds": 8} if is_ours else {}
    config = AlgorithmConfig.model_validate({**rounds, "workload": WorkloadConfig(degree=2), **settings})
    mechanism = PPSyn(PPSynParameters(**constants), strategy) if is_ours else None
    return make_plan(domain, Fraction(rho), sensitivity, config, mechanism)


CROWDED = Domain(tuple(Attribute(name, 10) for name in "abcde"))
"""Attributes whose pairs fit under a cap, but no tree that holds them all."""


def crowded_plan(cells: int = 900, **settings: Any) -> Plan:  # noqa: ANN401  # of several kinds
    """A plan with room for so many cells, and for more rounds than there are pairs a tree could hold."""
    crowded: dict[str, Any] = {
        "max_model_size_mb": cells * 8 / 2**20,
        "rounds": 20,
        "max_fit_steps": 10,
        "anneal_threshold": 1e6,
    }
    return small_plan(1.0, domain=CROWDED, **{**crowded, **settings})


@dataclass
class ScriptedCurator:
    """Answers any request from a seed, and loses some answers if told to.

    Attributes:
        lost: Which answers never arrive, by their place.
        asked: The requests so far.
    """

    seed: int = 0
    rows: int = 200
    max_rows: int = 1
    lost: frozenset[int] = frozenset()
    asked: list[Request] = field(default_factory=list)

    @property
    def spent(self) -> Fraction:
        """What the requests so far have cost."""
        return sum((request.rho for request in self.asked), Fraction(0))

    def answer(self, request: Request) -> Answer:
        """Make an answer up."""
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(len(self.asked),))))
        self.asked.append(request)
        if len(self.asked) - 1 in self.lost:
            return Lost()
        if isinstance(request, MeasureRequest):
            counts = rng.multinomial(self.rows, rng.dirichlet(np.ones(request.partition.count)))
            axes = request.partition.axes
            values = exact_residuals(counts, axes) if axes else counts
            return Measured(values.astype(np.int64), noise_scale(request.rho, self.max_rows * request.sensitivity))
        return Selected(int(rng.integers(len(request.candidates))))


def steps(plan: Plan, curator: ScriptedCurator) -> Iterator[tuple[State, Request]]:
    """Every state of a run with the request made in it; the last state of all asks nothing."""
    state = start(plan)
    while (request := next_request(state)) is not None:
        yield state, request
        state = absorb(state, request, curator.answer(request))


def replay(plan: Plan, answers: list[Answer]) -> tuple[State, list[Request]]:
    """Run the loop on stored answers."""
    state, asked = start(plan), list[Request]()
    for answer in answers:
        request = next_request(state)
        assert request is not None
        asked.append(request)
        state = absorb(state, request, answer)
    return state, asked
