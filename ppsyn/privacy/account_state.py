"""The rules of an account: which entry may follow which. One place for writers and for auditors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from ppsyn.errors import AccountError, BudgetExceededError, CapExceededError, translated
from ppsyn.schemas.account import FIRST, CapChange, Charge, Close, Grant, Hold, Line, Opening, Seal, from_bytes, hash_of


@dataclass(frozen=True, slots=True)
class Part:
    """One run's part of an account.

    Attributes:
        grant: What it holds, for what, since when.
        cap: What all releases could spend together when it was granted.
        is_chained: Whether its charges are a chain of their own.
        spent: What it has spent: as its close tells, or as charges between the entries of the account do.
        charges: How many that were.
        seal: The hash of its chain's last entry, if it is closed and has one.
        manifest: Digest of what it published, if it did.
    """

    grant: Grant
    cap: Fraction
    is_chained: bool
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
        """What the account has to count: all that is held, or, once closed, what was spent."""
        return self.total if self.is_open else self.spent

    @property
    def held(self) -> Fraction:
        """What it has set aside and not spent; nothing once it has ended."""
        return self.committed - self.spent


class Book:
    """An account as its entries tell it. An entry that breaks a rule is refused, and changes nothing.

    Privacy:
        Claim C9. What is committed never passes the cap, and a run never counts for
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
        """What closed runs have spent, and open ones whose charges stand between the entries of the account."""
        return sum((part.spent for part in self.parts.values()), Fraction(0))

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
        entry = _parsed(data, self.count)
        self._take(entry)
        self.head, self.count = hash_of(data), self.count + 1
        return entry

    def _take(self, entry: Line) -> None:
        part = self._changed(entry)
        if isinstance(entry, CapChange):
            self.cap = entry.cap
        elif part is not None:
            before = self.parts.get(part.run)
            self.committed += part.committed - (before.committed if before else 0)
            self.parts[part.run] = part
            if part.manifest is not None and part.quality_of is None:
                self.latest = part.run

    def _changed(self, entry: Line) -> Part | None:
        """The part of the release that the entry is about, after it."""
        if isinstance(entry, Grant | Seal):
            raise AccountError(f"Expected entry {self.count} of {self.opening.dataset!r} to be of the account itself.")
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
                return self._closed(entry)

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
        return Part(entry.grant(self.opening.dataset), self.cap, entry.is_chained)

    def _charged(self, entry: Charge) -> Part:
        """As accounts were kept once: charges of all runs between their other entries."""
        part = self.open_part(entry.run)
        if part.is_chained or entry.step != part.charges:
            raise AccountError(f"Expected step {part.charges} of run {entry.run} to be charged next, in its place.")
        if not 0 < entry.rho <= part.total - part.spent:
            raise BudgetExceededError(entry.rho, part.total - part.spent)
        return replace(part, spent=part.spent + entry.rho, charges=part.charges + 1)

    def _closed(self, entry: Close) -> Part:
        part, spent = self.open_part(entry.run), entry.spent
        closed = replace(part, closed_at=entry.at, manifest=entry.manifest)
        if part.is_chained != (spent is not None):
            raise AccountError(f"Expected run {entry.run} to be closed with what its charges come to.")
        if spent is None:
            return closed
        if not 0 <= spent.rho <= part.total or (spent.rho > 0) != (spent.charges > 0):
            raise AccountError(f"Expected run {entry.run} to have spent no more than it held.")
        return replace(closed, spent=spent.rho, charges=spent.charges, seal=spent.seal)

    def open_part(self, run: str) -> Part:
        """The part of a run that may go on.

        Raises:
            AccountError: If it is closed, or holds nothing.
        """
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


def _parsed(data: bytes, number: int) -> Line:
    with translated(ValueError, to=AccountError, message=f"Expected entry {number} to be an entry of an account."):
        return from_bytes(data)
