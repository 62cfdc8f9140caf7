"""The loop without a table: answers are made up from a seed, so whatever it asks follows from them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from ppsyn.requests import Answer, Lost, Measured, MeasureRequest, Request, Selected, noise_scale
from ppsyn.synthesizer import Plan, State, absorb, next_request, start


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
            return Measured(counts.astype(np.int64), noise_scale(request.rho, self.max_rows))
        return Selected(int(rng.integers(len(request.candidates))))


def steps(plan: Plan, curator: ScriptedCurator) -> Iterator[tuple[State, Request]]:
    """Every state of a run with the request made in it; the last state of all asks nothing."""
    state = start(plan)
    while (request := next_request(state)) is not None:
        yield state, request
        state = absorb(state, request, curator.answer(request))
