"""What is published beside a synthetic table: the manifest, and the verdict of its validation."""

from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from ppsyn.schemas.config import AlgorithmConfig, PrivacyConfig
from ppsyn.schemas.release import GenerationConfig
from ppsyn.schemas.run import CodeVersion, EarlierRelease
from ppsyn.schemas.table import TableSchema
from ppsyn.schemas.types import Digest, FrozenModel, Name, Rational


class FileDigest(FrozenModel):
    """A file as it was published."""

    sha256: Digest
    """Its digest."""
    bytes: int
    """Its length."""


class Guarantee(FrozenModel):
    """What the release costs, and whom it protects."""

    rho: Rational
    """Zero-concentrated differential privacy, exactly."""
    epsilon: float | None
    """At `delta`, rounded up; None if no delta was named."""
    delta: float | None
    """As it was asked for; None if the budget was a rho."""
    unit: str
    """What is protected, and by how many of its rows at most a table is moved."""

    @property
    def cost(self) -> str:
        """What was spent, in words: `epsilon 1 at delta 1e-09 (rho 0.0156)`."""
        rho = f"rho {float(self.rho):.6g}"
        return rho if self.epsilon is None else f"epsilon {self.epsilon:.4g} at delta {self.delta:g} ({rho})"


class AccountPart(FrozenModel):
    """What ledger.parquet holds: the run's grant and its charges, which are a chain of their own in the account."""

    charges: int
    """How many there are."""
    head: Digest
    """The hash of the last of them."""
    cap: Rational
    """What all releases of the dataset could spend together when the run reserved its budget."""


RELEASE_FORMAT = "ppsyn-release-4"


class Manifest(FrozenModel):
    """A release: its inputs, its cost, its files. All of it is public or released."""

    format: Literal["ppsyn-release-4"] = RELEASE_FORMAT
    """Which version of this list it is."""
    dataset: Name
    """Whose account was charged."""
    run: str
    """Names the run, and the folder."""
    published_at: datetime
    """When, to the second, in UTC."""
    inputs: Digest
    """Of the run's record; the account's hold names it."""
    table: TableSchema
    privacy: PrivacyConfig
    algorithm: AlgorithmConfig
    generation: GenerationConfig
    learned_from: tuple[EarlierRelease, ...]
    """The earlier releases that this one learned from, oldest first; past.npz holds what they tell together."""
    rests_on: tuple[EarlierRelease, ...]
    """Those, and all that they rest on in turn: what this release tells depends on the answers of all of these."""
    left_out: tuple[str, ...]
    """What could not be learned from them, a sentence for each."""
    rows: int
    """Of the synthetic table."""
    guarantee: Guarantee
    """Of its own answers; what they add to what the releases cost that it rests on."""
    together: Guarantee
    """Of this release and all that it rests on, published together; its own, if it rests on none."""
    account: AccountPart
    code: CodeVersion
    files: dict[str, FileDigest]
    """Every other file of the folder, but for the seal."""

    def to_bytes(self) -> bytes:
        """The manifest as it is stored."""
        return self.model_dump_json(indent=2).encode() + b"\n"


class ValidationResult(FrozenModel):
    """One expectation, over the whole table."""

    column: str | None
    """The column, or the rule's name, or None if it is about the table."""
    about: Literal["columns", "dtype", "nulls", "values", "follows", "rules"]
    expectation: str
    """As Great Expectations names it."""
    kwargs: dict[str, JsonValue]
    """What was expected, as the schema writes it."""
    success: bool


class Validation(FrozenModel):
    """The verdict on a synthetic table."""

    success: bool
    """Whether every expectation was met."""
    results: tuple[ValidationResult, ...]
