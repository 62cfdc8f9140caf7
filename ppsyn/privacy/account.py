"""The budget of a dataset, in a store: one object for each entry, written before the noise is drawn."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import TypeAlias
from uuid import uuid4

from ppsyn.errors import AccountError, BudgetExceededError, InvariantError, MissingError, RunTakenError, translated
from ppsyn.privacy.account_state import AccountState, Chain, RunBudget, begin_state, moved_account
from ppsyn.privacy.ledger import Ledger, Spend
from ppsyn.privacy.signatures import Signer, own_signer, verify
from ppsyn.schemas.account import (
    FIRST,
    Arrival,
    CapChange,
    Charge,
    Close,
    Departure,
    Entry,
    KeyChange,
    Opening,
    PolicyChange,
    Reservation,
    Seal,
    Spent,
    from_bytes,
    hash_of,
    to_bytes,
)
from ppsyn.schemas.policy import Policy
from ppsyn.schemas.signature import EntrySigned, Envelope, HeadSigned, keyid_of
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
        self._state: AccountState | None = None
        self._chains: dict[str, Chain] = {}

    @property
    def state(self) -> AccountState:
        """The account as of now.

        Raises:
            AccountError: If there is none, or if it contradicts itself.
        """
        state = self.find()
        if state is None:
            raise AccountError(f"There is no account of {self.dataset!r} in {self._store.location.url}.")
        return state

    def find(self) -> AccountState | None:
        """The account as of now, or None if there is none."""
        self._refresh()
        return self._state

    @property
    def has_begun(self) -> bool:
        """Whether its first entry is there: of an account that moves here, all of it."""
        return self._store.has(self._key(0))

    def entries(self) -> list[bytes]:
        """All entries of the account itself, as stored."""
        count = self.state.count
        return self._store.get_all(self._key(number) for number in range(count))

    def chain(self, run: str) -> Chain:
        """What a run was granted and charged, as of now.

        Raises:
            AccountError: If it reserved nothing, or its charges contradict themselves or the account.
        """
        if run not in self._chains:
            self._chains[run] = self._read_chain(run)
        self._follow(self._chains[run])
        return self._chains[run]

    def budget(self, run: str) -> RunBudget | None:
        """A run's budget in the account, with what it has spent by now; None if it reserved nothing."""
        budget = self.state.budgets.get(run)
        if budget is None or not budget.is_open or not budget.is_chained:
            return budget
        ledger = self.chain(run).ledger
        return replace(budget, spent=ledger.spent, charges=len(ledger.spends))

    def budgets(self) -> list[RunBudget]:
        """All budgets, with what they have spent by now; the charges of those that are open are read for it."""
        return [self.budget(run) or budget for run, budget in self.state.budgets.items()]

    def charged_runs(self) -> list[str]:
        """The runs that have charges of their own in the store, whether the account knows them or not."""
        return self._store.folders(self._charges)

    def check_compatible(self, cap: Fraction | None, unit: str) -> None:
        """See that a release fits the account, or that the account can be opened for it; nothing is written.

        Args:
            cap: What all releases may spend together; None to take the account as it is.
            unit: What is protected.

        Raises:
            AccountError: If there is no account and no cap, or the account has another cap or unit.
        """
        state = self.find()
        if state is None and cap is None:
            raise missing_account(self.dataset)
        if state is not None and state.moved_to is not None:
            raise moved_account(self.dataset, state.moved_to)
        if state is not None and state.opening.unit != unit:
            raise AccountError(
                f"The account of {self.dataset!r} protects {state.opening.unit}, and this release protects {unit}; "
                "their costs cannot be added."
            )
        if state is not None and cap is not None and cap != state.cap:
            raise AccountError(
                f"The account of {self.dataset!r} has a cap of rho {float(state.cap):.6g}, and this release names "
                f"{float(cap):.6g}. Leave account.cap out, or change the cap with `ppsyn budget --set-cap`."
            )

    def open(self, cap: Fraction | None, delta: float | None, unit: str) -> None:
        """Open the account, or see that it is the one that is meant.

        Args:
            cap: What all releases may spend together; None to take the account as it is.
            delta: At which epsilon is shown.
            unit: What is protected.

        Raises:
            AccountError: If there is no account and no cap, or the account has another cap or unit.
        """
        self.check_compatible(cap, unit)
        if self.find() is None and cap is not None:
            opening = Opening(
                number=0, previous=FIRST, nonce=uuid4().hex, dataset=self.dataset, cap=cap, delta=delta, unit=unit,
                at=_now(),
            )  # fmt: skip
            begin_state(to_bytes(opening))  # what may not stand in a store is not written to one
            self._create(self._key(0), to_bytes(opening))
        self.check_compatible(cap, unit)  # another may have opened it in between

    def reserve(
        self, run: str, rho: Fraction, inputs: str, quality_of: str | None = None, purpose: str | None = None
    ) -> None:
        """Reserve a run's whole budget.

        Args:
            run: The run.
            rho: All that it may spend.
            inputs: Digest of its record.
            quality_of: The release whose quality it is to measure; None if it is a release itself.
            purpose: What it is for; figures about a release are for its purpose.

        Raises:
            CapExceededError: If the account does not have it; nothing changes.
            PolicyError: If the policy does not allow it; nothing changes.
        """
        self._append(self._reservation(run, rho, inputs, quality_of, purpose))

    def check_room(self, rho: Fraction, quality_of: str | None = None, purpose: str | None = None) -> None:
        """See whether a run could reserve this much as of now; nothing is written.

        Raises:
            CapExceededError: If the account does not have it.
            PolicyError: If the policy does not allow it.
        """
        self._check(self._reservation(uuid4().hex, rho, FIRST, quality_of, purpose))

    def _reservation(self, run: str, rho: Fraction, inputs: str, quality_of: str | None, purpose: str | None) -> Draft:
        at = _now()

        def draft(number: int, previous: str, nonce: str) -> Reservation:
            state = self._read_state()
            release = None if quality_of is None else state.budgets.get(quality_of)
            return Reservation(
                number=number, previous=previous, nonce=nonce, run=run, rho=rho, inputs=inputs, quality_of=quality_of,
                at=at, is_chained=True, month=None if state.policy is None else state.month_at(at),
                purpose=purpose if release is None else release.purpose,
            )  # fmt: skip

        return draft

    def charge(self, run: str, step: int, spend: Spend) -> None:
        """Charge a step of a run for good, before its noise is drawn.

        Raises:
            AccountError: If the run is closed; nothing changes.
            BudgetExceededError: If the run did not reserve enough; nothing changes.
            RunTakenError: If another process has charged this step.
        """
        self._append(lambda n, previous, nonce: Charge(
            number=n, previous=previous, nonce=nonce, run=run, step=step, mechanism=spend.kind, clique=spend.clique,
            rho=spend.rho, request=spend.digest,
        ), run)  # fmt: skip

    def close(self, run: str, manifest: str | None) -> None:
        """End a run; what it reserved and has not spent is free again.

        Its charges are sealed first, so that what the account then counts for it can never grow. If this process dies
        in between, the run still counts for all that it reserved, and whoever closes it again goes on here.
        """
        spent = self._seal(run) if self.state.open_budget(run).is_chained else None
        self._append(self._closing(run, manifest, spent))

    def check_close(self, run: str, manifest: str | None) -> None:
        """See whether whoever runs this could close a run as of now; nothing is written.

        Raises:
            AccountError: If it is closed, or the policy or a signature does not allow it.
        """
        chain = self.chain(run) if self.state.open_budget(run).is_chained else None
        self._check(self._closing(run, manifest, None if chain is None else _spent(chain, chain.seal or chain.head)))

    def _closing(self, run: str, manifest: str | None, spent: Spent | None) -> Draft:
        at = _now()
        return lambda n, previous, nonce: Close(
            number=n, previous=previous, nonce=nonce, run=run, manifest=manifest, at=at, spent=spent
        )

    def _seal(self, run: str) -> Spent:
        """Have the run's charges end with a seal; what they come to."""
        while (seal := (chain := self.chain(run)).seal) is None:
            try:
                self._append(lambda n, previous, nonce: Seal(number=n, previous=previous, nonce=nonce, run=run), run)
            except AccountError:
                if chain.seal is None:  # not that another process was faster
                    raise
        return _spent(chain, seal)

    def set_cap(self, cap: Fraction) -> None:
        """Change what all releases may spend together.

        Raises:
            AccountError: If more is spent or reserved already.
        """
        at = _now()
        self._append(lambda n, previous, nonce: CapChange(number=n, previous=previous, nonce=nonce, cap=cap, at=at))

    def set_policy(self, policy: Policy) -> None:
        """Lay down what releases may spend from now on.

        Raises:
            AccountError: If it contradicts itself, or more is spent or reserved already than its cap; nothing changes.
        """
        at = _now()
        self._append(lambda n, previous, nonce: PolicyChange(
            number=n, previous=previous, nonce=nonce, policy=policy, month=self._read_state().month_at(at), at=at
        ))  # fmt: skip

    def change_key(self, name: str, public: str, *, is_trusted: bool) -> None:
        """Trust a person's key from now on, or revoke it for good.

        Raises:
            AccountError: If it was trusted before, or is not there to be revoked; nothing changes.
        """
        at = _now()
        self._append(lambda n, previous, nonce: KeyChange(
            number=n, previous=previous, nonce=nonce, name=name, public=public, is_trusted=is_trusted, at=at
        ))  # fmt: skip

    def signed_head(self, signer: Signer) -> Envelope:
        """What the account is as of now, signed, to be kept elsewhere."""
        state = self.state
        told = HeadSigned(dataset=self.dataset, number=state.count - 1, signed_at=_now())
        return signer.sign(self._key(told.number), state.head, told)

    def check_head(self, envelope: Envelope, public: str) -> HeadSigned:
        """See that the account still holds what a signed head tells of it.

        Raises:
            SignatureError: If the signature is wrong.
            AccountError: If the account was set back or rewritten since.
        """
        subject, told = verify(envelope, public, HeadSigned)
        if told.dataset != self.dataset:
            raise AccountError(f"Expected the signed head of {self.dataset!r}, got that of {told.dataset!r}.")
        entries = self.entries()
        if told.number >= len(entries) or hash_of(entries[told.number]) != subject.digest.sha256:
            raise AccountError(
                f"The account of {self.dataset!r} was set back or rewritten: on {told.signed_at:%Y-%m-%d} it had "
                f"another entry {told.number}; now it has {len(entries)} entries. Nothing was spent now. Restore "
                f"accounts/{self.dataset} as it was last."
            )
        return told

    def _signed(self, entry: Entry) -> Entry:
        """An entry with the signature of whoever runs this, if the account trusts that key."""
        state, signer = self._read_state(), own_signer()
        if signer is None:
            return entry
        key = state.keys.get(signer.keyid)
        is_first = isinstance(entry, KeyChange) and not state.keys and keyid_of(entry.public) == signer.keyid
        if not is_first and (key is None or key.revoked is not None):
            return entry  # which the account refuses if its policy asks for a signature
        told = EntrySigned(dataset=self.dataset, number=entry.number)
        envelope = signer.sign(self._key(entry.number), hash_of(to_bytes(entry)), told)
        return entry.model_copy(update={"signed": envelope})

    def _read_state(self) -> AccountState:
        """The account as it was read last: what an entry that is drafted now comes after."""
        if self._state is None:
            raise InvariantError("An entry was drafted before its account was read.")
        return self._state

    def leave(self, to: str) -> None:
        """Have the account go on in another store: nothing can follow here. Whoever repeats it finds it done.

        Raises:
            AccountError: If a run is open, or the account goes on in a third store; nothing changes.
        """
        at = _now()
        if self.state.moved_to != to:
            self._append(lambda n, previous, nonce: Departure(number=n, previous=previous, nonce=nonce, to=to, at=at))

    def arrive(self, left: Sequence[bytes]) -> None:
        """Go on here with an account that has left another store. May be repeated until it succeeds.

        The first entry is written last: until then the account here lacks it, and nobody can spend from it.

        Args:
            left: All its entries, of which the last is its departure.

        Raises:
            AccountError: If there is another account here.
        """
        last = from_bytes(left[-1])
        if not isinstance(last, Departure):
            raise AccountError(f"Expected the account of {self.dataset!r} to have left where it was.")
        if self.has_begun and self._store.get(self._key(0)) != left[0]:
            raise self._taken()
        arrival = Arrival(number=last.number, previous=last.previous, nonce=last.nonce, departure=last, at=last.at)
        for number, data in reversed(list(enumerate([*left[:-1], to_bytes(arrival)]))):
            if not self._create(self._key(number), data):
                raise self._taken()

    def _taken(self) -> AccountError:
        return AccountError(
            f"There is another account of {self.dataset!r} in {self._store.location.url}. Remove it, if nothing was "
            "spent from it; then repeat the move."
        )

    def _check(self, draft: Draft) -> None:
        """See whether an entry of the account would be accepted as of now; nothing is written."""
        state = self.state
        state.check(self._signed(draft(state.count, state.head, uuid4().hex)))

    def _append(self, draft: Draft, run: str | None = None) -> None:
        """Write an entry after all others, of the account or of a run's charges, or refuse it and write nothing.

        A lost race re-reads and tries again. A store that repeats a request whose
        answer was lost may report our own entry as another's: its nonce tells.
        """
        nonce, pause, give_up = uuid4().hex, _PAUSE_SECONDS, time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < give_up:
            sequence = self.state if run is None else self.chain(run)
            entry = draft(sequence.count, sequence.head, nonce)
            if run is None:
                entry = self._signed(entry)
            sequence.check(entry)
            if self._create(self._key(entry.number, run), to_bytes(entry)):
                return
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        raise AccountError(f"The account of {self.dataset!r} is too busy, and no entry was written. Try again.")

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
        if self._state is None:
            self._state = self._read()
        if self._state is not None:
            self._follow(self._state)

    def _follow(self, sequence: AccountState | Chain) -> None:
        run = sequence.grant.run if isinstance(sequence, Chain) else None
        while True:
            try:
                data = self._store.get(self._key(sequence.count, run))
            except MissingError:
                return
            self._post(sequence, data)

    def _read(self) -> AccountState | None:
        keys, folders = self._store.level(self._folder)
        if not keys and not folders:
            return None
        if not keys or not set(folders) <= {_CHARGES}:
            raise self._damaged()
        first, *rest = self._read_all(keys, None)
        state = self._opened(first)
        for data in rest:
            self._post(state, data)
        return state

    def _read_chain(self, run: str) -> Chain:
        budget = self.state.budgets.get(run)
        if budget is None:
            raise AccountError(f"Expected run {run} to have reserved its budget.")
        if not budget.is_chained:
            raise AccountError(
                f"Run {run} was begun by an earlier version of ppsyn, which kept its charges elsewhere. Abandon it "
                "(`ppsyn abandon`), which frees what it has not spent, and begin a new run."
            )
        chain = Chain(budget.grant)
        for data in self._read_all(self._store.keys(f"{self._charges}/{run}"), run):
            self._post(chain, data)
        if not budget.is_open and (chain.seal, chain.ledger.spent, chain.count - 1) != (
            budget.seal,
            budget.spent,
            budget.charges,
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

    def _opened(self, data: bytes) -> AccountState:
        where = f"The account of {self.dataset!r} is damaged at entry 0"
        with translated(AccountError, to=AccountError, message=lambda error: f"{where}: {error}"):
            state = begin_state(data)
        if state.opening.dataset != self.dataset:
            raise AccountError(f"{where}: it is of another dataset.")
        return state

    def _post(self, sequence: AccountState | Chain, data: bytes) -> None:
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
        """What the run reserved and has spent."""
        return self._account.chain(self._run).ledger

    def charge(self, spend: Spend) -> None:
        """Charge the next step, or raise and charge nothing."""
        self._account.charge(self._run, self._steps if self._step is None else self._step(), spend)
        self._steps += 1


def missing_account(dataset: str) -> AccountError:
    """The error of a release that would have to open an account and names no cap."""
    return AccountError(
        f"There is no account of {dataset!r} yet. Give account.cap: what all releases of it may spend together."
    )


def datasets(store: Store) -> list[str]:
    """The datasets that have an account."""
    return store.folders("accounts")


def _spent(chain: Chain, seal: str) -> Spent:
    return Spent(rho=chain.ledger.spent, charges=len(chain.ledger.spends), seal=seal)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
