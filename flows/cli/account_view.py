"""The account of a dataset, told to a person or to a script; and what an owner may change of it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from rich.console import Console
from rich.table import Table

from ppsyn.errors import AccountError
from ppsyn.privacy.account import StoredAccount, datasets
from ppsyn.privacy.account_state import Book, Part
from ppsyn.privacy.budget import epsilon_from, rho_from
from ppsyn.runs.account_check import check_known
from ppsyn.storage import Store

_epsilon_from = lru_cache(maxsize=None)(epsilon_from)
"""A conversion takes a millisecond, and most runs of an account have spent the same."""


@dataclass(frozen=True, slots=True)
class Statement:
    """An account as of now."""

    dataset: str
    book: Book
    parts: tuple[Part, ...]

    @property
    def _totals(self) -> dict[str, Fraction]:
        book, spent = self.book, sum((part.spent for part in self.parts), Fraction(0))
        return {"cap": book.cap, "spent": spent, "held": book.committed - spent, "left": book.left}

    def _epsilon(self, rho: Fraction) -> float | None:
        delta = self.book.opening.delta
        return None if delta is None else _epsilon_from(rho, delta)

    def as_json(self) -> dict[str, object]:
        """For scripts. Amounts are exact fractions of zCDP rho, with epsilon at the account's delta."""
        book = self.book
        return {
            "dataset": self.dataset,
            "unit": book.opening.unit,
            "delta": book.opening.delta,
            **{name: _amount(value, self._epsilon(value)) for name, value in self._totals.items()},
            "releases": [
                {
                    "run": part.run,
                    "quality_of": part.quality_of,
                    "state": state_of(part),
                    "held": _amount(part.held, self._epsilon(part.held)),
                    "spent": _amount(part.spent, self._epsilon(part.spent)),
                    "spends": part.charges,
                    "opened_at": part.grant.at.isoformat(),
                    "closed_at": part.closed_at.isoformat() if part.closed_at else None,
                }
                for part in self.parts
            ],
        }

    def print(self) -> None:
        """For a person."""
        book, console = self.book, Console()
        console.print(f"Account of {self.dataset}, protecting {book.opening.unit}", markup=False, emoji=False)
        totals = Table(box=None, pad_edge=False)
        for name in ("", "rho", f"epsilon at delta {book.opening.delta:g}" if book.opening.delta else "epsilon"):
            totals.add_column(name, justify="left" if not name else "right")
        for name, value in self._totals.items():
            totals.add_row(name, *self._told(value))
        console.print(totals)
        parts = Table(box=None, pad_edge=False)
        for name in ("run", "state"):
            parts.add_column(name, no_wrap=True)
        for name in ("spends", "rho", "epsilon"):
            parts.add_column(name, justify="right")
        for part in self.parts:
            state = "quality" if part.quality_of and part.manifest else state_of(part)
            parts.add_row(part.run, state, str(part.charges), *self._told(part.spent))
        if self.parts:
            console.print()
            console.print(parts)

    def _told(self, rho: Fraction) -> tuple[str, str]:
        epsilon = self._epsilon(rho)
        return f"{float(rho):.6g}", "" if epsilon is None else f"{epsilon:.4g}"


def state_of(part: Part) -> str:
    """How a release stands."""
    if part.is_open:
        return "open"
    return "abandoned" if part.manifest is None else "published"


def _amount(rho: Fraction, epsilon: float | None) -> dict[str, object]:
    return {"rho": str(rho), "rho_value": float(rho), "epsilon": epsilon}


def statement(store: Store, dataset: str) -> Statement:
    """The account of a dataset.

    Raises:
        AccountError: If there is none, naming those that there are, or it does not know all that lies beside it.
    """
    account = StoredAccount(store, dataset)
    is_there = dataset in datasets(store)
    if is_there or dataset in store.folders("releases"):
        check_known(account, store, store)
    book = account.find() if is_there else None
    if book is None:
        known = ", ".join(datasets(store)) or "none"
        raise AccountError(f"There is no account of {dataset!r} in {store.location.url}. Accounts there: {known}.")
    return Statement(dataset, book, tuple(account.parts()))


def set_cap(store: Store, dataset: str, epsilon: float) -> None:
    """Change the cap, at the account's delta.

    Raises:
        AccountError: If the account has no delta, or more is spent or held already.
    """
    account = StoredAccount(store, dataset)
    delta = account.book.opening.delta
    if delta is None:
        raise AccountError(f"The account of {dataset!r} names no delta; its cap cannot be told as an epsilon.")
    account.set_cap(rho_from(epsilon, delta))
