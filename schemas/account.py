"""The entries of a budget account, as they are stored: one object each, chained by hashes."""

import hashlib
from datetime import datetime
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer, TypeAdapter

from schemas.base import FrozenModel

Rational = Annotated[Fraction, PlainSerializer(str, return_type=str, when_used="json")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

FIRST = "0" * 64
"""What the first entry has in the place of its predecessor's hash."""


class _Entry(FrozenModel):
    number: Annotated[int, Field(ge=0)]
    previous: Digest
    """SHA-256 of the entry before, as stored."""
    nonce: str
    """Random, so that a writer knows its own entry again."""


class Opening(_Entry):
    """The account exists, with a cap."""

    kind: Literal["opening"] = "opening"
    format: Literal["ppsyn-account-1"] = "ppsyn-account-1"
    dataset: str
    cap: Rational
    """What all releases may spend together, as zCDP rho."""
    delta: float | None
    """At which epsilon is told."""
    unit: str
    """What is protected: a row, or the person that a column names."""
    at: datetime


class Hold(_Entry):
    """A run sets its whole budget aside, before it reads the table."""

    kind: Literal["hold"] = "hold"
    run: str
    rho: Rational
    inputs: Digest
    """Of the run's record."""
    quality_of: str | None = None
    """The release whose quality is to be measured; None for a release itself."""
    at: datetime


class Charge(_Entry):
    """A run spends a part of what it holds, before it draws noise."""

    kind: Literal["charge"] = "charge"
    run: str
    step: Annotated[int, Field(ge=0)]
    """The number of the request within its run."""
    mechanism: Literal["measure", "select", "compare"]
    clique: tuple[str, ...]
    rho: Rational
    request: Digest


class Close(_Entry):
    """A run is over; what it held and did not spend is free again."""

    kind: Literal["close"] = "close"
    run: str
    manifest: Digest | None
    """Of what was published; None if the run was abandoned."""
    at: datetime


class CapChange(_Entry):
    """The owner of the data allows another total."""

    kind: Literal["cap"] = "cap"
    cap: Rational
    at: datetime


Entry = Annotated[Opening | Hold | Charge | Close | CapChange, Field(discriminator="kind")]

_ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)


def to_bytes(entry: Entry) -> bytes:
    """An entry as it is stored: JSON, whose last field is the digest of all before it."""
    body = entry.model_dump_json().encode()
    return _sealed(body)


def from_bytes(data: bytes) -> Entry:
    """A stored entry.

    Raises:
        ValueError: If it is not one, or if a byte of it was changed.
    """
    body = data[: -len(_sealed(b"{}")) + len(b"{")] + b"}"
    if _sealed(body) != data:
        raise ValueError("an entry does not have its digest")
    return _ENTRY.validate_json(body)


def _sealed(body: bytes) -> bytes:
    return body[:-1] + f',"digest":"{hash_of(body)}"}}\n'.encode()


def hash_of(data: bytes) -> str:
    """What the next entry has to name."""
    return hashlib.sha256(data).hexdigest()
