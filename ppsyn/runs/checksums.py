"""Objects of a run that tell whether they are as they were written: a digest, then what it is of."""

import hashlib

_DIGEST_BYTES = 32


def sealed(data: bytes) -> bytes:
    """The data with its digest before it."""
    return hashlib.sha256(data).digest() + data


def unsealed(data: bytes) -> bytes:
    """The data, if it is as it was sealed.

    Raises:
        ValueError: If it is not. Nothing of it was read.
    """
    found = data[_DIGEST_BYTES:]
    if hashlib.sha256(found).digest() != data[:_DIGEST_BYTES]:
        raise ValueError("not as it was written")
    return found


def digest_of(data: bytes) -> str:
    """The digest of an object, as text."""
    return hashlib.sha256(data).hexdigest()
