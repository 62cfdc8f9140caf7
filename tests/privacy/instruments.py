"""The curator under observation: what it hands to its mechanisms, when, and at which declared sensitivity."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ppsyn.arrays import Ints
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Clique
from ppsyn.privacy import curator as gate
from ppsyn.privacy import noise as mechanisms
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import Ledger, MemoryAccount, Spend
from ppsyn.privacy.requests import Request, noise_scale

PLENTY = Fraction(10**6)
"""A budget that no test here uses up."""


@dataclass
class Draw:
    """What a mechanism was asked to do."""

    exact: tuple[int, ...]
    rho: Fraction
    sensitivity: int


@dataclass
class Watched:
    """Stand-ins for both mechanisms that keep what they were given and answer without noise.

    Attributes:
        events: What happened, in order: reservations (of a watched account) and draws.
        counts: What a measurement answers, from the number of groups; by default zeros.
        choice: What a selection answers, from the number of candidates; by default the first.
    """

    events: list[str] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    counts: Callable[[int], Ints] = lambda groups: np.zeros(groups, np.int64)
    choice: Callable[[int], int] = lambda _: 0

    def measure(self, exact_counts: Ints, rho: Fraction, sensitivity: int) -> tuple[Ints, float]:
        """Stand in for the discrete Gaussian."""
        self.events.append("draw")
        self.draws.append(Draw(tuple(exact_counts.tolist()), rho, sensitivity))
        return self.counts(exact_counts.size), noise_scale(rho, sensitivity)

    def select(self, scores: Sequence[int], rho: Fraction, sensitivity: int) -> int:
        """Stand in for the noisy maximum."""
        self.events.append("draw")
        self.draws.append(Draw(tuple(scores), rho, sensitivity))
        return self.choice(len(scores))


def watch_draws(patch: pytest.MonkeyPatch, watched: Watched | None = None) -> Watched:
    """Put the stand-ins where the curator looks its mechanisms up."""
    watched = watched or Watched()
    patch.setattr(gate, "add_discrete_gaussian", watched.measure)
    patch.setattr(gate, "draw_noisy_max", watched.select)
    return watched


@dataclass
class WatchedAccount:
    """An account that tells when it was asked, and may refuse with any error."""

    events: list[str]
    total: Fraction = PLENTY
    refusal: BaseException | None = None

    def __post_init__(self) -> None:
        self.inner = MemoryAccount(self.total)

    @property
    def ledger(self) -> Ledger:
        """What has been charged so far."""
        return self.inner.ledger

    def charge(self, spend: Spend) -> None:
        """Say so, then charge or refuse."""
        self.events.append("charge")
        if self.refusal is not None:
            raise self.refusal
        self.inner.charge(spend)


class Exact:
    """A private table with these counts of every marginal."""

    def __init__(self, *counts: int) -> None:
        self._counts = counts

    def counts(self, clique: Clique) -> Ints:
        """The counts."""
        return np.array(self._counts, np.int64)

    def marginals(self, cliques: Iterable[Clique]) -> Iterator[tuple[Clique, Ints]]:
        """The counts, of each."""
        return ((clique, self.counts(clique)) for clique in cliques)


def guard(table: EncodedTable, max_rows: int = 1, total: Fraction = PLENTY) -> TableCurator:
    """A curator of the table."""
    return TableCurator(TableCounter(table), MemoryAccount(total), max_rows)


def drawn_for(table: EncodedTable, request: Request, max_rows: int) -> Draw:
    """What the curator hands to its mechanism to answer the request."""
    with pytest.MonkeyPatch.context() as patch:
        watched = watch_draws(patch)
        guard(table, max_rows).answer(request)
    return watched.draws[-1]


@dataclass
class Sampler:
    """A measurement of OpenDP, with its own privacy map, whose draws are made up.

    Attributes:
        scale: The scale that it was made for.
        answers: What it draws, from what it is given.
        priced: For which sensitivities its privacy map was asked, in order.
        given: What it was given to draw from, in order.
    """

    real: Any
    scale: float
    answers: Callable[[list[int]], Any]
    priced: list[float] = field(default_factory=list)
    given: list[list[int]] = field(default_factory=list)

    def map(self, sensitivity: float) -> float:
        """What a draw costs."""
        self.priced.append(sensitivity)
        return self.real.map(sensitivity)

    def __call__(self, values: list[int]) -> Any:  # noqa: ANN401  as the measurement
        """Draw."""
        self.given.append(values)
        return self.answers(values)


def sample_by_hand(patch: pytest.MonkeyPatch, name: str, answers: Callable[[list[int]], Any]) -> list[Sampler]:
    """Have OpenDP's constructor of this name make samplers; they are kept, in order."""
    made: list[Sampler] = []
    construct = getattr(mechanisms, name)

    def make(*space: object, scale: float) -> Sampler:
        made.append(Sampler(construct(*space, scale=scale), scale, answers))
        return made[-1]

    patch.setattr(mechanisms, name, make)
    return made
