"""The rules of an account: which entry may follow which. One place for writers and for auditors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from ppsyn.dp.ledger import Ledger, Spend
from ppsyn.errors import AccountError, CapExceededError, RunTakenError
from schemas.account import FIRST, CapChange, Charge, Close, Entry, Hold, Opening, from_bytes, hash_of


@dataclass(frozen=True, slots=True)
class Part:
    """One run's part of an account.

    Attributes:
        ledger: What it holds, and what it has spent of it.
        inputs: Digest of the run's record.
        manifest: Digest of what it published, if it did.
        quality_of: The release whose quality it measures; None if it is a release itself.
    """

    run: str
    ledger: Ledger
    inputs: str
    opened_at: datetime
    closed_at: datetime | None = None
    manifest: str | None = None
    quality_of: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it may spend."""
        return self.closed_at is None

    @property
    def committed(self) -> Fraction:
        """What the account has to count: all that is held, or, once closed, what was spent."""
        return self.ledger.total if self.is_open else self.ledger.spent


class Book:
    """An account as its entries tell it. An entry that breaks a rule is refused, and changes nothing.

    Privacy:
        Claim C9. What is committed never passes the cap, and a run never spends
        more than it holds, whatever the order in which entries arrive.
    """

    def __init__(self, opening: Opening, head: str) -> None:
        """Start with the first entry, whose hash is `head`."""
        if opening.number != 0 or opening.previous != FIRST:
            raise AccountError("Expected the account to begin with entry 0.")
        if opening.cap <= 0:
            raise AccountError("Expected the cap to be positive.")
        self.opening, self.cap, self.head, self.count = opening, opening.cap, head, 1
        self.committed = Fraction(0)
        self.parts: dict[str, Part] = {}
        self.latest: str | None = None
        """The release that was published last."""

    @property
    def left(self) -> Fraction:
        """What releases may still set aside."""
        return self.cap - self.committed

    @property
    def spent(self) -> Fraction:
        """What all releases have spent."""
        return sum((part.ledger.spent for part in self.parts.values()), Fraction(0))

    def check(self, entry: Entry) -> None:
        """See whether the entry may come next.

        Raises:
            AccountError: If it may not; nothing changes.
        """
        self._changed(entry)

    def post(self, data: bytes) -> Entry:
        """Take the next entry, as stored, and return it.

        Raises:
            AccountError: If it may not come next; nothing changes.
        """
        entry = _parsed(data, self.count)
        self._take(entry)
        self.head, self.count = hash_of(data), self.count + 1
        return entry

    def _take(self, entry: Entry) -> None:
        part = self._changed(entry)
        if isinstance(entry, CapChange):
            self.cap = entry.cap
        elif part is not None:
            before = self.parts.get(part.run)
            self.committed += part.committed - (before.committed if before else 0)
            self.parts[part.run] = part
            if part.manifest is not None and part.quality_of is None:
                self.latest = part.run

    def _changed(self, entry: Entry) -> Part | None:
        """The part of the release that the entry is about, after it."""
        if entry.number != self.count or entry.previous != self.head:
            raise AccountError(f"Expected entry {self.count} of {self.opening.dataset!r} to follow the one before it.")
        match entry:
            case Opening():
                raise AccountError("Expected the account to be opened once.")
            case CapChange():
                self._check_cap(entry)
                return None
            case Hold():
                return self._held(entry)
            case Charge():
                return self._charged(entry)
            case Close():
                return replace(self._open_part(entry.run), closed_at=entry.at, manifest=entry.manifest)

    def _check_cap(self, entry: CapChange) -> None:
        if entry.cap < self.committed or entry.cap <= 0:
            raise AccountError(
                f"Expected a cap of at least rho {float(self.committed):.6g}, which releases have spent or hold."
            )

    def _held(self, entry: Hold) -> Part:
        if entry.run in self.parts:
            raise AccountError(f"Expected run {entry.run} to set its budget aside once.")
        if not 0 < entry.rho <= self.left:
            raise CapExceededError(self.opening.dataset, entry.rho, self.left, self.cap)
        return Part(entry.run, Ledger(entry.rho), entry.inputs, entry.at, quality_of=entry.quality_of)

    def _charged(self, entry: Charge) -> Part:
        part = self._open_part(entry.run)
        if entry.step < len(part.ledger.spends):
            raise RunTakenError(entry.run)
        if entry.step != len(part.ledger.spends):
            raise AccountError(f"Expected step {len(part.ledger.spends)} of run {entry.run} to be charged next.")
        spend = Spend(entry.mechanism, entry.rho, entry.request, entry.clique)
        return replace(part, ledger=part.ledger.debit(spend))

    def _open_part(self, run: str) -> Part:
        part = self.parts.get(run)
        if part is None:
            raise AccountError(f"Expected run {run} to have set its budget aside.")
        if not part.is_open:
            raise AccountError(f"Run {run} is closed; it cannot go on.")
        return part


def open_book(data: bytes) -> Book:
    """The book that the stored first entry opens."""
    opening = _parsed(data, 0)
    if not isinstance(opening, Opening):
        raise AccountError("Expected the account to begin with its opening.")
    return Book(opening, hash_of(data))


def read_book(entries: Sequence[bytes]) -> Book:
    """The book after these entries, from the first of the account on."""
    book = open_book(entries[0])
    for data in entries[1:]:
        book.post(data)
    return book


def _parsed(data: bytes, number: int) -> Entry:
    try:
        return from_bytes(data)
    except ValueError:
        problem = f"Expected entry {number} to be an entry of an account."
    raise AccountError(problem)
