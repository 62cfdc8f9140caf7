"""What is left of a release that was removed: who removed it, when, why, and what it was."""

from datetime import datetime
from typing import Literal

from ppsyn.schemas.manifest import FileDigest, Guarantee
from ppsyn.schemas.types import Digest, FrozenModel, Name, Text

RETIREMENT_FORMAT = "ppsyn-retirement-1"


class Retirement(FrozenModel):
    """An erasure record. What the release has cost stays spent."""

    format: Literal["ppsyn-retirement-1"] = RETIREMENT_FORMAT
    dataset: Name
    run: str
    retired_at: datetime
    """When, to the second, in UTC."""
    by: Text
    """Who, as whoever gave the command says."""
    reason: Text
    published_at: datetime
    guarantee: Guarantee
    """What the release has cost."""
    manifest: Digest
    """Of the release; the account knows it."""
    files: dict[str, FileDigest]
    """All that was published, figures about it included."""

    @property
    def sentence(self) -> str:
        """What became of the release."""
        return (
            f"Release {self.run} of {self.dataset} was retired on {self.retired_at.date()} by {self.by}: {self.reason} "
            f"Its budget stays spent: {self.guarantee.cost}."
        )

    def to_bytes(self) -> bytes:
        """The record as it is stored."""
        return self.model_dump_json(indent=2).encode() + b"\n"
