"""How good a published release is, by noisy answers that its account has paid for."""

import hashlib
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from ppsyn.schemas.config import PersonUnit, PrivacyConfig
from ppsyn.schemas.manifest import AccountPart, Guarantee
from ppsyn.schemas.types import Digest, FrozenModel, Name, Rational

Statistic = Literal["mean", "worst"]


class MarginalSet(FrozenModel):
    """Marginals that figures are about: of one its distance, of several the mean and the largest distance."""

    name: str
    marginals: Annotated[tuple[tuple[str, ...], ...], Field(min_length=1)]

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What is told of it."""
        return ("mean", "worst") if len(self.marginals) > 1 else ("mean",)


class QualityRecord(FrozenModel):
    """What is to be measured, written down before anything is charged. All of it is public or released."""

    format: Literal["ppsyn-quality-run-1"] = "ppsyn-quality-run-1"
    run: str
    dataset: Name
    release: str
    """The run of the release."""
    manifest: Digest
    """Of the release."""
    rho: Rational
    """What it may spend."""
    delta: float | None
    """At which epsilon is shown."""
    person: PersonUnit | None
    """The unit of privacy, as of the release."""
    sets: Annotated[tuple[MarginalSet, ...], Field(min_length=1)]

    @property
    def max_rows(self) -> int:
        """Rows of one unit that count."""
        return 1 if self.person is None else self.person.max_rows

    @property
    def privacy(self) -> PrivacyConfig:
        """What it may cost, and whom it protects, as a release says it."""
        return PrivacyConfig(rho=float(self.rho), delta=self.delta, person=self.person)

    def to_bytes(self) -> bytes:
        """The record as it is stored."""
        return self.model_dump_json(indent=2).encode() + b"\n"

    def digest(self) -> str:
        """SHA-256 of the record as stored."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


class NoisyRows(FrozenModel):
    """The number of rows of the private table, with noise."""

    noisy: int
    sigma: float
    """Standard deviation of the noise, in rows."""


class QualityFigure(FrozenModel):
    """How far the synthetic table is from the private one: total variation distance, from 0 to 1.

    It is the share of rows that would have to change their cell.
    """

    about: str
    """The name of a set of marginals."""
    statistic: Statistic
    noisy: int
    """As it was drawn: the sum of absolute differences, in units of 1/1024 row."""
    distance: float
    lower: float
    """The true distance lies from here..."""
    upper: float
    """...to here with a probability of at least 95%."""


class Quality(FrozenModel):
    """What is published: the figures, and the entries of the account that paid for them."""

    format: Literal["ppsyn-quality-3"] = "ppsyn-quality-3"
    request: QualityRecord
    measured_at: datetime
    guarantee: Guarantee
    """What these figures cost, besides the release itself."""
    rows: NoisyRows
    sigma: float
    """Standard deviation of the noise of each figure, in units of 1/1024 row."""
    figures: tuple[QualityFigure, ...]
    account: AccountPart
    entries: tuple[str, ...]
    """The grant and the charges, as stored."""

    def to_bytes(self) -> bytes:
        """The result as it is stored."""
        return self.model_dump_json(indent=2).encode() + b"\n"
