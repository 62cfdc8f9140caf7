"""A release as anyone can read it, and what its report computes from it. Every value is public or released."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.domain import Clique
from ppsyn.generation.sampling import BLOCK_ROWS
from ppsyn.mechanisms.loop import Round
from ppsyn.model.estimation import Effort
from ppsyn.model.graphical_model import GraphicalModel
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.requests import Answer, Lost
from ppsyn.reports.charts import Bar, Edge
from ppsyn.reports.formatting import name_group
from ppsyn.schemas.account import Charge, Grant, Line, Reservation
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.manifest import Manifest, Validation
from ppsyn.synthesis import Synthesis

MAX_COUNTED_ROWS = 8 * BLOCK_ROWS
"""Rows of the synthetic table that are counted at most; whole blocks, which do not depend on later ones."""

_REFITS, _EFFORT = 2, Effort(iterations=100, tolerance=1e-5)
"""About as dear as two rounds; 200 steps instead of 100 find errors of pairs that are larger by a seventh."""


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """The files of a release.

    Attributes:
        manifest: The report shows neither its time of publication nor the digest of the report: they come after it.
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

    @property
    def charges(self) -> list["AnsweredCharge"]:
        """The charges of the run, in order."""
        own = [e for e in self.entries if isinstance(e, Charge) and e.run == self.manifest.run]
        return [AnsweredCharge(one, isinstance(got, Lost)) for one, got in zip(own, self.answers, strict=True)]


# The budget


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredCharge:
    """A charge, and whether its answer was lost."""

    charge: Charge
    is_lost: bool


@dataclass(frozen=True, slots=True)
class RoundCost:
    """What one round was charged.

    Attributes:
        number: From 1.
        lost: Answers that were charged and never arrived.
        is_measured: Whether its measurement arrived.
    """

    number: int
    select: Fraction = Fraction(0)
    measure: Fraction = Fraction(0)
    lost: int = 0
    is_measured: bool = False

    @property
    def rho(self) -> Fraction:
        """Selection and measurement together."""
        return self.select + self.measure

    def with_charge(self, step: AnsweredCharge) -> "RoundCost":
        """The round with one more charge."""
        rho, is_select = step.charge.rho, step.charge.mechanism == "select"
        return RoundCost(
            number=self.number,
            select=self.select + (rho if is_select else 0),
            measure=self.measure + (0 if is_select else rho),
            lost=self.lost + step.is_lost,
            is_measured=not is_select and not step.is_lost,
        )


@dataclass(frozen=True, slots=True)
class Spending:
    """Where a release's budget went.

    Attributes:
        initial: For single attributes, before the first selection.
        measurements: How many charges that was.
        lost: How many answers to them never arrived.
    """

    initial: Fraction
    measurements: int
    lost: int
    rounds: tuple[RoundCost, ...]

    @property
    def select(self) -> Fraction:
        """What all selections were charged."""
        return sum((one.select for one in self.rounds), Fraction(0))

    @property
    def measure(self) -> Fraction:
        """What all measurements of rounds were charged."""
        return sum((one.measure for one in self.rounds), Fraction(0))

    @property
    def all_lost(self) -> int:
        """How many answers never arrived."""
        return self.lost + sum(one.lost for one in self.rounds)


def split_spending(steps: Sequence[AnsweredCharge]) -> Spending:
    """Charges in order, split into the initialization and rounds: a round starts with its selection, if it has one."""
    first = next((at for at, step in enumerate(steps) if step.charge.mechanism == "select"), len(steps))
    rounds: list[RoundCost] = []
    for step in steps[first:]:
        if step.charge.mechanism == "select" or not rounds or rounds[-1].measure:
            rounds.append(RoundCost(len(rounds) + 1))
        rounds[-1] = rounds[-1].with_charge(step)
    rho = sum((step.charge.rho for step in steps[:first]), Fraction(0))
    return Spending(rho, first, sum(step.is_lost for step in steps[:first]), tuple(rounds))


# Rounds


@dataclass(frozen=True, slots=True)
class RoundStats:
    """A round that was measured, in rows: half an L1 distance is how many rows would have to change their cell.

    Attributes:
        sigma: Standard deviation of the noise.
        before: From the answer to what the model expected when the question was asked.
        after: From the answer to the final model.
        noise: What the noise alone is expected to make of such a distance.
    """

    number: int
    clique: Clique
    cells: int
    groups: int
    sigma: float
    before: float
    after: float
    noise: float


def measured_rounds(synthesis: Synthesis) -> list[tuple[Round, Measurement]]:
    """The rounds with what they measured: the last of the measurements, one each."""
    count = len(synthesis.rounds)
    return list(zip(synthesis.rounds, synthesis.measurements[len(synthesis.measurements) - count :], strict=True))


def round_stats(released: Released, spending: Spending) -> list[RoundStats]:
    """The rounds whose measurement arrived."""
    model, found = released.synthesis.model, measured_rounds(released.synthesis)
    numbers = [one.number for one in spending.rounds if one.is_measured]
    if len(numbers) != len(found):  # rounds that were charged in another way
        numbers = list(range(1, len(found) + 1))
    stats: list[RoundStats] = []
    for number, (done, measurement) in zip(numbers, found, strict=True):
        now = measurement.partition.sum_expected(model.project(done.clique))
        after = float(np.abs(measurement.difference(now)).sum()) / 2
        cells = measurement.partition.cells
        stats.append(
            RoundStats(number, done.clique, cells, done.groups, done.sigma, done.distance / 2, after, done.noise / 2)
        )
    return stats


# Counts


def synthetic_counts(released: Released, cliques: Iterable[Clique]) -> dict[Clique, Floats]:
    """Marginals of the synthetic table, scaled to the noisy number of rows."""
    synthesis, rows = released.synthesis, min(released.manifest.rows, MAX_COUNTED_ROWS)
    domain = synthesis.domain
    counts = {clique: np.zeros(domain.size(clique)) for clique in cliques}
    for codes in synthesis.model.blocks(rows, released.manifest.generation.seed, synthesis.refined):
        for clique, sums in counts.items():
            cells = np.ravel_multi_index([codes[name] for name in clique], domain.shape(clique))
            np.add(sums, np.bincount(cells, minlength=sums.size), out=sums)
    return {clique: sums * (released.total / rows) for clique, sums in counts.items()}


def finest_measurement(measurements: Iterable[Measurement], clique: Clique) -> Measurement | None:
    """The measurement of a marginal with the most groups, and of those the one with the least noise."""
    found = [m for m in measurements if m.clique == clique]
    return min(found, key=lambda m: (-m.partition.count, m.sigma), default=None)


def measured_bars(columns: Mapping[str, ColumnSchema], measurement: Measurement, synthetic: Floats) -> list[Bar]:
    """The groups of a measurement, in order of their first cell, beside counts of the synthetic table."""
    partition = measurement.partition
    sums = partition.sum_expected(synthetic)
    measured = sums + measurement.difference(sums)
    by_group = np.argsort(partition.groups, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(partition.groups, minlength=partition.count))
    return [
        Bar(
            label=name_group(columns, measurement.clique, cells),
            measured=float(measured[group]),
            deviation=measurement.count_sigma,
            synthetic=float(sums[group]),
        )
        for group, cells in enumerate(np.split(by_group, ends[:-1]))
    ]


# Errors to be expected


def expected_errors(synthesis: Synthesis) -> dict[Clique, float | None]:
    """What the noise that was added for privacy makes of every attribute and pair, in the domain's order.

    The model is fitted again to its own answers under fresh noise of the same scales, as for the error bars of
    `Synthesis.marginal`, and the rows that change their cell are counted. A sum over many cells needs few
    repetitions.

    Returns:
        The fraction of rows that noise is expected to put into wrong cells. None for attributes that were never
        measured together: that the model's answer about them is steady does not make it right.
    """
    names, model = synthesis.domain.names, synthesis.model
    measured = {pair for m in synthesis.measurements for size in (1, 2) for pair in combinations(m.clique, size)}
    refits = synthesis.refits(_REFITS, _EFFORT)
    cliques: list[Clique] = [*((name,) for name in names), *combinations(names, 2)]
    return {clique: _misplaced(model, refits, clique) if clique in measured else None for clique in cliques}


def _misplaced(model: GraphicalModel, refits: Sequence[GraphicalModel], clique: Clique) -> float:
    """Half a sum of absolute differences counts the rows that change their cell."""
    expected = model.project(clique) / model.total
    return float(np.mean([np.abs(again.project(clique) / again.total - expected).sum() / 2 for again in refits]))


# The model


def model_edges(model: GraphicalModel) -> list[Edge]:
    """The pairs inside the model's cliques, strongest first."""
    pairs = {pair for clique in (*model.potentials, *model.off_tree) for pair in combinations(clique, 2)}
    edges = [Edge(*pair, mutual_information(model.project(pair))) for pair in sorted(pairs)]
    return sorted(edges, key=lambda edge: -edge.bits)


def mutual_information(counts: Floats) -> float:
    """In bits, of a table of counts with two axes."""
    joint = counts / counts.sum()
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    is_there = (joint > 0) & (apart > 0)
    return max(0.0, float((joint[is_there] * np.log2(joint[is_there] / apart[is_there])).sum()))
