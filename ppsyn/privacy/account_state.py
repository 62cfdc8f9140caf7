"""The rules of an account and of a run's charges: which entry may follow which.

Writers and auditors use the same rules. `AccountState` follows the entries of the account itself: its opening,
reservations, closes, changes of the cap and of the policy. A `Chain` follows the charges of one run, from its grant to
its seal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from ppsyn.errors import AccountError, BudgetExceededError, CapExceededError, PolicyError, RunTakenError, translated
from ppsyn.privacy.ledger import Ledger, Spend
from ppsyn.privacy.policy import Limit, contradictions, limits, month_of, refusals
from ppsyn.schemas.account import (
    FIRST,
    CapChange,
    Charge,
    Close,
    Grant,
    Line,
    Opening,
    PolicyChange,
    Reservation,
    Seal,
    from_bytes,
    hash_of,
    to_bytes,
)
from ppsyn.schemas.policy import Month, Policy


@dataclass(frozen=True, slots=True)
class RunBudget:
    """One run's budget of an account.

    Attributes:
        grant: What it reserved, for what, since when.
        cap: What all releases could spend together when it was granted.
        is_chained: Whether its charges are a chain of their own.
        month: In which a policy counts it.
        purpose: What it is for, if that was named.
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
    spent: Fraction = Fraction(0)
    charges: int = 0
    seal: str | None = None
    closed_at: datetime | None = None
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
        elif budget is not None:
            before = self.budgets.get(budget.run)
            self.committed += budget.committed - (before.committed if before else 0)
            self.budgets[budget.run] = budget
            if budget.manifest is not None and budget.quality_of is None:
                self.latest = budget.run

    def _govern(self, entry: PolicyChange) -> None:
        """Put a policy in force. One that changes no amount goes on counting where the last one did."""
        before, policy = self.policy, entry.policy
        if before is None or (before.allowance, before.purposes) != (policy.allowance, policy.purposes):
            self.since = entry.month
        self.policy, self.cap = policy, policy.cap

    def _changed(self, entry: Line) -> RunBudget | None:
        """The budget of the release that the entry is about, after it."""
        if isinstance(entry, Grant | Seal):
            raise AccountError(f"Expected entry {self.count} of {self.opening.dataset!r} to be of the account itself.")
        if entry.number != self.count or entry.previous != self.head:
            raise AccountError(f"Expected entry {self.count} of {self.opening.dataset!r} to follow the one before it.")
        match entry:
            case Opening():
                raise AccountError("Expected the account to be opened once.")
            case CapChange():
                if self.policy is not None:
                    raise PolicyError(self.opening.dataset, ["It has the cap: change it with `ppsyn policy set`."])
                self._check_cap(entry.cap)
                return None
            case PolicyChange():
                self._check_policy(entry)
                return None
            case Reservation():
                return self._reserved(entry)
            case Charge():
                return self._charged(entry)
            case Close():
                return self._closed(entry)

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

    def _check_month(self, month: Month | None, at: datetime) -> None:
        if month != self.month_at(at):
            raise AccountError(f"Expected entry {self.count} to count in {self.month_at(at)}, got {month}.")

    def _reserved(self, entry: Reservation) -> RunBudget:
        if entry.run in self.budgets:
            raise AccountError(f"Expected run {entry.run} to reserve its budget once.")
        if not 0 < entry.rho <= self.left:
            raise CapExceededError(self.opening.dataset, entry.rho, self.left, self.cap)
        if self.policy is not None:
            self._check_allowed(self.policy, entry)
        elif entry.month is not None:
            raise AccountError(f"Expected entry {self.count} to count in no month: the account has no policy.")
        month = entry.month or month_of(entry.at)
        return RunBudget(entry.grant(self.opening.dataset), self.cap, entry.is_chained, month, entry.purpose)

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

    def _closed(self, entry: Close) -> RunBudget:
        budget, spent = self.open_budget(entry.run), entry.spent
        closed = replace(budget, closed_at=entry.at, manifest=entry.manifest)
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
