"""The gate: every answer about the private table is checked, charged, then drawn, here."""

import math
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.domain import Clique
from ppsyn.errors import ConfigError, InvariantError
from ppsyn.privacy.ledger import Account, Spend
from ppsyn.privacy.noise import add_discrete_gaussian, draw_noisy_max
from ppsyn.privacy.partition import MOST_ROWS, Partition
from ppsyn.privacy.requests import (
    Candidate,
    CompareRequest,
    Measured,
    MeasureRequest,
    Request,
    Selected,
    SelectRequest,
    l1_norm,
)
from ppsyn.privacy.residuals import exact_residuals
from ppsyn.privacy.scores import aggregate, joint_sensitivity, score, sensitivity

_BEAT, _BEAT_OF_ONE = 0.002, 0.00002
"""Seconds, for any question and for each number in it: about what a draw of so many takes at most, most of the time."""


class Counter(Protocol):
    """Exact counts of a private table. Its values never leave the curator."""

    def counts(self, clique: Clique) -> Ints:
        """Exact counts of a marginal's cells, flat in C order."""
        ...

    def marginals(self, cliques: Iterable[Clique]) -> Iterable[tuple[Clique, Ints]]:
        """Each of the marginals once, in any order, with its exact counts."""
        ...


class TableCurator:
    """Answers requests about one private table, at most `max_rows` rows of which are one person's.

    Privacy:
        Claims C1 to C5 and C12. Neighbours differ in the rows of one unit: `max_rows`
        rows move a count vector by at most `max_rows` in L2 norm, and a score, or a
        figure of several, by at most `max_rows` times its sensitivity.
    """

    def __init__(self, counter: Counter, account: Account, max_rows: int = 1, *, is_watched: bool = False) -> None:
        """Guard `counter`; charge `account`. If others can see when an answer comes, it comes on a beat (L4)."""
        if max_rows < 1:
            raise ConfigError(f"Expected max_rows={max_rows} to be at least 1.")
        self._counter, self._account, self._max_rows, self._is_watched = counter, account, max_rows, is_watched

    def __repr__(self) -> str:
        """Show nothing of the table."""
        return "TableCurator()"

    def answer(self, request: Request | CompareRequest) -> Measured | Selected:
        """Check the budget, write the spend, draw, in that order.

        Raises:
            BudgetExceededError: If the request costs more than is left; nothing is drawn.
        """
        match request:
            case MeasureRequest():
                return self._measure(request)
            case SelectRequest():
                return self._select(request)
            case CompareRequest():
                return self._compare(request)

    def _measure(self, request: MeasureRequest) -> Measured:
        counts = _check_fit(_check_rows(self._counter.counts(request.clique)), request.partition)
        counts = request.partition.sum_counts(counts)
        values = exact_residuals(counts, request.partition.axes) if request.partition.axes else counts
        self._account.charge(Spend("measure", request.rho, request.digest(), request.clique))
        with self._paced(values.size):
            return Measured(*add_discrete_gaussian(values, request.rho, self._max_rows * request.sensitivity))

    def _select(self, request: SelectRequest) -> Selected:
        if not request.candidates:
            raise InvariantError("Expected at least one candidate; nothing was charged.")
        scores = self._scores(request.candidates)
        self._account.charge(Spend("select", request.rho, request.digest()))
        with self._paced(len(scores)):
            return Selected(draw_noisy_max(scores, request.rho, self._max_rows * sensitivity(request.candidates)))

    def _compare(self, request: CompareRequest) -> Measured:
        scores = self._scores(request.candidates)
        figures = np.array([aggregate(figure, scores) for figure in request.figures], np.int64)
        move = joint_sensitivity(self._max_rows * sensitivity(request.candidates), figures.size)
        self._account.charge(Spend("compare", request.rho, request.digest()))
        with self._paced(figures.size):
            return Measured(*add_discrete_gaussian(figures, request.rho, move))

    @contextmanager
    def _paced(self, numbers: int) -> Generator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            if self._is_watched:
                wait(began, numbers)

    def _scores(self, candidates: Sequence[Candidate]) -> list[int]:
        """The score of every candidate, in their order, whatever the order in which marginals are counted."""
        places: dict[Clique, list[int]] = {}
        for place, candidate in enumerate(candidates):
            places.setdefault(candidate.clique, []).append(place)
        scores: dict[int, int] = {}
        for clique, counts in self._counter.marginals(places):
            _check_rows(counts)
            for place in places[clique]:
                scores[place] = score(candidates[place], _check_fit(counts, candidates[place].partition))
        return [scores[place] for place in range(len(candidates))]


def _check_fit(counts: Ints, partition: Partition) -> Ints:
    if counts.size != partition.cells:
        raise InvariantError("A partition does not fit its marginal; nothing was charged.")
    return counts


def _check_rows(counts: Ints) -> Ints:
    """Refuse a table too large for the proofs. That it is tells as much of the number of its rows (L2)."""
    if l1_norm(counts) >= MOST_ROWS:
        raise InvariantError("Expected a table of fewer than 2^37 rows; nothing was charged.")
    return counts


# How long a draw takes, as others may see it: a whole number of beats, whose length is public (L4)


def beat(numbers: int) -> float:
    """Seconds of a beat for a draw over so many counts, figures or candidates, which the question tells."""
    return _BEAT + _BEAT_OF_ONE * numbers


def wait(began: float, numbers: int) -> None:
    """Return at the next whole number of beats after `began`, a reading of `time.monotonic`.

    Privacy:
        Samplers by rejection take as long as the noise and the scores have it (L4). Who
        sees when an answer comes learns how many beats it took, and in most draws one.
    """
    length = beat(numbers)
    due = began + length * math.ceil((time.monotonic() - began) / length)
    while (left := due - time.monotonic()) > 0:
        time.sleep(left)
