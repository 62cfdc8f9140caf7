"""Accounts under test: entries made by hand, a second reading of the rules, stores that lie, and writers that are
processes of their own.
"""

import hashlib
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import obstore
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ppsyn.errors import AccountError, BudgetExceededError, CapExceededError, RunTakenError, StoreError
from ppsyn.privacy.account import RunAccount, StoredAccount
from ppsyn.privacy.account_state import AccountState, Chain, RunBudget
from ppsyn.privacy.ledger import Spend
from ppsyn.schemas.account import (
    FIRST,
    CapChange,
    Charge,
    Close,
    Entry,
    Grant,
    Opening,
    Reservation,
    Seal,
    Spent,
    from_bytes,
)
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store

DATASET = "adult"
UNIT = "a row"
AT = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
DIGEST = "5e" * 32
GRAIN = Fraction(1, 2**300)
"""Too small for any sum of floating-point numbers."""

StoreT = TypeVar("StoreT", bound=Store)


def opening(cap: Fraction, dataset: str = DATASET) -> Opening:
    """The first entry of an account."""
    return Opening(number=0, previous=FIRST, nonce=uuid4().hex, dataset=dataset, cap=cap, delta=1e-9, unit=UNIT, at=AT)


@dataclass(frozen=True)
class Pen:
    """Writes entries for a place in an account, right or not."""

    number: int
    previous: str

    @classmethod
    def at(cls, state: AccountState | Chain) -> "Pen":
        """For the next place of a state."""
        return cls(state.count, state.head)

    def reserve(self, run: str, rho: Fraction, *, is_chained: bool = False) -> Reservation:
        return Reservation(**self._place, run=run, rho=rho, inputs=DIGEST, at=AT, is_chained=is_chained)

    def charge(self, run: str, step: int, rho: Fraction) -> Charge:
        about = {"mechanism": "measure", "clique": ("a", "b"), "request": DIGEST}
        return Charge(**self._place, run=run, step=step, rho=rho, **about)

    def close(self, run: str, manifest: str | None = DIGEST, spent: Fraction | None = None) -> Close:
        told = None if spent is None else Spent(rho=spent, charges=int(spent > 0), seal=DIGEST)
        return Close(**self._place, run=run, manifest=manifest, at=AT, spent=told)

    def seal(self, run: str) -> Seal:
        return Seal(**self._place, run=run)

    def cap(self, cap: Fraction) -> CapChange:
        return CapChange(**self._place, cap=cap, at=AT)

    @property
    def _place(self) -> dict[str, object]:
        return {"number": self.number, "previous": self.previous, "nonce": uuid4().hex}


def cost(rho: Fraction) -> Spend:
    """A spend."""
    return Spend("measure", rho, DIGEST, ("a", "b"))


@dataclass
class Share:
    """What a run reserved and has spent."""

    reserved: Fraction
    spends: list[Fraction] = field(default_factory=list)
    is_open: bool = True
    is_chained: bool = True

    @property
    def counted(self) -> Fraction:
        return self.reserved if self.is_open else sum(self.spends, Fraction(0))


@dataclass
class Rules:
    """The rules of claim C9, written a second time and without regard to speed.

    Attributes:
        are_apart: Whether charges are entries of chains of their own, or all is one sequence.
    """

    cap: Fraction
    are_apart: bool = True
    shares: dict[str, Share] = field(default_factory=dict)

    @property
    def committed(self) -> Fraction:
        return sum((share.counted for share in self.shares.values()), Fraction(0))

    @property
    def left(self) -> Fraction:
        return self.cap - self.committed

    @property
    def spent(self) -> Fraction:
        return sum((sum(share.spends, Fraction(0)) for share in self.shares.values()), Fraction(0))

    def refusal(self, entry: Entry) -> type[Exception] | None:
        """With what an entry in the right place has to be refused, if it has to."""
        match entry:
            case CapChange():
                return None if entry.cap >= self.committed and entry.cap > 0 else AccountError
            case Reservation() if entry.run not in self.shares:
                return None if 0 < entry.rho <= self.left else CapExceededError
            case Charge() if self._is_open(entry.run) and self.shares[entry.run].is_chained == self.are_apart:
                return self._refused_charge(entry, self.shares[entry.run])
            case Close() if self._is_open(entry.run):
                return None if self.are_apart or self._is_told(entry) else AccountError
            case _:
                return AccountError

    def _is_open(self, run: str) -> bool:
        return run in self.shares and self.shares[run].is_open

    def _is_told(self, entry: Close) -> bool:
        """Whether a close says what the run has spent exactly if its charges are elsewhere, and no more than all."""
        share = self.shares[entry.run]
        if entry.spent is None:
            return not share.is_chained
        return share.is_chained and 0 <= entry.spent.rho <= share.reserved

    def _refused_charge(self, entry: Charge, share: Share) -> type[Exception] | None:
        if entry.step != len(share.spends):
            return RunTakenError if self.are_apart and entry.step < len(share.spends) else AccountError
        left = share.reserved - sum(share.spends, Fraction(0))
        return None if 0 < entry.rho <= left else BudgetExceededError

    def take(self, entry: Entry) -> None:
        """Change as the entry says."""
        match entry:
            case CapChange():
                self.cap = entry.cap
            case Reservation():
                self.shares[entry.run] = Share(entry.rho, is_chained=entry.is_chained)
            case Charge():
                self.shares[entry.run].spends.append(entry.rho)
            case Close():
                share = self.shares[entry.run]
                share.is_open = False
                if not self.are_apart and entry.spent is not None and entry.spent.charges:
                    share.spends.append(entry.spent.rho)
            case _:
                raise AssertionError


def replay(store: Store, dataset: str = DATASET) -> Rules:
    """Read a stored account from its bytes alone, and see that every entry follows from all before it."""
    keys = store.keys(f"accounts/{dataset}")
    entries = [store.get(key) for key in keys if key.count("/") == 2]
    chains: dict[str, list[bytes]] = {}
    for key in keys:
        if key.count("/") != 2:
            _, _, folder, run, name = key.split("/")
            assert folder == "charges"
            assert name == f"{len(chains.setdefault(run, [])):06d}.json"
            chains[run].append(store.get(key))
    first, *rest = [from_bytes(data) for data in entries]
    assert isinstance(first, Opening)
    hashes = [FIRST, *(hashlib.sha256(data).hexdigest() for data in entries)]
    rules, nonces = Rules(first.cap), [first.nonce]
    for entry in rest:
        assert not isinstance(entry, Grant | Charge | Seal)
        nonces.append(entry.nonce)
        if isinstance(entry, Close):
            _check_sealed(entry, chains.get(entry.run, []))
        assert rules.refusal(entry) is None, entry
        rules.take(entry)
        if isinstance(entry, Reservation):
            nonces += _take_charges(rules, entry, chains.get(entry.run, []), dataset)
        assert rules.committed <= rules.cap
    assert [entry.number for entry in (first, *rest)] == list(range(len(entries)))
    assert [entry.previous for entry in (first, *rest)] == hashes[:-1]
    assert len(set(nonces)) == len(nonces)
    assert set(chains) <= set(rules.shares)
    return rules


def _take_charges(rules: Rules, reservation: Reservation, chain: Sequence[bytes], dataset: str) -> list[str]:
    """Take what a run was charged, up to its seal; the nonces."""
    assert reservation.is_chained
    granted = {
        "kind": "grant",
        "dataset": dataset,
        "run": reservation.run,
        "rho": str(reservation.rho),
        "inputs": reservation.inputs,
    }
    granted |= {"quality_of": reservation.quality_of, "at": reservation.at.strftime("%Y-%m-%dT%H:%M:%SZ")}
    body = json.dumps(granted, separators=(",", ":"))
    digest = hashlib.sha256(body.encode()).hexdigest()
    previous = hashlib.sha256(f'{body[:-1]},"digest":"{digest}"}}\n'.encode()).hexdigest()
    entries = [from_bytes(data) for data in chain]
    for number, (entry, data) in enumerate(zip(entries, chain, strict=True)):
        assert isinstance(entry, Charge | Seal)
        assert (entry.number, entry.previous, entry.run) == (number, previous, reservation.run)
        previous = hashlib.sha256(data).hexdigest()
        if isinstance(entry, Seal):
            assert number == len(entries) - 1
        else:
            assert rules.refusal(entry) is None, entry
            rules.take(entry)
    return [entry.nonce for entry in entries if not isinstance(entry, Grant)]


def _check_sealed(close: Close, chain: Sequence[bytes]) -> None:
    *charges, seal = map(from_bytes, chain)
    assert isinstance(seal, Seal)
    assert close.spent is not None
    assert close.spent.rho == sum((charge.rho for charge in charges if isinstance(charge, Charge)), Fraction(0))
    assert (close.spent.charges, close.spent.seal) == (len(charges), hashlib.sha256(chain[-1]).hexdigest())


def contents(store: Store) -> dict[str, bytes]:
    """All that is in a store."""
    return {key: store.get(key) for key in store.keys()}  # noqa: SIM118  not a dict


def remove(store: Store, key: str) -> None:
    """Take one object away."""
    obstore.delete(store._backend, store._prefix + key)


def key_of(number: int, dataset: str = DATASET) -> str:
    """Where an entry is."""
    return f"accounts/{dataset}/{number:06d}.json"


def charge_key(run: str, step: int, dataset: str = DATASET) -> str:
    """Where a charge, or the seal, of a run is."""
    return f"accounts/{dataset}/charges/{run}/{step:06d}.json"


def new_memory() -> Location:
    """A place that is empty and ends with this process."""
    return Location(url=f"memory://{uuid4().hex}")


def place_of(request: pytest.FixtureRequest, folder: Path) -> Location:
    """An empty place of the kind that a fixture's parameter names."""
    match request.param:
        case "local":
            return Location(url=str(folder / "store"))
        case "memory":
            return new_memory()
        case name:
            return request.getfixturevalue(name)


def open_account(store: Store, cap: Fraction = Fraction(1), dataset: str = DATASET) -> StoredAccount:
    """The account of a dataset, opened by a new handle."""
    account = StoredAccount(store, dataset)
    account.open(cap, 1e-9, UNIT)
    return account


def reopened(kind: type[StoreT], store: Store) -> StoreT:
    """The same store, of another class."""
    return kind(store.location, store._backend, store._prefix)


class LyingStore(Store):
    """Does as `lies` says at the next creations, one each, and then behaves.

    Attributes:
        lies: `exists`: written, and said to exist, as when a client repeats a request whose answer was lost.
            `raises`: written, and the connection breaks. `busy`: not written, and said to exist, as when another's
            write is under way and fails (409). `down`: not written, and the connection breaks.
        asked: The keys that were to be created.
    """

    lies: Sequence[str] = ()
    asked: Sequence[str] = ()

    def create(self, key: str, data: bytes) -> bool:
        self.asked = (*self.asked, key)
        lie, self.lies = (self.lies[0], self.lies[1:]) if self.lies else ("", ())
        made = super().create(key, data) if lie not in ("busy", "down") else False
        if lie in ("raises", "down"):
            raise StoreError("Cannot create: connection reset by peer")
        return made and not lie


class ToldStore(Store):
    """Tells what was created, when it is there."""

    told: Callable[[str], None]

    def create(self, key: str, data: bytes) -> bool:
        made = super().create(key, data)
        self.told(key)
        return made


class RacedStore(Store):
    """Lets others write between the moment when a writer has read all and the moment when it creates its entry."""

    rivals: Sequence[Callable[[], object]] = ()

    def create(self, key: str, data: bytes) -> bool:
        if self.rivals:
            rival, *self.rivals = self.rivals
            rival()
        return super().create(key, data)


class OverwritingStore(RacedStore):
    """Ignores that an object is there, as some servers do."""

    def create(self, key: str, data: bytes) -> bool:
        super().create(key, data)
        self.put(key, data)
        return True


runs = st.sampled_from(["r1", "r2", "r3", "r4"])
factors = st.sampled_from([Fraction(1, 3), Fraction(1, 7), Fraction(1), Fraction(1, 2), Fraction(0), Fraction(-1)])
grains = st.sampled_from([Fraction(0), Fraction(0), Fraction(0), GRAIN, -GRAIN])


class AccountMachine(RuleBasedStateMachine):
    """Entries of every kind, in any order, amounts at and around what is left, against the second reading."""

    are_apart = False

    @initialize(cap=st.fractions(Fraction(1, 10**9), 10**6))
    def begin(self, cap: Fraction) -> None:
        self.rules = Rules(cap, self.are_apart)
        self.open(cap)

    def open(self, cap: Fraction) -> None:
        raise NotImplementedError

    def seen(self) -> AccountState:
        """The account as the code sees it."""
        raise NotImplementedError

    def budgets(self) -> list[RunBudget]:
        """The runs as the code sees them."""
        return list(self.seen().budgets.values())

    def attempt(self, entry: Entry, refusal: type[Exception] | None) -> None:
        """Have the entry written; see that it is refused as it should be, or taken."""
        raise NotImplementedError

    def make(self, entry: Entry) -> None:
        refusal = self.rules.refusal(entry)
        self.attempt(entry, refusal)
        if refusal is None:
            self.rules.take(entry)

    @rule(run=runs, factor=factors, grain=grains, is_chained=st.booleans())
    def reserve(self, run: str, factor: Fraction, grain: Fraction, is_chained: bool) -> None:
        rho = self.rules.left * factor + grain
        self.make(Pen.at(self.seen()).reserve(run, rho, is_chained=is_chained or self.are_apart))

    @rule(run=runs, ahead=st.sampled_from([0, 0, 0, 0, -1, 1]), factor=factors, grain=grains)
    def charge(self, run: str, ahead: int, factor: Fraction, grain: Fraction) -> None:
        share = self.rules.shares.get(run, Share(Fraction(1)))
        left = share.reserved - sum(share.spends, Fraction(0))
        step = max(0, len(share.spends) + ahead)
        self.make(Pen.at(self.seen()).charge(run, step, left * factor + grain))

    @rule(run=runs, factor=st.none() | factors, grain=grains)
    def close(self, run: str, factor: Fraction | None, grain: Fraction) -> None:
        held = self.rules.shares.get(run, Share(Fraction(1))).reserved
        self.make(Pen.at(self.seen()).close(run, spent=None if factor is None else held * factor + grain))

    @rule(factor=factors, extra=st.sampled_from([Fraction(0), GRAIN, Fraction(1), Fraction(1, 3)]))
    def change_cap(self, factor: Fraction, extra: Fraction) -> None:
        self.make(Pen.at(self.seen()).cap(self.rules.committed * factor + extra))

    @invariant()
    def agrees_with_the_rules(self) -> None:
        if hasattr(self, "rules"):
            self.check(self.seen(), self.budgets())

    def check(self, state: AccountState, budgets: Sequence[RunBudget]) -> None:
        """See that the code tells what the second reading tells."""
        rules = self.rules
        assert (state.cap, state.committed, state.left) == (rules.cap, rules.committed, rules.left)
        assert sum((budget.spent for budget in budgets), Fraction(0)) == rules.spent
        assert 0 <= state.spent <= rules.spent <= state.committed <= state.cap
        assert {budget.run: (budget.total, budget.is_open) for budget in budgets} == {
            run: (share.reserved, share.is_open) for run, share in rules.shares.items()
        }
        for budget in budgets:
            spends = rules.shares[budget.run].spends
            assert (budget.spent, budget.charges) == (sum(spends, Fraction(0)), len(spends))
            assert budget.spent <= budget.total


_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["ppsyn.privacy.account", "hypothesis.stateful", "pytest"])  # what this file imports


@dataclass(frozen=True)
class Writer:
    """What a process needs to write to an account: the place, and its keys, which no argument of a command shows."""

    location: Location
    keys: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, location: Location) -> "Writer":
        """With the keys that this process has."""
        return cls(
            location, {name: value for name, value in os.environ.items() if name.startswith(location.credentials)}
        )

    def account(self) -> StoredAccount:
        os.environ.update(self.keys)
        return StoredAccount(open_store(self.location), DATASET)


def start(job: Callable[..., None], *given: object) -> BaseProcess:
    """Run the job in a process of its own."""
    process = _PROCESSES.Process(target=job, args=given, daemon=True)
    process.start()
    return process


def join(processes: Sequence[BaseProcess], seconds: float = 60) -> list[int | None]:
    """Wait for them and return how each ended."""
    for process in processes:
        process.join(seconds)
    return [process.exitcode for process in processes]


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something holds, or fail."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def kill(process: BaseProcess) -> int | None:
    """End it at once, wherever it is, and return how it ended."""
    process.kill()
    process.join()
    return process.exitcode


def spend_steps(writer: Writer, run: str, rho: Fraction, count: int, done: Path) -> None:
    """Charge steps one by one; each is noted in a file as soon as its charge has returned."""
    account = RunAccount(writer.account(), run)
    with done.open("ab", buffering=0) as file:
        for _ in range(count):
            step = len(account.ledger.spends)
            account.charge(cost(rho))
            file.write(f"{step}\n".encode())


def spend_and_reserve(
    writer: Writer, run: str, spends: Sequence[Fraction], holds: Sequence[Fraction], done: Path
) -> None:
    """Charge steps one by one, and between them try to reserve more, for other runs; note how often there was room."""
    account = writer.account()
    charged, every, held = RunAccount(account, run), len(spends) // len(holds), 0
    for step, rho in enumerate(spends):
        charged.charge(cost(rho))
        if step % every == every - 1:
            held += has_room(partial(account.reserve, f"{run}-{step}", holds[step // every], DIGEST))
    done.write_text(str(held), encoding="utf-8")


def spend_until_taken(writer: Writer, run: str, rho: Fraction, count: int, done: Path) -> None:
    """Charge steps until another process is found to do so."""
    with suppress(RunTakenError):
        spend_steps(writer, run, rho, count, done)


def has_room(write: Callable[[], None]) -> bool:
    """Write; whether the account had room for it."""
    try:
        write()
    except CapExceededError:
        return False
    return True
