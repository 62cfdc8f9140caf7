"""The rules of an account and of a run's charges: which entry may follow which.

Writers and auditors use the same rules. `AccountState` follows the entries of the account itself: its opening,
reservations, closes, changes of the cap, the policy, the keys and the store. A `Chain` follows the charges of one run,
from its grant to its seal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from ppsyn.errors import (
    AccountError,
    BudgetExceededError,
    CapExceededError,
    PolicyError,
    RunTakenError,
    SignatureError,
    translated,
)
from ppsyn.privacy.ledger import Ledger, Spend
from ppsyn.privacy.policy import Limit, contradictions, limits, month_of, refusals
from ppsyn.schemas.account import (
    FIRST,
    Arrival,
    CapChange,
    Charge,
    Close,
    Departure,
    Entry,
    Grant,
    KeyChange,
    Line,
    Opening,
    PolicyChange,
    Reservation,
    Seal,
    from_bytes,
    hash_of,
    to_bytes,
)
from ppsyn.schemas.policy import Month, Policy, Right
from ppsyn.schemas.signature import EntrySigned, Trust, TrustedKey, keyid_of

_RIGHTS: Mapping[type[Entry], tuple[Right, ...]] = {
    Reservation: ("release",),
    Close: ("release", "policy"),
    CapChange: ("policy",),
    PolicyChange: ("policy",),
    KeyChange: ("policy",),
    Departure: ("policy",),
}
"""Who may cause what, where a policy names people: whoever has one of these rights."""
_ACTS: Mapping[Right, str] = {
    "release": "make a release",
    "approve": "approve one",
    "policy": "change the policy or the keys",
}


@dataclass(frozen=True, slots=True)
class RunBudget:
    """One run's budget of an account.

    Attributes:
        grant: What it reserved, for what, since when.
        cap: What all releases could spend together when it was granted.
        is_chained: Whether its charges are a chain of their own.
        month: In which a policy counts it.
        purpose: What it is for, if that was named.
        by: Who reserved it, if that was signed.
        spent: What it has spent: as its close tells, or as charges between the entries of the account do.
        charges: How many that were.
        seal: The hash of its chain's last entry, if it is closed and has one.
        manifest: Digest of what it published, if it did.
    """

    grant: Grant
    cap: Fraction
    is_chained: bool
    month: Month
    purpose: str | None = None
    by: str | None = None
    spent: Fraction = Fraction(0)
    charges: int = 0
    seal: str | None = None
    closed_at: datetime | None = None
    closed_by: str | None = None
    closed: int | None = None
    """The number of the entry that closed it."""
    manifest: str | None = None

    @property
    def run(self) -> str:
        """The run."""
        return self.grant.run

    @property
    def total(self) -> Fraction:
        """All that it may spend."""
        return self.grant.rho

    @property
    def quality_of(self) -> str | None:
        """The release whose quality it measures; None if it is a release itself."""
        return self.grant.quality_of

    @property
    def is_open(self) -> bool:
        """Whether it may spend."""
        return self.closed_at is None

    @property
    def committed(self) -> Fraction:
        """What the account has to count: all that is reserved, or, once closed, what was spent."""
        return self.total if self.is_open else self.spent

    @property
    def reserved(self) -> Fraction:
        """What it has reserved and not spent; nothing once it has ended."""
        return self.committed - self.spent


@dataclass(frozen=True, slots=True)
class Key:
    """A public key that the account trusts, or trusted.

    Attributes:
        name: Whose it is.
        public: The key, in base64.
        trusted_at: Since when.
        revoked_at: When it was revoked, if it was.
        revoked: The number of the entry that revoked it.
    """

    name: str
    public: str
    trusted_at: datetime
    revoked_at: datetime | None = None
    revoked: int | None = None


class AccountState:
    """An account as its entries tell it. An entry that breaks a rule is refused, and changes nothing.

    Privacy:
        Claim C9. What is committed never passes the cap, a reservation never passes a
        limit of the policy, and a run never counts for more than it reserved, whatever
        the order in which entries arrive.
    """

    def __init__(self, opening: Opening, head: str) -> None:
        """Start with the first entry, whose hash is `head`."""
        if opening.number != 0 or opening.previous != FIRST:
            raise AccountError("Expected the account to begin with entry 0.")
        if opening.cap <= 0:
            raise AccountError("Expected the cap to be positive.")
        self.opening, self.cap, self.head, self.count = opening, opening.cap, head, 1
        self.committed = Fraction(0)
        self.budgets: dict[str, RunBudget] = {}
        self.latest: str | None = None
        """The release that was published last."""
        self.month = month_of(opening.at)
        """The latest month that an entry tells; a clock that goes back does not take it back."""
        self.policy: Policy | None = None
        self.since = self.month
        """The month in which the amounts of the policy came into force."""
        self.keys: dict[str, Key] = {}
        """All keys that were ever trusted, by what names them."""
        self.signed_since: int | None = None
        """The number of the entry since which the policy asks for signatures; None if it does not."""
        self.moved_to: str | None = None
        """The store in which the account goes on, if that is not this one."""

    @property
    def left(self) -> Fraction:
        """What releases may still reserve, for ever."""
        return self.cap - self.committed

    def limits(self, month: Month) -> list[Limit]:
        """The limits of the policy beside the cap, as of a month."""
        if self.policy is None:
            return []
        return limits(self.policy, self.since, max(month, self.month), self.budgets.values())

    def month_at(self, at: datetime) -> Month:
        """The month in which an entry of this moment counts: no earlier than all before it."""
        return max(month_of(at), self.month)

    @property
    def spent(self) -> Fraction:
        """What closed runs have spent, and open ones whose charges stand between the entries of the account."""
        return sum((budget.spent for budget in self.budgets.values()), Fraction(0))

    def check(self, entry: Line) -> None:
        """See whether the entry may come next.

        Raises:
            AccountError: If it may not; nothing changes.
        """
        self._changed(entry)

    def post(self, data: bytes) -> Line:
        """Take the next entry, as stored, and return it.

        Raises:
            AccountError: If it may not come next; nothing changes.
        """
        entry = _parse(data, str(self.count))
        self._take(entry)
        self.head, self.count = hash_of(data), self.count + 1
        return entry

    def _take(self, entry: Line) -> None:
        budget = self._changed(entry)
        if not isinstance(entry, Charge | Grant | Seal):
            self.month = self.month_at(entry.at)
        if isinstance(entry, CapChange):
            self.cap = entry.cap
        elif isinstance(entry, PolicyChange):
            self._govern(entry)
        elif isinstance(entry, KeyChange):
            self._take_key(entry)
        elif isinstance(entry, Departure):
            self.moved_to = entry.to
        elif budget is not None:
            before = self.budgets.get(budget.run)
            self.committed += budget.committed - (before.committed if before else 0)
            self.budgets[budget.run] = budget
            if budget.manifest is not None and budget.quality_of is None:
                self.latest = budget.run

    def trust(self) -> Trust:
        """The keys and what their owners may do, for whoever checks a release."""
        every: tuple[Right, ...] = ("release", "approve", "policy")
        keys = (
            TrustedKey(
                name=key.name, public=key.public, rights=self._people.get(key.name, ()) if self._people else every,
                trusted_at=key.trusted_at, revoked_at=key.revoked_at,
            )
            for key in self.keys.values()
        )  # fmt: skip
        return Trust(dataset=self.opening.dataset, keys=tuple(keys))

    @property
    def _people(self) -> Mapping[str, tuple[Right, ...]]:
        return {} if self.policy is None else self.policy.people

    def _signer(self, entry: Entry) -> str | None:
        """Who has signed an entry; None if nobody has.

        Raises:
            SignatureError: If the signature is wrong, or of a key that is not trusted.
            PolicyError: If the policy names who may cause such an entry, and it is nobody of them.
        """
        if isinstance(entry, Arrival):
            return self._signer(entry.departure)
        key = None if entry.signed is None else self._signing(entry, entry.signed.keyid)
        people = self._people or (entry.policy.people if isinstance(entry, PolicyChange) else {})
        rights = _RIGHTS.get(type(entry), ())
        if people and rights and (key is None or not set(people.get(key.name, ())) & set(rights)):
            who = "none of a key that the account trusts" if key is None else f"that of {key.name}"
            able = ", ".join(name for name, mine in people.items() if set(mine) & set(rights)) or "nobody"
            act = _ACTS[rights[0]]
            raise PolicyError(
                self.opening.dataset,
                [
                    f"Expected the signature of somebody who may {act} ({able}), got {who}. PPSYN_KEY names the file "
                    "of your key; `ppsyn keys trust` has an account trust it."
                ],
            )
        return None if key is None else key.name

    def _signing(self, entry: Entry, keyid: str) -> Key:
        """The key that has signed an entry. The first key that an account trusts may sign for itself."""
        key = self.keys.get(keyid)
        if isinstance(entry, KeyChange) and not self.keys and keyid == keyid_of(entry.public):
            key = Key(entry.name, entry.public, entry.at)
        if key is None:
            raise SignatureError(
                f"Entry {self.count} of {self.opening.dataset!r} is signed with key {keyid[:16]}, which is not trusted."
            )
        if key.revoked is not None:
            raise SignatureError(
                f"Entry {self.count} of {self.opening.dataset!r} is signed with a key of {key.name} that was revoked."
            )
        if entry.signed is not None:
            from ppsyn.privacy.signatures import verify  # noqa: PLC0415  # the bare library reads no account, nor has its library

            subject, told = verify(entry.signed, key.public, EntrySigned)
            unsigned = hash_of(to_bytes(entry.model_copy(update={"signed": None})))
            if (subject.digest.sha256, told.dataset, told.number) != (unsigned, self.opening.dataset, entry.number):
                raise SignatureError(f"The signature of entry {self.count} is of something else.")
        return key

    def _govern(self, entry: PolicyChange) -> None:
        """Put a policy in force. One that changes no amount goes on counting where the last one did."""
        before, policy = self.policy, entry.policy
        if before is None or (before.allowance, before.purposes) != (policy.allowance, policy.purposes):
            self.since = entry.month
        if bool(self._people) != bool(policy.people):
            self.signed_since = entry.number if policy.people else None
        self.policy, self.cap = policy, policy.cap

    def _changed(self, entry: Line) -> RunBudget | None:
        """The budget of the release that the entry is about, after it."""
        if isinstance(entry, Grant | Seal):
            raise AccountError(f"Expected entry {self.count} of {self.opening.dataset!r} to be of the account itself.")
        self._check_place(entry)
        by = self._signer(entry)
        match entry:
            case Opening():
                raise AccountError("Expected the account to be opened once.")
            case CapChange() | PolicyChange() | KeyChange() | Departure() | Arrival():
                self._check_change(entry)
                return None
            case Reservation():
                return self._reserved(entry, by)
            case Charge():
                return self._charged(entry)
            case Close():
                return self._closed(entry, by)

    def _check_change(self, entry: CapChange | PolicyChange | KeyChange | Departure | Arrival) -> None:
        """See whether the owner of the data may lay this down."""
        match entry:
            case CapChange():
                if self.policy is not None:
                    raise PolicyError(self.opening.dataset, ["It has the cap: change it with `ppsyn policy set`."])
                self._check_cap(entry.cap)
            case PolicyChange():
                self._check_policy(entry)
            case KeyChange():
                self._check_key(entry)
            case Departure() | Arrival():
                self._check_move(entry)

    def _check_place(self, entry: Entry) -> None:
        if entry.number != self.count or entry.previous != self.head:
            raise AccountError(f"Expected entry {self.count} of {self.opening.dataset!r} to follow the one before it.")
        if self.moved_to is not None:
            raise moved_account(self.opening.dataset, self.moved_to)

    def _check_move(self, entry: Departure | Arrival) -> None:
        """An account leaves a store when nothing can be charged there any more: charges are chains of their own."""
        running = [budget.run for budget in self.budgets.values() if budget.is_open]
        if running:
            raise AccountError(
                f"Expected no open run of {self.opening.dataset!r}, got {running[0]}. Resume it or abandon it first."
            )
        if isinstance(entry, Arrival) and entry.departure.place != entry.place:
            raise AccountError(f"Expected entry {self.count} of {self.opening.dataset!r} to stand where it left.")

    def _check_cap(self, cap: Fraction) -> None:
        if cap < self.committed or cap <= 0:
            raise AccountError(
                f"Expected a cap of at least rho {float(self.committed):.6g}, which releases have spent or reserved."
            )

    def _check_policy(self, entry: PolicyChange) -> None:
        problems = list(contradictions(entry.policy))
        if problems:
            raise AccountError(f"The policy contradicts itself; nothing was changed. {' '.join(problems)}")
        self._check_cap(entry.policy.cap)
        self._check_month(entry.month, entry.at)
        if entry.policy.people and not self._can_change(entry.policy.people):
            raise AccountError(
                "Expected a trusted key of somebody who may change the policy, or nobody ever could: trust one first "
                "(`ppsyn keys trust`)."
            )

    def _can_change(self, people: Mapping[str, tuple[Right, ...]], without: str | None = None) -> bool:
        """Whether somebody who may change the policy has a key that is trusted, beside this one."""
        keys = (key for keyid, key in self.keys.items() if keyid != without and key.revoked is None)
        return any("policy" in people.get(key.name, ()) for key in keys)

    def _check_key(self, entry: KeyChange) -> None:
        keyid = keyid_of(entry.public)
        key = self.keys.get(keyid)
        if entry.is_trusted and key is not None:
            raise AccountError(f"Key {keyid[:16]} of {key.name} was trusted before. Make a new one: `ppsyn keys new`.")
        if not entry.is_trusted and (key is None or key.name != entry.name or key.revoked is not None):
            raise AccountError(f"There is no key {keyid[:16]} of {entry.name} to revoke.")
        if not entry.is_trusted and self._people and not self._can_change(self._people, keyid):
            raise AccountError(
                "Nobody else could change the policy or the keys any more: trust another key of somebody who may, "
                "then revoke this one."
            )

    def _take_key(self, entry: KeyChange) -> None:
        keyid = keyid_of(entry.public)
        if entry.is_trusted:
            self.keys[keyid] = Key(entry.name, entry.public, entry.at)
        else:
            self.keys[keyid] = replace(self.keys[keyid], revoked_at=entry.at, revoked=entry.number)

    def _check_month(self, month: Month | None, at: datetime) -> None:
        if month != self.month_at(at):
            raise AccountError(f"Expected entry {self.count} to count in {self.month_at(at)}, got {month}.")

    def _reserved(self, entry: Reservation, by: str | None) -> RunBudget:
        if entry.run in self.budgets:
            raise AccountError(f"Expected run {entry.run} to reserve its budget once.")
        if not 0 < entry.rho <= self.left:
            raise CapExceededError(self.opening.dataset, entry.rho, self.left, self.cap)
        if self.policy is not None:
            self._check_allowed(self.policy, entry)
        elif entry.month is not None:
            raise AccountError(f"Expected entry {self.count} to count in no month: the account has no policy.")
        month = entry.month or month_of(entry.at)
        return RunBudget(entry.grant(self.opening.dataset), self.cap, entry.is_chained, month, entry.purpose, by)

    def _check_allowed(self, policy: Policy, entry: Reservation) -> None:
        """See that a policy allows a reservation."""
        self._check_month(entry.month, entry.at)
        release = None if entry.quality_of is None else self.budgets.get(entry.quality_of)
        if entry.quality_of is not None and (release is None or release.purpose != entry.purpose):
            raise AccountError(f"Expected the figures to be for the purpose of release {entry.quality_of}.")
        is_release = entry.quality_of is None
        found = self.limits(self.month_at(entry.at))
        problems = list(refusals(policy, found, entry.rho, entry.purpose, is_release=is_release))
        if problems:
            raise PolicyError(self.opening.dataset, problems)

    def _charged(self, entry: Charge) -> RunBudget:
        """As accounts were kept once: charges of all runs between their other entries."""
        budget = self.open_budget(entry.run)
        if budget.is_chained or entry.step != budget.charges:
            raise AccountError(f"Expected step {budget.charges} of run {entry.run} to be charged next, in its place.")
        if not 0 < entry.rho <= budget.total - budget.spent:
            raise BudgetExceededError(entry.rho, budget.total - budget.spent)
        return replace(budget, spent=budget.spent + entry.rho, charges=budget.charges + 1)

    def _closed(self, entry: Close, by: str | None) -> RunBudget:
        budget, spent = self.open_budget(entry.run), entry.spent
        closed = replace(budget, closed_at=entry.at, closed_by=by, closed=entry.number, manifest=entry.manifest)
        if budget.is_chained != (spent is not None):
            raise AccountError(f"Expected run {entry.run} to be closed with what its charges come to.")
        if spent is None:
            return closed
        if not 0 <= spent.rho <= budget.total or (spent.rho > 0) != (spent.charges > 0):
            raise AccountError(f"Expected run {entry.run} to have spent no more than it reserved.")
        return replace(closed, spent=spent.rho, charges=spent.charges, seal=spent.seal)

    def open_budget(self, run: str) -> RunBudget:
        """The budget of a run that may go on.

        Raises:
            AccountError: If it is closed, or reserved nothing.
        """
        budget = self.budgets.get(run)
        if budget is None:
            raise AccountError(f"Expected run {run} to have reserved its budget.")
        if not budget.is_open:
            raise AccountError(f"Expected run {run} to be open, but it is closed. Start a new run.")
        return budget


def moved_account(dataset: str, to: str) -> AccountError:
    """The error of what would go on in a store that the account has left."""
    return AccountError(f"The account of {dataset!r} was moved to {to}. Go on there; nothing was spent here.")


def begin_state(data: bytes) -> AccountState:
    """The state that the stored first entry opens."""
    opening = _parse(data, "0")
    if not isinstance(opening, Opening):
        raise AccountError("Expected the account to begin with its opening.")
    return AccountState(opening, hash_of(data))


def replay_state(entries: Sequence[bytes]) -> AccountState:
    """The state after these entries, from the first of the account on."""
    state = begin_state(entries[0])
    for data in entries[1:]:
        state.post(data)
    return state


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
        ledger = self._after(_parse(data, f"{self.count} of run {self.grant.run}"))
        self.head, self.count = hash_of(data), self.count + 1
        if ledger is None:
            self.seal = self.head
        else:
            self.ledger = ledger
            self.lines.append(data)

    def _after(self, entry: Line) -> Ledger | None:
        """The ledger after an entry; None after the seal."""
        run = self.grant.run
        if self.seal is not None:
            raise AccountError(f"Expected run {run} to be open, but it is closed. Start a new run.")
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


def _parse(data: bytes, which: str) -> Line:
    with translated(ValueError, to=AccountError, message=f"Expected entry {which} to be an entry of an account."):
        return from_bytes(data)
