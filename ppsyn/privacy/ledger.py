"""What was spent, in exact fractions, never more than the total."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, Protocol

from ppsyn.domain import Clique
from ppsyn.errors import BudgetExceededError


@dataclass(frozen=True, slots=True)
class Spend:
    """One draw of noise, as charged.

    Attributes:
        digest: Fingerprint of the request it paid for.
        clique: What was measured; empty for a selection or a comparison.
    """

    kind: Literal["measure", "select", "compare"]
    rho: Fraction
    digest: str
    clique: Clique = ()


@dataclass(frozen=True, slots=True)
class Ledger:
    """A total and the spends made against it, in order."""

    total: Fraction
    spends: tuple[Spend, ...] = ()

    @property
    def spent(self) -> Fraction:
        """The exact sum of the spends."""
        return sum((spend.rho for spend in self.spends), Fraction(0))

    @property
    def left(self) -> Fraction:
        """What may still be spent."""
        return self.total - self.spent

    def debit(self, spend: Spend) -> "Ledger":
        """Return the ledger with `spend` added, or refuse. Claim C5.

        Raises:
            BudgetExceededError: If the spend is not positive or passes the total.
        """
        if not 0 < spend.rho <= self.left:
            raise BudgetExceededError(spend.rho, self.left)
        return replace(self, spends=(*self.spends, spend))


class Account(Protocol):
    """Where spends are written before their noise is drawn."""

    @property
    def ledger(self) -> Ledger:
        """What has been charged so far."""
        ...

    def charge(self, spend: Spend) -> None:
        """Charge the spend for good, or raise BudgetExceededError and charge nothing."""
        ...


class MemoryAccount:
    """An account that lasts as long as its process."""

    def __init__(self, total: Fraction) -> None:
        """Open the account with nothing spent."""
        self._ledger = Ledger(total)

    @property
    def ledger(self) -> Ledger:
        """What has been charged so far."""
        return self._ledger

    def charge(self, spend: Spend) -> None:
        """Charge the spend, or raise and charge nothing."""
        self._ledger = self._ledger.debit(spend)
