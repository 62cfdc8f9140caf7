"""Policies under test: the rules read a second time, a clock that is told, and processes that ask at once."""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from support.accounts import DATASET, DIGEST, Writer, has_room

from ppsyn.errors import AccountError
from ppsyn.privacy import account as module
from ppsyn.privacy.account import StoredAccount
from ppsyn.schemas.account import CapChange, Close, Opening, PolicyChange, Reservation, from_bytes
from ppsyn.schemas.policy import Policy
from ppsyn.storage import Store

MONTHLY = Policy.model_validate({"cap": Fraction(10), "allowance": {"budget": Fraction(1), "period": "month"}})


def policy(cap: Fraction = Fraction(10), **fields: object) -> Policy:
    """A policy with exact amounts."""
    return Policy.model_validate({"cap": cap, **fields})


def monthly(budget: Fraction = Fraction(1), period: str = "month", unused: str = "lapses", **fields: object) -> Policy:
    """A policy with an allowance."""
    return policy(**{**fields, "allowance": {"budget": budget, "period": period, "unused": unused}})


class Clock:
    """The clock of accounts, as a test tells it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: datetime) -> None:
        self.at = at
        monkeypatch.setattr(module, "_now", lambda: self.at)

    def tell(self, *when: int) -> None:
        self.at = datetime(*when, tzinfo=UTC)


@dataclass
class Run:
    """A run, as its entries tell it."""

    rho: Fraction
    month: str
    purpose: str | None
    counted: Fraction


def _label(month: str, period: str) -> str:
    year, number = month[:4], int(month[5:])
    return {"month": month, "quarter": f"{year} quarter {(number - 1) // 3}", "year": year}[period]


def _months(first: str, last: str) -> Iterator[str]:
    year, number = int(first[:4]), int(first[5:])
    while (month := f"{year:04d}-{number:02d}") <= last:
        yield month
        year, number = (year + 1, 1) if number == 12 else (year, number + 1)


@dataclass
class PolicyRules:
    """The rules of a policy, written a second time: label every month, then add up."""

    cap: Fraction
    month: str
    policy: Policy | None = None
    since: str = ""

    def __post_init__(self) -> None:
        self.runs: dict[str, Run] = {}

    def fits(self, rho: Fraction, purpose: str | None, month: str) -> bool:
        """Whether a release may reserve this much."""
        if not 0 < rho <= self.cap - self._sum(list(self.runs.values())):
            return False
        found = self.policy
        if found is None:
            return True
        if (found.purposes and purpose not in found.purposes) or not (
            (found.smallest or 0) <= rho <= (found.largest or rho)
        ):
            return False
        mine = [run for run in self.runs.values() if run.purpose == purpose]
        part = found.purposes.get(purpose or "")
        if part is not None and part.cap is not None and self._sum(mine) + rho > part.cap:
            return False
        if found.allowance is None:
            return True
        shares = [(found.allowance.budget, list(self.runs.values()))]
        shares += [] if part is None or part.allowance is None else [(part.allowance, mine)]
        first = month if found.allowance.unused == "lapses" else self.since
        labels = {_label(each, found.allowance.period) for each in _months(first, month)}
        return all(
            self._sum([run for run in runs if _label(run.month, found.allowance.period) in labels]) + rho
            <= budget * len(labels)
            for budget, runs in shares
        )

    @staticmethod
    def _sum(runs: Sequence[Run]) -> Fraction:
        return sum((run.counted for run in runs), Fraction(0))

    def take(self, entry: object) -> None:
        """Change as an entry says."""
        assert isinstance(entry, Reservation | Close | PolicyChange | CapChange)
        told = f"{entry.at.astimezone(UTC):%Y-%m}"
        month = max(self.month, told)
        match entry:
            case Reservation():
                assert entry.month == (None if self.policy is None else month)
                assert self.fits(entry.rho, entry.purpose, month), entry
                self.runs[entry.run] = Run(entry.rho, entry.month or told, entry.purpose, entry.rho)
            case Close():
                assert entry.spent is not None
                assert entry.spent.rho <= self.runs[entry.run].counted
                self.runs[entry.run].counted = entry.spent.rho
            case PolicyChange():
                before = self.policy
                if before is None or (before.allowance, before.purposes) != (
                    entry.policy.allowance,
                    entry.policy.purposes,
                ):
                    self.since = month
                assert entry.month == month
                self.policy, self.cap = entry.policy, entry.policy.cap
            case CapChange():
                assert self.policy is None
                self.cap = entry.cap
        self.month = month
        assert self._sum(list(self.runs.values())) <= self.cap


def read_again(store: Store) -> PolicyRules:
    """Read a stored account from its bytes alone, and see that its policies were kept to at every entry."""
    data = [store.get(key) for key in store.keys(f"accounts/{DATASET}") if key.count("/") == 2]
    first, *rest = map(from_bytes, data)
    assert isinstance(first, Opening)
    rules = PolicyRules(first.cap, f"{first.at.astimezone(UTC):%Y-%m}")
    for before, entry in zip(data, rest, strict=False):
        assert not isinstance(entry, Opening)
        assert getattr(entry, "previous", None) == hashlib.sha256(before).hexdigest()
        rules.take(entry)
    return rules


def reserve_at_once(writer: Writer, runs: Sequence[str], rho: Fraction, purpose: str | None, done: Path) -> None:
    """Ask for budget for all runs at once, each on a handle of its own; note how many had room."""
    accounts = [writer.account() for _ in runs]

    def ask(account: StoredAccount, run: str) -> bool:
        try:
            return has_room(partial(account.reserve, run, rho, DIGEST, purpose=purpose))
        except AccountError:
            return False

    with ThreadPoolExecutor(len(runs)) as pool:
        held = sum(pool.map(ask, accounts, runs))
    done.write_text(str(held), encoding="utf-8")


def reserve_and_close(writer: Writer, name: str, rho: Fraction, changed: str, done: Path) -> None:
    """Reserve, close, and change the policy, over and over; each reservation is noted when it is had."""
    account = writer.account()
    with done.open("ab", buffering=0) as file:
        for number in range(10_000):
            run = f"{name}-{number}"
            if run in account.state.budgets:
                continue
            if has_room_under(account, run, rho):
                file.write(f"{run}\n".encode())
                account.close(run, None)
            account.set_policy(Policy.model_validate_json(changed))


def has_room_under(account: StoredAccount, run: str, rho: Fraction) -> bool:
    """Reserve; whether the policy had room for it."""
    try:
        account.reserve(run, rho, DIGEST)
    except AccountError:
        return False
    return True
