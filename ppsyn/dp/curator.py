"""The gate: every answer about the private table is checked, charged, then drawn, here."""

from typing import Protocol

from ppsyn.arrays import Ints
from ppsyn.domain import Clique
from ppsyn.dp.ledger import Account, Spend
from ppsyn.dp.mechanisms import add_discrete_gaussian, draw_noisy_max
from ppsyn.dp.scores import score, sensitivity
from ppsyn.errors import ConfigError, InvariantError
from ppsyn.requests import Measured, MeasureRequest, Request, Selected, SelectRequest


class Counter(Protocol):
    """Exact counts of a private table. Its values never leave the curator."""

    def counts(self, clique: Clique) -> Ints:
        """Exact counts of a marginal's cells, flat in C order."""
        ...


class TableCurator:
    """Answers requests about one private table, at most `max_rows` rows of which are one person's.

    Privacy:
        Claims C1 to C5. Neighbours differ in the rows of one unit: `max_rows` rows
        move a count vector by at most `max_rows` in L2 norm and a score by at most
        `max_rows` times its sensitivity.
    """

    def __init__(self, counter: Counter, account: Account, max_rows: int = 1) -> None:
        """Guard `counter`; charge `account`."""
        if max_rows < 1:
            raise ConfigError(f"Expected max_rows={max_rows} to be at least 1.")
        self._counter, self._account, self._max_rows = counter, account, max_rows

    def __repr__(self) -> str:
        """Show nothing of the table."""
        return "TableCurator()"

    def answer(self, request: Request) -> Measured | Selected:
        """Check the budget, write the spend, draw, in that order.

        Raises:
            BudgetExceededError: If the request costs more than is left; nothing is drawn.
        """
        match request:
            case MeasureRequest():
                return self._measure(request)
            case SelectRequest():
                return self._select(request)

    def _measure(self, request: MeasureRequest) -> Measured:
        counts = request.partition.sum_counts(self._exact_counts(request.clique, request.partition.cells))
        self._account.reserve(Spend("measure", request.rho, request.digest(), request.clique))
        noisy_counts, sigma = add_discrete_gaussian(counts, request.rho, self._max_rows)
        return Measured(noisy_counts, sigma)

    def _select(self, request: SelectRequest) -> Selected:
        if not request.candidates:
            raise InvariantError("Expected at least one candidate; nothing was charged.")
        scores = [score(c, self._exact_counts(c.clique, c.partition.cells)) for c in request.candidates]
        self._account.reserve(Spend("select", request.rho, request.digest()))
        return Selected(draw_noisy_max(scores, request.rho, self._max_rows * sensitivity(request.candidates)))

    def _exact_counts(self, clique: Clique, cells: int) -> Ints:
        counts = self._counter.counts(clique)
        if counts.size != cells:
            raise InvariantError("A partition does not fit its marginal; nothing was charged.")
        return counts
