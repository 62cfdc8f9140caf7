"""All that a report is made from, and the counts of the synthetic table."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.domain import Clique
from ppsyn.generation.sampling import BLOCK_ROWS
from ppsyn.mechanisms.loop import Round
from ppsyn.model.inference_plan import Measurement
from ppsyn.privacy.requests import Answer, Lost
from ppsyn.schemas.account import Charge, Grant, Line, Reservation
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.manifest import Manifest
from ppsyn.schemas.validation import Validation
from ppsyn.synthesis import Synthesis

MOST_ROWS = 8 * BLOCK_ROWS
"""Rows of the synthetic table that are counted at most; whole blocks, which do not depend on later ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """A release as anyone can read it. Every value is public or released.

    Attributes:
        manifest: When it was published, and the digest of the report, are not told: they come after it.
        entries: Of the account: what the run was granted, and its charges.
        answers: To the charges of the run, in order.
    """

    manifest: Manifest
    entries: tuple[Line, ...]
    answers: tuple[Answer, ...]
    synthesis: Synthesis
    validation: Validation

    @property
    def columns(self) -> dict[str, ColumnSchema]:
        """The columns by name."""
        return {column.name: column for column in self.manifest.table.columns}

    @property
    def total(self) -> float:
        """The noisy number of rows."""
        return self.synthesis.model.total

    @property
    def granted(self) -> Grant | Reservation | None:
        """The entry that reserved the run's budget."""
        return next(
            (e for e in self.entries if isinstance(e, Grant | Reservation) and e.run == self.manifest.run), None
        )


@dataclass(frozen=True, slots=True, eq=False)
class Charged:
    """A charge, and whether its answer was lost."""

    charge: Charge
    is_lost: bool


def charged(released: Released) -> list[Charged]:
    """The charges of the run, in order."""
    own = [e for e in released.entries if isinstance(e, Charge) and e.run == released.manifest.run]
    return [Charged(charge, isinstance(answer, Lost)) for charge, answer in zip(own, released.answers, strict=True)]


def measured_rounds(synthesis: Synthesis) -> list[tuple[Round, Measurement]]:
    """The rounds with what they measured: the last of the measurements, one each."""
    count = len(synthesis.rounds)
    return list(zip(synthesis.rounds, synthesis.measurements[len(synthesis.measurements) - count :], strict=True))


def synthetic_counts(released: Released, cliques: Iterable[Clique]) -> dict[Clique, Floats]:
    """Marginals of the synthetic table, scaled to the noisy number of rows."""
    synthesis, rows = released.synthesis, min(released.manifest.rows, MOST_ROWS)
    domain = synthesis.domain
    counts = {clique: np.zeros(domain.size(clique)) for clique in cliques}
    for codes in synthesis.model.blocks(rows, released.manifest.generation.seed, synthesis.refined):
        for clique, sums in counts.items():
            cells = np.ravel_multi_index([codes[name] for name in clique], domain.shape(clique))
            np.add(sums, np.bincount(cells, minlength=sums.size), out=sums)
    return {clique: sums * (released.total / rows) for clique, sums in counts.items()}
