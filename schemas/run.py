"""The inputs of a run, kept at its start, and the reference it is known by."""

import hashlib
from typing import Annotated, Literal

from ppsyn.schemas.config import AlgorithmConfig, PrivacyConfig, RuntimeConfig
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import GenerationConfig, LearnFrom, Source
from ppsyn.schemas.table import TableSchema
from ppsyn.schemas.types import Digest, FrozenModel, Name, Rational, Run, absent


class CodeVersion(FrozenModel):
    """What computes the answer. The same on both sides, the same bits."""

    ppsyn: str
    """Its version."""
    source: str
    """Digest of the library's own modules."""
    python: str
    """Its version."""
    libraries: dict[str, str]
    """Versions of those that the answer depends on."""
    machine: str
    """The processor that compiled loops were made for."""


class EarlierRelease(FrozenModel):
    """A release that another has learned from."""

    run: Run
    """Its run."""
    manifest: Digest
    """The digest of its manifest, as the account has it."""
    rho: Rational
    """What its own answers cost."""


RUN_FORMAT = "ppsyn-run-3"


class RunRecord(FrozenModel):
    """The exact inputs of a run. All of it is public."""

    format: Literal["ppsyn-run-3"] = RUN_FORMAT
    run: str
    dataset: Name
    source: Source
    table: TableSchema
    privacy: PrivacyConfig
    purpose: Annotated[Name | None, absent] = None
    algorithm: AlgorithmConfig
    generation: GenerationConfig
    learn_from: LearnFrom
    earlier: tuple[EarlierRelease, ...]
    rests_on: tuple[EarlierRelease, ...]
    past: Digest | None
    left_out: tuple[str, ...]
    code: CodeVersion

    def to_bytes(self) -> bytes:
        """The record as it is stored."""
        return self.model_dump_json(indent=2).encode() + b"\n"

    def digest(self) -> str:
        """SHA-256 of the record as stored."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


class RunLocations(FrozenModel):
    """Where a run keeps its copy of the table and what it makes: addresses and names of keys, never a secret.

    None is where the run itself is kept, wherever that is moved to.
    """

    private: Location | None
    releases: Location | None


class RunRef(FrozenModel):
    """All that a task receives: names, addresses and runtime settings."""

    run: str
    dataset: str
    root: Location
    private: Location
    releases: Location
    runtime: RuntimeConfig = RuntimeConfig()
