"""What is signed, and how: DSSE envelopes that hold in-toto statements, so that the tools of others verify them.

https://github.com/secure-systems-lab/dsse and https://github.com/in-toto/attestation
"""

import base64
import hashlib
from datetime import datetime
from typing import Annotated, Generic, Literal, TypeAlias, TypeVar

from pydantic import Field

from ppsyn.schemas.policy import Right
from ppsyn.schemas.types import Digest, FrozenModel, Name

KeyId: TypeAlias = Digest
"""SHA-256 of the 32 bytes of an Ed25519 public key."""
PublicKey: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{43}=$")]
"""The 32 bytes of an Ed25519 public key, in base64."""


def keyid_of(public: str) -> str:
    """What names a public key: the SHA-256 of its bytes."""
    return hashlib.sha256(base64.b64decode(public)).hexdigest()


class EnvelopeSignature(FrozenModel):
    """One signature of an envelope."""

    keyid: KeyId
    sig: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{86}==$")]


class Envelope(FrozenModel):
    """A DSSE envelope with one signature."""

    payload: Annotated[str, Field(max_length=65_536)]
    payloadType: Literal["application/vnd.in-toto+json"] = "application/vnd.in-toto+json"
    signatures: tuple[EnvelopeSignature]

    @property
    def keyid(self) -> str:
        """Whose signature it says it is."""
        return self.signatures[0].keyid

    def to_bytes(self) -> bytes:
        """The envelope as a file."""
        return self.model_dump_json(indent=2).encode() + b"\n"


class Sha256(FrozenModel):
    """The digest of a subject."""

    sha256: Digest


class Subject(FrozenModel):
    """What a statement is about."""

    name: str
    digest: Sha256


class EntrySigned(FrozenModel):
    """An entry of an account: its bytes without the signature."""

    dataset: str
    number: int


class ReleaseSigned(FrozenModel):
    """A release, by its manifest, which names all its files by their digests."""

    dataset: str
    run: str
    signed_at: datetime
    """As the signer's clock tells."""


class HeadSigned(FrozenModel):
    """An account up to an entry, by the bytes of that entry, which name the one before."""

    dataset: str
    number: int
    signed_at: datetime


Predicate = TypeVar("Predicate", bound=FrozenModel)


class Statement(FrozenModel, Generic[Predicate]):
    """An in-toto statement about one subject."""

    type: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")] = (
        "https://in-toto.io/Statement/v1"
    )
    subject: tuple[Subject]
    predicateType: str
    predicate: Predicate


class TrustedKey(FrozenModel):
    """A key that somebody trusts, and for what."""

    name: Name
    """Whose it is."""
    public: PublicKey
    rights: tuple[Right, ...]
    """What its owner may do."""
    trusted_at: datetime | None = None
    revoked_at: datetime | None = None


class Trust(FrozenModel):
    """Keys that somebody trusts, as `ppsyn keys list --json` prints them."""

    dataset: str | None = None
    keys: tuple[TrustedKey, ...]
