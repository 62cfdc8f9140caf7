"""The entries of a budget account, as they are stored: one object each, chained by hashes.

What concerns the whole account is one chain: its opening, what runs reserve, how they ended, its cap. What one run is
charged is a chain of the run's own, which begins with its grant. No entry of it depends on another run.
"""

import hashlib
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from ppsyn.schemas.policy import Month, Policy
from ppsyn.schemas.signature import Envelope, PublicKey
from ppsyn.schemas.types import Digest, FrozenModel, Name, Rational, absent

FIRST = "0" * 64
"""What the first entry has in the place of its predecessor's hash."""


class _Entry(FrozenModel):
    number: Annotated[int, Field(ge=0)]
    previous: Digest
    """SHA-256 of the entry before, as stored."""
    nonce: str
    """Random, so that a writer knows its own entry again."""
    signed: Annotated[Envelope | None, absent] = None
    """By whoever caused it: a statement about the entry without this field."""

    @property
    def place(self) -> tuple[int, str, str]:
        """Where it stands, and whose it is."""
        return self.number, self.previous, self.nonce


class Opening(_Entry):
    """The account exists, with a cap."""

    kind: Literal["opening"] = "opening"
    format: Literal["ppsyn-account-1", "ppsyn-account-2"] = "ppsyn-account-2"
    """An account that began as 1 may hold charges between its entries; it goes on as 2."""
    dataset: str
    cap: Rational
    """What all releases may spend together, as zCDP rho."""
    delta: float | None
    """At which epsilon is shown."""
    unit: str
    """What is protected: a row, or the person that a column names."""
    at: datetime


class Grant(FrozenModel):
    """What a run was granted: its reservation, without the place that this has among the entries of others.

    It is not stored. The first charge of the run names its hash.
    """

    kind: Literal["grant"] = "grant"
    dataset: str
    run: str
    rho: Rational
    inputs: Digest
    quality_of: str | None
    at: datetime


class Reservation(_Entry):
    """A run reserves its whole budget, before it reads the table."""

    kind: Literal["hold"] = "hold"
    """The stored word of accounts that are older than this class's name; it never changes."""
    run: str
    rho: Rational
    inputs: Digest
    """Of the run's record."""
    quality_of: str | None = None
    """The release whose quality is to be measured; None for a release itself."""
    at: datetime
    is_chained: bool = False
    """Whether the run's charges are a chain of their own. Of all runs that begin now."""
    month: Annotated[Month | None, absent] = None
    """In which it counts, under a policy; no earlier than that of any entry before it. None without a policy."""
    purpose: Annotated[Name | None, absent] = None
    """What the release is for."""

    def grant(self, dataset: str) -> Grant:
        """What the chain of the run begins with."""
        return Grant(
            dataset=dataset, run=self.run, rho=self.rho, inputs=self.inputs, quality_of=self.quality_of, at=self.at
        )


class Charge(_Entry):
    """A run spends a part of what it reserved, before it draws noise. Its number is its step."""

    kind: Literal["charge"] = "charge"
    run: str
    step: Annotated[int, Field(ge=0)]
    """The number of the request within its run."""
    mechanism: Literal["measure", "select", "compare"]
    clique: tuple[str, ...]
    rho: Rational
    request: Digest


class Seal(_Entry):
    """The last entry of a run's chain: nothing can be charged after it."""

    kind: Literal["seal"] = "seal"
    run: str


class Spent(FrozenModel):
    """What the sealed chain of a run comes to."""

    rho: Rational
    charges: Annotated[int, Field(ge=0)]
    seal: Digest
    """SHA-256 of the seal, as stored."""


class Close(_Entry):
    """A run is over; what it reserved and did not spend is free again."""

    kind: Literal["close"] = "close"
    run: str
    manifest: Digest | None
    """Of what was published; None if the run was abandoned."""
    at: datetime
    spent: Spent | None = None
    """None of a run whose charges stand between the entries of the account."""


class CapChange(_Entry):
    """The owner of the data allows another total."""

    kind: Literal["cap"] = "cap"
    cap: Rational
    at: datetime


class PolicyChange(_Entry):
    """The owner of the data lays down what releases may spend from now on."""

    kind: Literal["policy"] = "policy"
    policy: Policy
    month: Month
    """In which it comes into force; no earlier than that of any entry before it."""
    at: datetime


class KeyChange(_Entry):
    """A key is trusted from now on, or no more."""

    kind: Literal["key"] = "key"
    name: Name
    """Whose it is."""
    public: PublicKey
    is_trusted: bool
    """False of a key that is revoked; it is not trusted again."""
    at: datetime


class Departure(_Entry):
    """The account goes on in another store: nothing can follow here."""

    kind: Literal["departure"] = "departure"
    to: str
    """The address of that store."""
    at: datetime


class Arrival(_Entry):
    """The account goes on here, in the place of the entry with which it left another store."""

    kind: Literal["arrival"] = "arrival"
    departure: Departure
    """That entry, with the signature of whoever moved the account."""
    at: datetime


Entry: TypeAlias = (
    Opening | Reservation | Charge | Seal | Close | CapChange | PolicyChange | KeyChange | Departure | Arrival
)
"""What is stored."""
Line: TypeAlias = Entry | Grant
"""What a ledger may hold."""

_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="kind")])


def to_bytes(entry: Line) -> bytes:
    """An entry as it is stored: JSON, whose last field is the digest of all before it."""
    body = entry.model_dump_json().encode()
    return _sealed(body)


def from_bytes(data: bytes) -> Line:
    """A stored entry.

    Raises:
        ValueError: If it is not one, or if a byte of it was changed.
    """
    body = data[: -len(_sealed(b"{}")) + len(b"{")] + b"}"
    if _sealed(body) != data:
        raise ValueError("an entry does not have its digest")
    return _LINE.validate_json(body)


def _sealed(body: bytes) -> bytes:
    return body[:-1] + f',"digest":"{hash_of(body)}"}}\n'.encode()


def hash_of(data: bytes) -> str:
    """What the next entry has to name."""
    return hashlib.sha256(data).hexdigest()
