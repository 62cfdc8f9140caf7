"""What a planted fault is: a few lines of the source that break one claim of PRIVACY.md."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """A patch that breaks a claim: text that stands once in a file, and what takes its place.

    Attributes:
        name: What is wrong.
        claim: Which claim it breaks; its tests must tell.
        file: Where, from the root of the repository.
        old: Text that occurs there exactly once.
        new: What stands there instead.
        why: How it breaks the claim.
        told_by: The test of the claim that tells of it; tried first, and all others after it.
    """

    name: str
    claim: str
    file: str
    old: str
    new: str
    why: str
    told_by: str = ""
