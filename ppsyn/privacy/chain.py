"""The rules of a run's chain: what it was granted, its charges, and a seal. One place for writers and for auditors."""

from typing import TypeAlias

from ppsyn.errors import AccountError, RunTakenError, translated
from ppsyn.privacy.ledger import Ledger, Spend
from ppsyn.schemas.account import Charge, Grant, Line, Seal, from_bytes, hash_of, to_bytes

_Next: TypeAlias = "Ledger | None"
"""The ledger after an entry; None after the seal."""


class Chain:
    """The charges of one run. An entry that breaks a rule is refused, and changes nothing.

    Privacy:
        Claim C9. A run never spends more than it was granted, and nothing after its
        seal. No entry of another run has a part in any byte of it.
    """

    def __init__(self, grant: Grant) -> None:
        """Start with what the run was granted."""
        data = to_bytes(grant)
        self.grant, self.head, self.count = grant, hash_of(data), 0
        self.ledger = Ledger(grant.rho)
        self.lines = [data]
        """The grant and the charges, as a release shows them."""
        self.seal: str | None = None
        """The hash of the seal, if there is one."""

    def check(self, entry: Line) -> None:
        """See whether the entry may come next.

        Raises:
            AccountError: If it may not; nothing changes.
            BudgetExceededError: If it costs more than is left.
            RunTakenError: If this step is charged already.
        """
        self._after(entry)

    def post(self, data: bytes) -> None:
        """Take the next entry, as stored.

        Raises:
            AccountError: If it may not come next; nothing changes.
            BudgetExceededError: If it costs more than is left.
            RunTakenError: If this step is charged already.
        """
        ledger = self._after(_parsed(data, self.grant.run, self.count))
        self.head, self.count = hash_of(data), self.count + 1
        if ledger is None:
            self.seal = self.head
        else:
            self.ledger = ledger
            self.lines.append(data)

    def _after(self, entry: Line) -> _Next:
        run = self.grant.run
        if self.seal is not None:
            raise AccountError(f"Run {run} is closed; it cannot go on.")
        if isinstance(entry, Seal | Charge) and entry.run == run:
            if isinstance(entry, Charge) and entry.step < self.count:
                raise RunTakenError(run)
            if isinstance(entry, Charge) and entry.step != self.count:
                raise AccountError(f"Expected step {self.count} of run {run} to be charged next.")
            if entry.number == self.count and entry.previous == self.head:
                return None if isinstance(entry, Seal) else self.ledger.debit(spend_of(entry))
        raise AccountError(f"Expected entry {self.count} of run {run} to follow the one before it.")


def spend_of(charge: Charge) -> Spend:
    """What a charge is for."""
    return Spend(charge.mechanism, charge.rho, charge.request, charge.clique)


def _parsed(data: bytes, run: str, number: int) -> Line:
    message = f"Expected entry {number} of run {run} to be an entry of an account."
    with translated(ValueError, to=AccountError, message=message):
        return from_bytes(data)
