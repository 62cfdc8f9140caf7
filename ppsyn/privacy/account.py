"""The budget of a dataset, in a store: one object for each entry, written before the noise is drawn."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import TypeAlias
from uuid import uuid4

from ppsyn.errors import AccountError, BudgetExceededError, MissingError, RunTakenError, translated
from ppsyn.privacy.account_state import Book, Part, open_book
from ppsyn.privacy.chain import Chain
from ppsyn.privacy.ledger import Ledger, Spend
from ppsyn.schemas.account import FIRST, CapChange, Charge, Close, Entry, Hold, Opening, Seal, Spent, to_bytes
from ppsyn.storage import Store

_PATIENCE_SECONDS = 600
_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 1.0
_CHARGES = "charges"
"""The folder in an account in which each run has a folder for its charges."""

Draft: TypeAlias = Callable[[int, str, str], Entry]
"""Makes an entry from its number, the hash of the one before, and a nonce."""


class StoredAccount:
    """One dataset's account. Any number of processes may use it at once.

    Privacy:
        Claim C9. Entries of the account, and charges of each run, are numbered
        without a gap and each is created only if absent, so that no two writers can
        take the same number and each has read all that came before the number it took.
    """

    def __init__(self, store: Store, dataset: str) -> None:
        """Use the account under `accounts/<dataset>`."""
        self.dataset = dataset
        self._store = store
        self._book: Book | None = None
        self._chains: dict[str, Chain] = {}

    @property
    def book(self) -> Book:
        """The account as of now.

        Raises:
            AccountError: If there is none, or if it contradicts itself.
        """
        book = self.find()
        if book is None:
            raise AccountError(f"There is no account of {self.dataset!r} in {self._store.location.url}.")
        return book

    def find(self) -> Book | None:
        """The account as of now, or None if there is none."""
        self._refresh()
        return self._book

    def entries(self) -> list[bytes]:
        """All entries of the account itself, as stored."""
        count = self.book.count
        return self._store.get_all(self._key(number) for number in range(count))

    def chain(self, run: str) -> Chain:
        """What a run was granted and charged, as of now.

        Raises:
            AccountError: If it holds nothing, or its charges contradict themselves or the account.
        """
        if run not in self._chains:
            self._chains[run] = self._read_chain(run)
        self._follow(self._chains[run])
        return self._chains[run]

    def part(self, run: str) -> Part | None:
        """A run's part of the account, with what it has spent by now; None if it holds nothing."""
        part = self.book.parts.get(run)
        if part is None or not part.is_open or not part.is_chained:
            return part
        ledger = self.chain(run).ledger
        return replace(part, spent=ledger.spent, charges=len(ledger.spends))

    def parts(self) -> list[Part]:
        """All parts, with what they have spent by now; the charges of those that are open are read for it."""
        return [self.part(run) or part for run, part in self.book.parts.items()]

    def charged(self) -> list[str]:
        """The runs that have charges of their own in the store, whether the account knows them or not."""
        return self._store.folders(self._charges)

    def check_terms(self, cap: Fraction | None, unit: str) -> None:
        """See that a release fits the account, or that the account can be opened for it; nothing is written.

        Args:
            cap: What all releases may spend together; None to take the account as it is.
            unit: What is protected.

        Raises:
            AccountError: If there is no account and no cap, or the account has another cap or unit.
        """
        book = self.find()
        if book is None and cap is None:
            raise unopened(self.dataset)
        if book is not None and book.opening.unit != unit:
            raise AccountError(
                f"The account of {self.dataset!r} protects {book.opening.unit}, and this release protects {unit}; "
                "their costs cannot be added."
            )
        if book is not None and cap is not None and cap != book.cap:
            raise AccountError(
                f"The account of {self.dataset!r} has a cap of rho {float(book.cap):.6g}, and this release names "
                f"{float(cap):.6g}. Leave account.cap out, or change the cap with `ppsyn budget --set-cap`."
            )

    def open(self, cap: Fraction | None, delta: float | None, unit: str) -> None:
        """Open the account, or see that it is the one that is meant.

        Args:
            cap: What all releases may spend together; None to take the account as it is.
            delta: At which epsilon is told.
            unit: What is protected.

        Raises:
            AccountError: If there is no account and no cap, or the account has another cap or unit.
        """
        self.check_terms(cap, unit)
        if self.find() is None and cap is not None:
            opening = Opening(
                number=0, previous=FIRST, nonce=uuid4().hex, dataset=self.dataset, cap=cap, delta=delta, unit=unit,
                at=_now(),
            )  # fmt: skip
            open_book(to_bytes(opening))  # what may not stand in a store is not written to one
            self._create(self._key(0), to_bytes(opening))
        self.check_terms(cap, unit)  # another may have opened it in between

    def hold(self, run: str, rho: Fraction, inputs: str, quality_of: str | None = None) -> None:
        """Set a run's whole budget aside.

        Args:
            run: The run.
            rho: All that it may spend.
            inputs: Digest of its record.
            quality_of: The release whose quality it is to measure; None if it is a release itself.

        Raises:
            CapExceededError: If the account does not have it; nothing changes.
        """
        at = _now()
        self._append(lambda n, previous, nonce: Hold(
            number=n, previous=previous, nonce=nonce, run=run, rho=rho, inputs=inputs, quality_of=quality_of, at=at,
            is_chained=True,
        ))  # fmt: skip

    def charge(self, run: str, step: int, spend: Spend) -> None:
        """Charge a step of a run for good, before its noise is drawn.

        Raises:
            AccountError: If the run is closed; nothing changes.
            BudgetExceededError: If the run does not hold enough; nothing changes.
            RunTakenError: If another process has charged this step.
        """
        self._append(lambda n, previous, nonce: Charge(
            number=n, previous=previous, nonce=nonce, run=run, step=step, mechanism=spend.kind, clique=spend.clique,
            rho=spend.rho, request=spend.digest,
        ), run)  # fmt: skip

    def close(self, run: str, manifest: str | None) -> None:
        """End a run; what it holds and has not spent is free again.

        Its charges are sealed first, so that what the account then counts for it can never grow. If this process dies
        in between, the run still counts for all that it holds, and whoever closes it again goes on here.
        """
        at = _now()
        spent = self._seal(run) if self.book.open_part(run).is_chained else None
        self._append(lambda n, previous, nonce: Close(
            number=n, previous=previous, nonce=nonce, run=run, manifest=manifest, at=at, spent=spent
        ))  # fmt: skip

    def _seal(self, run: str) -> Spent:
        """Have the run's charges end with a seal; what they come to."""
        while (seal := (chain := self.chain(run)).seal) is None:
            try:
                self._append(lambda n, previous, nonce: Seal(number=n, previous=previous, nonce=nonce, run=run), run)
            except AccountError:
                if chain.seal is None:  # not that another process was faster
                    raise
        return Spent(rho=chain.ledger.spent, charges=len(chain.ledger.spends), seal=seal)

    def set_cap(self, cap: Fraction) -> None:
        """Change what all releases may spend together.

        Raises:
            AccountError: If more is spent or held already.
        """
        at = _now()
        self._append(lambda n, previous, nonce: CapChange(number=n, previous=previous, nonce=nonce, cap=cap, at=at))

    def _append(self, draft: Draft, run: str | None = None) -> None:
        """Write an entry after all others, of the account or of a run's charges, or refuse it and write nothing.

        A lost race re-reads and tries again. A store that repeats a request whose
        answer was lost may report our own entry as another's: its nonce tells.
        """
        nonce, pause, give_up = uuid4().hex, _PAUSE_SECONDS, time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < give_up:
            sequence = self.book if run is None else self.chain(run)
            entry = draft(sequence.count, sequence.head, nonce)
            sequence.check(entry)
            if self._create(self._key(entry.number, run), to_bytes(entry)):
                return
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        raise AccountError(f"The account of {self.dataset!r} is too busy: no entry could be written; nothing changed.")

    def _create(self, key: str, data: bytes) -> bool:
        """Whether the entry is in the store now, under its number."""
        if self._store.create(key, data):
            return True
        try:
            return self._store.get(key) == data
        except MissingError:  # another's write was under way, and failed
            return False

    def _refresh(self) -> None:
        """Read what others have written since."""
        if self._book is None:
            self._book = self._read()
        if self._book is not None:
            self._follow(self._book)

    def _follow(self, sequence: Book | Chain) -> None:
        run = sequence.grant.run if isinstance(sequence, Chain) else None
        while True:
            try:
                data = self._store.get(self._key(sequence.count, run))
            except MissingError:
                return
            self._post(sequence, data)

    def _read(self) -> Book | None:
        keys, folders = self._store.level(self._folder)
        if not keys and not folders:
            return None
        if not keys or not set(folders) <= {_CHARGES}:
            raise self._damaged()
        first, *rest = self._read_all(keys, None)
        book = self._opened(first)
        for data in rest:
            self._post(book, data)
        return book

    def _read_chain(self, run: str) -> Chain:
        part = self.book.parts.get(run)
        if part is None:
            raise AccountError(f"Expected run {run} to have set its budget aside.")
        if not part.is_chained:
            raise AccountError(
                f"Run {run} was begun by an earlier version of ppsyn, which kept its charges elsewhere. Abandon it "
                "(`ppsyn abandon`), which frees what it has not spent, and begin a new run."
            )
        chain = Chain(part.grant)
        for data in self._read_all(self._store.keys(f"{self._charges}/{run}"), run):
            self._post(chain, data)
        if not part.is_open and (chain.seal, chain.ledger.spent, chain.count - 1) != (
            part.seal,
            part.spent,
            part.charges,
        ):
            raise AccountError(
                f"The account of {self.dataset!r} is damaged: the charges of run {run} are not those that it was "
                "closed with."
            )
        return chain

    def _read_all(self, keys: list[str], run: str | None) -> list[bytes]:
        """The entries, of which a folder that others write to may list the later and not the earlier."""
        numbers, listed = range(_last(keys) + 1), set(keys)
        if all((key := self._key(number, run)) in listed or self._store.has(key) for number in numbers):
            expected = [self._key(number, run) for number in numbers]
            if listed <= set(expected):
                return self._store.get_all(expected)
        raise self._damaged()

    def _damaged(self) -> AccountError:
        return AccountError(f"The account of {self.dataset!r} is damaged: an entry is missing or out of place.")

    def _opened(self, data: bytes) -> Book:
        where = f"The account of {self.dataset!r} is damaged at entry 0"
        with translated(AccountError, to=AccountError, message=lambda error: f"{where}: {error}"):
            book = open_book(data)
        if book.opening.dataset != self.dataset:
            raise AccountError(f"{where}: it is of another dataset.")
        return book

    def _post(self, sequence: Book | Chain, data: bytes) -> None:
        run = f" of run {sequence.grant.run}" if isinstance(sequence, Chain) else ""
        where = f"The account of {self.dataset!r} is damaged at entry {sequence.count}{run}"
        caught = AccountError, BudgetExceededError, RunTakenError
        with translated(caught, to=AccountError, message=lambda error: f"{where}: {error}"):
            sequence.post(data)

    @property
    def _folder(self) -> str:
        return f"accounts/{self.dataset}"

    @property
    def _charges(self) -> str:
        return f"{self._folder}/{_CHARGES}"

    def _key(self, number: int, run: str | None = None) -> str:
        folder = self._folder if run is None else f"{self._charges}/{run}"
        return f"{folder}/{number:06d}.json"


def _last(keys: Iterable[str]) -> int:
    """The largest number of an entry; -1 if there is none. Numbers above 999999 have more digits than the others."""
    names = (key.rsplit("/", 1)[-1].removesuffix(".json") for key in keys)
    return max((int(name) for name in names if name.isdecimal()), default=-1)


class RunAccount:
    """What one run may spend, step by step: the account that its curator charges."""

    def __init__(self, account: StoredAccount, run: str, step: Callable[[], int] | None = None) -> None:
        """Charge for the step that the caller is at, or else after the steps that were charged so far.

        Args:
            account: The account of the dataset.
            run: The run.
            step: Tells which step is asked; if another process has charged it, nothing is charged.
        """
        self._account, self._run, self._step = account, run, step
        self._steps = len(self.ledger.spends)

    @property
    def ledger(self) -> Ledger:
        """What the run holds and has spent."""
        return self._account.chain(self._run).ledger

    def reserve(self, spend: Spend) -> None:
        """Charge the next step, or raise and charge nothing."""
        self._account.charge(self._run, self._steps if self._step is None else self._step(), spend)
        self._steps += 1


def unopened(dataset: str) -> AccountError:
    """The error of a release that would have to open an account and names no cap."""
    return AccountError(
        f"There is no account of {dataset!r} yet. Give account.cap: what all releases of it may spend together."
    )


def datasets(store: Store) -> list[str]:
    """The datasets that have an account."""
    return store.folders("accounts")


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
