"""The account of a dataset, told to a person or to a script; and what an owner may change of it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from rich.console import Console
from rich.table import Table

from ppsyn.errors import AccountError
from ppsyn.privacy.account import StoredAccount, datasets
from ppsyn.privacy.account_state import AccountState, RunBudget
from ppsyn.privacy.budget import epsilon_from, rho_from
from ppsyn.runs.account_check import check_known
from ppsyn.storage import Store

_epsilon_from = lru_cache(maxsize=None)(epsilon_from)
"""A conversion takes a millisecond, and most runs of an account have spent the same."""


@dataclass(frozen=True, slots=True)
class Statement:
    """An account as of now."""

    dataset: str
    state: AccountState
    budgets: tuple[RunBudget, ...]

    @property
    def _totals(self) -> dict[str, Fraction]:
        state, spent = self.state, sum((budget.spent for budget in self.budgets), Fraction(0))
        return {"cap": state.cap, "spent": spent, "reserved": state.committed - spent, "left": state.left}

    def _epsilon(self, rho: Fraction) -> float | None:
        delta = self.state.opening.delta
        return None if delta is None else _epsilon_from(rho, delta)

    def as_json(self) -> dict[str, object]:
        """For scripts. Amounts are exact fractions of zCDP rho, with epsilon at the account's delta."""
        state = self.state
        return {
            "dataset": self.dataset,
            "unit": state.opening.unit,
            "delta": state.opening.delta,
            **{name: _amount(value, self._epsilon(value)) for name, value in self._totals.items()},
            "releases": [
                {
                    "run": budget.run,
                    "quality_of": budget.quality_of,
                    "state": state_of(budget),
                    "reserved": _amount(budget.reserved, self._epsilon(budget.reserved)),
                    "spent": _amount(budget.spent, self._epsilon(budget.spent)),
                    "spends": budget.charges,
                    "opened_at": budget.grant.at.isoformat(),
                    "closed_at": budget.closed_at.isoformat() if budget.closed_at else None,
                }
                for budget in self.budgets
            ],
        }

    def print(self) -> None:
        """For a person."""
        state, console = self.state, Console()
        console.print(f"Account of {self.dataset}, protecting {state.opening.unit}", markup=False, emoji=False)
        totals = Table(box=None, pad_edge=False)
        for name in ("", "rho", f"epsilon at delta {state.opening.delta:g}" if state.opening.delta else "epsilon"):
            totals.add_column(name, justify="left" if not name else "right")
        for name, value in self._totals.items():
            totals.add_row(name, *self._told(value))
        console.print(totals)
        budgets = Table(box=None, pad_edge=False)
        for name in ("run", "state"):
            budgets.add_column(name, no_wrap=True)
        for name in ("spends", "rho", "epsilon"):
            budgets.add_column(name, justify="right")
        for budget in self.budgets:
            status = "quality" if budget.quality_of and budget.manifest else state_of(budget)
            budgets.add_row(budget.run, status, str(budget.charges), *self._told(budget.spent))
        if self.budgets:
            console.print()
            console.print(budgets)

    def _told(self, rho: Fraction) -> tuple[str, str]:
        epsilon = self._epsilon(rho)
        return f"{float(rho):.6g}", "" if epsilon is None else f"{epsilon:.4g}"


def state_of(budget: RunBudget) -> str:
    """How a release stands."""
    if budget.is_open:
        return "open"
    return "abandoned" if budget.manifest is None else "published"


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
    state = account.find() if is_there else None
    if state is None:
        known = ", ".join(datasets(store)) or "none"
        raise AccountError(f"There is no account of {dataset!r} in {store.location.url}. Accounts there: {known}.")
    return Statement(dataset, state, tuple(account.budgets()))


def set_cap(store: Store, dataset: str, epsilon: float) -> None:
    """Change the cap, at the account's delta.

    Raises:
        AccountError: If the account has no delta, or more is spent or reserved already.
    """
    account = StoredAccount(store, dataset)
    delta = account.state.opening.delta
    if delta is None:
        raise AccountError(f"The account of {dataset!r} names no delta; its cap cannot be told as an epsilon.")
    account.set_cap(rho_from(epsilon, delta))
