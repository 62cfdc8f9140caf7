"""The closed set of questions that may be asked, and the answers to them.

The loop (`ppsyn.mechanisms`) and the trusted core meet here and nowhere else.
Requests are functions of released values; answers are released values.
"""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, TypeAlias

import numpy as np

from ppsyn.arrays import Floats, Ints
from ppsyn.domain import Clique
from ppsyn.errors import InvariantError
from ppsyn.privacy.partition import Partition
from ppsyn.privacy.residuals import residual_sensitivity

GRID_BITS = 10
"""Scores are whole multiples of 2**-GRID_BITS rows, so that they are exact (claim C2)."""

GRID = 2**GRID_BITS

MAX_PENALTY = 2**60
"""Larger penalties are all the same: such a candidate is hopeless, and scores must fit 64 bits."""

MAX_WEIGHT = 2**20
"""Scores must fit 64 bits (claim C2)."""

_LARGEST = 2**60
_SLACK = 1 + 2.0**-40
"""Covers OpenDP's upward rounding of its privacy map, at 1e-12 of the scale."""


def noise_scale(rho: Fraction, sensitivity: int) -> float:
    """The noise scale that rho buys, rounded up.

    sensitivity / sqrt(2 rho): the standard deviation of a Gaussian whose L2
    sensitivity is `sensitivity`, and the scale of the scores whose
    exponential mechanism has epsilon = sqrt(8 rho). Claims C1 and C3.
    """
    scale = sensitivity / math.sqrt(2 * rho) * _SLACK
    if not math.isfinite(scale) or 2 * rho * Fraction(scale) ** 2 < sensitivity**2:
        raise InvariantError("The noise scale was not rounded up.")
    return scale


def to_grid(rows: Floats) -> Ints:
    """Round expected rows to the score grid."""
    units = np.rint(np.asarray(rows, np.float64) * GRID)
    if not np.all(np.abs(units) < _LARGEST / max(1, units.size)):
        raise InvariantError("Expected counts too large for the score grid.")
    return units.astype(np.int64)


def l1_norm(values: Ints) -> int:
    """The sum of the magnitudes, exact whatever they are: 64 bits may hold neither it nor a magnitude."""
    magnitudes = np.abs(values).view(np.uint64)  # that of -2**63 wraps to itself, which is 2**63 without a sign
    high, low = magnitudes >> np.uint64(32), magnitudes & np.uint64(2**32 - 1)
    return (int(high.sum()) << 32) + int(low.sum())


@dataclass(frozen=True, slots=True, eq=False)
class MeasureRequest:
    """Ask for the noisy group counts of one marginal, or for noisy residuals of them where they form a grid."""

    clique: Clique
    partition: Partition
    rho: Fraction

    @property
    def sensitivity(self) -> int:
        """One row moves the answer by at most this in L2 norm (claim C1)."""
        return residual_sensitivity(self.partition.axes) if self.partition.axes else 1

    def is_answered_by(self, answer: "Answer") -> bool:
        """Whether this could be the answer: of its kind and shape, or lost."""
        return isinstance(answer, Lost) or (
            isinstance(answer, Measured) and answer.noisy_counts.shape == (self.partition.count,) and answer.sigma > 0
        )

    def digest(self) -> str:
        """A fingerprint of the question, for the ledger."""
        return _digest("measure", self.clique, self.rho, _canonical_bytes(self.partition))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A marginal and a partition of it, as the model sees them.

    Attributes:
        expected: The model's group counts, in grid units.
        penalty: What the noise of measuring it would cost, in grid units.
        weight: How often a row of difference counts.
    """

    clique: Clique
    partition: Partition
    expected: Ints
    penalty: int
    weight: int = 1

    def __post_init__(self) -> None:
        """Refuse what would void the bound on the score's sensitivity, or its exactness."""
        if self.expected.shape != (self.partition.count,) or self.expected.dtype != np.int64:
            raise InvariantError("Expected one whole number of grid units for each group.")
        if type(self.penalty) is not int or not 0 <= self.penalty <= MAX_PENALTY:
            raise InvariantError("Expected a penalty from 0 to MAX_PENALTY, of Python's own integers.")
        if type(self.weight) is not int or not 1 <= self.weight <= MAX_WEIGHT:
            raise InvariantError("Expected a weight from 1 to MAX_WEIGHT, of Python's own integers.")
        if self.weight * l1_norm(self.expected) > 2 * _LARGEST:
            raise InvariantError("Expected counts too large for a score of 64 bits.")


@dataclass(frozen=True, slots=True, eq=False)
class SelectRequest:
    """Ask which candidate the model describes worst, net of its penalty."""

    candidates: tuple[Candidate, ...]
    rho: Fraction

    def is_answered_by(self, answer: "Answer") -> bool:
        """Whether this could be the answer: one of the candidates, or lost."""
        return isinstance(answer, Lost) or (isinstance(answer, Selected) and 0 <= answer.index < len(self.candidates))

    def digest(self) -> str:
        """A fingerprint of the question, for the ledger."""
        return _digest("select", (), self.rho, _fingerprint(self.candidates))


Request: TypeAlias = MeasureRequest | SelectRequest
"""What the loop asks."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that tells of several scores: their mean, or the largest of them.

    Attributes:
        members: Which candidates of the request.
    """

    statistic: Literal["mean", "worst"]
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CompareRequest:
    """Ask how far marginals lie from what is expected of them: figures of their scores, all under the same noise."""

    candidates: tuple[Candidate, ...]
    figures: tuple[Figure, ...]
    rho: Fraction

    def __post_init__(self) -> None:
        """Refuse figures of nothing, and of candidates that are not there."""
        known = range(len(self.candidates))
        if not self.figures or not all(f.members and all(m in known for m in f.members) for f in self.figures):
            raise InvariantError("Expected figures of candidates of the request.")

    def digest(self) -> str:
        """A fingerprint of the question, for the ledger."""
        members = repr([(figure.statistic, figure.members) for figure in self.figures]).encode()
        return _digest("compare", (), self.rho, _fingerprint(self.candidates) + members)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Noisy group counts, or residuals of a grid. `sigma` is the scale the noise was drawn at."""

    noisy_counts: Ints
    sigma: float


@dataclass(frozen=True, slots=True)
class Selected:
    """The index of the chosen candidate."""

    index: int


@dataclass(frozen=True, slots=True)
class Lost:
    """The request was charged and its answer never arrived (a crash)."""


Answer: TypeAlias = Measured | Selected | Lost


class Curator(Protocol):
    """The gate: the only object that reads private counts."""

    def answer(self, request: Request) -> Answer:
        """Check the budget, write the spend, draw, in that order."""
        ...


def _fingerprint(candidates: tuple[Candidate, ...]) -> bytes:
    hashed = hashlib.sha256()
    for candidate in candidates:
        hashed.update(repr((candidate.clique, candidate.penalty, candidate.weight)).encode())
        hashed.update(_canonical_bytes(candidate.partition))
        hashed.update(candidate.expected.tobytes())
    return hashed.digest()


def _canonical_bytes(partition: Partition) -> bytes:
    return repr(partition.axes).encode() + partition.groups.tobytes()


def _digest(kind: str, clique: Clique, rho: Fraction, body: bytes) -> str:
    head = repr((kind, clique, rho.numerator, rho.denominator)).encode()
    return hashlib.sha256(head + body).hexdigest()
