"""Ed25519 signatures in DSSE envelopes that hold in-toto statements, and keys in files. No network is needed."""

import base64
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from ppsyn.errors import ConfigError, SignatureError, translated
from ppsyn.schemas.files import read_whole
from ppsyn.schemas.signature import (
    EntrySigned,
    Envelope,
    EnvelopeSignature,
    HeadSigned,
    ReleaseSigned,
    Sha256,
    Statement,
    Subject,
    keyid_of,
)

KEY, PASSPHRASE = "PPSYN_KEY", "PPSYN_KEY_PASSPHRASE"
"""The variables that name the file of the key to sign with, and hold its passphrase."""
_MOST_BYTES = 1_048_576
_TYPES = {EntrySigned: "urn:ppsyn:entry:1", ReleaseSigned: "urn:ppsyn:release:1", HeadSigned: "urn:ppsyn:head:1"}

P = TypeVar("P", EntrySigned, ReleaseSigned, HeadSigned)


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key. Neither its repr nor an error shows it."""

    _key: Ed25519PrivateKey

    def __repr__(self) -> str:
        """Name the public half alone."""
        return f"Signer({self.keyid})"

    @property
    def public(self) -> str:
        """The public key, in base64."""
        return base64.b64encode(self._key.public_key().public_bytes_raw()).decode()

    @property
    def keyid(self) -> str:
        """Names the public key."""
        return keyid_of(self.public)

    def sign(self, subject: str, digest: str, predicate: EntrySigned | ReleaseSigned | HeadSigned) -> Envelope:
        """A statement about what has this name and this SHA-256, signed."""
        statement = Statement(
            subject=(Subject(name=subject, digest=Sha256(sha256=digest)),),
            predicateType=_TYPES[type(predicate)],
            predicate=predicate,
        )
        payload = statement.model_dump_json(by_alias=True).encode()
        envelope = Envelope.model_construct(payload=base64.b64encode(payload).decode())
        signature = base64.b64encode(self._key.sign(_encoded(envelope.payloadType, payload))).decode()
        return envelope.model_copy(update={"signatures": (EnvelopeSignature(keyid=self.keyid, sig=signature),)})


def verify(envelope: Envelope, public: str, kind: type[P]) -> tuple[Subject, P]:
    """What an envelope states, if this key has signed it.

    Raises:
        SignatureError: If it has not, or it states something of another kind.
    """
    payload = base64.b64decode(envelope.payload)
    with translated(
        (InvalidSignature, ValueError), to=SignatureError, message="The signature is not one of its key for this."
    ):
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public))
        key.verify(base64.b64decode(envelope.signatures[0].sig), _encoded(envelope.payloadType, payload))
    with translated(ValueError, to=SignatureError, message="What is signed is no statement of this kind."):
        statement = read_statement(envelope, kind)
    return statement.subject[0], statement.predicate


def read_statement(envelope: Envelope, kind: type[P]) -> Statement[P]:
    """What an envelope states, whoever has signed it.

    Raises:
        ValueError: If it is no statement of this kind.
    """
    statement = Statement[kind].model_validate_json(base64.b64decode(envelope.payload))
    if statement.predicateType != _TYPES[kind]:
        raise ValueError("a statement of another kind")
    return statement


def _encoded(kind: str, payload: bytes) -> bytes:
    """What is signed: the pre-authentication encoding of DSSE."""
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(payload), payload)


# Keys in files


def new_key(file: Path, passphrase: str | None) -> Signer:
    """Make a key, in a file that only its owner may read, and its public half beside it (`.pub`).

    Raises:
        ConfigError: If one of the files exists or cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    encryption = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase.encode())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for path, data, mode in ((file, private, 0o600), (file.with_suffix(".pub"), public, 0o644)):
        with (
            translated(OSError, to=ConfigError, message=lambda e, path=path: f"Cannot write {path}: {e.strerror}."),
            open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as target,  # noqa: PTH123
        ):
            target.write(data)
    return Signer(key)


def read_key(file: Path, passphrase: str | None) -> Signer:
    """The private key in a file.

    Raises:
        ConfigError: If there is none, others may read the file, or the passphrase is not its own.
    """
    data = read_limited(file)
    if file.stat().st_mode & 0o077:
        raise ConfigError(f"Expected {file} to be readable by its owner alone. Run: chmod 600 {file}")
    rule = f"Expected {file} to be an Ed25519 key in PEM, with its passphrase in {PASSPHRASE} if it has one."
    with translated((ValueError, TypeError), to=ConfigError, message=rule):
        key = load_pem_private_key(data, None if passphrase is None else passphrase.encode())
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(rule)
    return Signer(key)


def read_public(file: Path) -> str:
    """The public key in a file, in base64.

    Raises:
        ConfigError: If there is none.
    """
    rule = f"Expected {file} to be the public half of an Ed25519 key, in PEM."
    data = read_limited(file)
    with translated(ValueError, to=ConfigError, message=rule):
        key = load_pem_public_key(data)
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigError(rule)
    return base64.b64encode(key.public_bytes_raw()).decode()


def read_limited(file: Path) -> bytes:
    """The bytes of a file of keys or signatures.

    Raises:
        ConfigError: If it cannot be read, or is larger than such a file is.
    """
    with translated(OSError, to=ConfigError, message=lambda error: f"Cannot read {file}: {error.strerror}."):
        return read_whole(file, _MOST_BYTES)


def own_signer() -> Signer | None:
    """The key that the environment names; None if it names none.

    Raises:
        ConfigError: If it names a file that will not do.
    """
    file = os.environ.get(KEY)
    return None if not file else read_key(Path(file), os.environ.get(PASSPHRASE))
