"""PPSyn as its paper prints it: NOT differentially private.

Partitions, budgets and scores are computed from the true counts and used in the open
(Algorithms 1 to 4 of "Partition-based differentially private synthetic data
generation"), so what this returns can tell two neighbouring tables apart with
certainty. It exists to be compared with, on tables whose privacy does not matter. No
release can reach it: an import contract keeps it to the benchmarks.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.benchmark.paper.merge_split import merge_sequence, split_sequence
from ppsyn.benchmark.paper.sequence import PartitionSequence, required_rho, stopping_point
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Clique, Domain
from ppsyn.model.compression import Compression
from ppsyn.model.estimation import Effort, fit
from ppsyn.model.graphical_model import GraphicalModel, uniform_model
from ppsyn.model.junction_tree import interaction_graph
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition, finest

_ROUND, _FINAL = Effort(100, 1e-4), Effort(400, 1e-5)
_MOST_ROUNDS = 500
"""A run of tiny measurements would otherwise go on for very long."""


@dataclass(frozen=True, slots=True)
class PrintedSettings:
    """The paper's hyper-parameters, and a cap on the model."""

    rho: float
    rounds: int = 60
    eta: float = 0.7
    model_mb: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class NotPrivateChoice:
    """A marginal with the partition and the budget that its TRUE counts demand."""

    clique: Clique
    partition: Partition
    rho: float
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class NotPrivateModel:
    """A fitted model that carries no privacy guarantee.

    Attributes:
        rho_claimed: What the paper's accounting would call spent; the last round may pass the budget.
    """

    model: GraphicalModel
    rho_claimed: float
    choices: tuple[NotPrivateChoice, ...]


@dataclass(slots=True)
class _Table:
    """The true counts, and the partition sequences computed from them once."""

    domain: Domain
    counter: TableCounter
    sequences: dict[Clique, PartitionSequence] = field(default_factory=dict[Clique, PartitionSequence])

    def counts(self, clique: Clique) -> Floats:
        return self.counter.counts(clique).astype(np.float64)

    def sequence(self, clique: Clique) -> PartitionSequence:
        if clique not in self.sequences:
            counts = self.counts(clique).reshape(self.domain.shape(clique))
            self.sequences[clique] = merge_sequence(counts) if len(clique) == 1 else split_sequence(counts, counts.size)
        return self.sequences[clique]


def fit_not_private(
    table: EncodedTable, workload: tuple[Clique, ...], settings: PrintedSettings, rng: np.random.Generator
) -> NotPrivateModel:
    """Run Algorithm 1 as printed. The result is not private."""
    domain, truth = table.domain, _Table(table.domain, TableCounter(table))
    measurements = _one_way(truth, 0.1 * settings.rho, rng)
    model = fit(measurements, uniform_model(Compression(domain)), _ROUND).model
    used, select_rho, choices = 0.1 * settings.rho, 0.1 * settings.rho / settings.rounds, list[NotPrivateChoice]()
    while used < settings.rho and len(choices) < _MOST_ROUNDS:
        options = not_private_choices(truth, model, workload, settings, tuple(m.clique for m in measurements))
        if not options:
            break
        # The paper names no sensitivity; like it, this takes the score as if one row moved it by one.
        scores = np.array([option.score for option in options])
        noisy = scores * math.sqrt(8 * select_rho) / 2 + rng.gumbel(size=scores.size)
        choice = options[int(np.argmax(noisy))]
        measurements.append(_spread(truth, choice, rng))
        model = fit(measurements, model, _ROUND).model
        used += choice.rho + select_rho
        choices.append(choice)
    return NotPrivateModel(fit(measurements, model, _FINAL).model, used, tuple(choices))


def true_table(table: EncodedTable) -> _Table:
    """The true counts that the choices are computed from."""
    return _Table(table.domain, TableCounter(table))


def not_private_choices(
    truth: _Table,
    model: GraphicalModel,
    workload: tuple[Clique, ...],
    settings: PrintedSettings,
    measured: tuple[Clique, ...] = (),
) -> list[NotPrivateChoice]:
    """Algorithm 2 up to its draw: every marginal's partition, budget and score, from the TRUE counts."""
    graph, options = interaction_graph(model.domain, measured), list[NotPrivateChoice]()
    for clique in workload:
        if graph.with_clique(clique).model_mb() > settings.model_mb:
            continue
        contribution = float(np.abs(truth.counts(clique) - model.project(clique).ravel()).sum())
        sequence, tolerance = truth.sequence(clique), settings.eta * contribution
        stop = stopping_point(sequence, tolerance)
        rho = float(required_rho(sequence.sizes[stop : stop + 1], tolerance, sequence.errors[stop : stop + 1])[0])
        if math.isfinite(rho) and rho > 0:
            options.append(NotPrivateChoice(clique, sequence.partition_at(stop), rho, contribution / rho))
    return options


def _one_way(truth: _Table, rho: float, rng: np.random.Generator) -> list[Measurement]:
    sizes = np.array([attribute.size for attribute in truth.domain.attributes], float)
    shares = rho * sizes ** (2 / 3) / (sizes ** (2 / 3)).sum()
    measured: list[Measurement] = []
    for attribute, share in zip(truth.domain.attributes, shares.tolist(), strict=True):
        clique, sigma = (attribute.name,), 1 / math.sqrt(2 * share)
        noisy = truth.counts(clique) + rng.normal(0, sigma, attribute.size)
        measured.append(Measurement(clique, finest(attribute.size), np.rint(noisy).astype(np.int64), sigma))
    return measured


def _spread(truth: _Table, choice: NotPrivateChoice, rng: np.random.Generator) -> Measurement:
    """Noise on the groups, then Est: the count of a group spread evenly over its cells."""
    sigma = 1 / math.sqrt(2 * choice.rho)
    groups = choice.partition.sum_expected(truth.counts(choice.clique))
    cells = choice.partition.spread_evenly(groups + rng.normal(0, sigma, groups.size))
    return Measurement(choice.clique, finest(choice.partition.cells), np.rint(cells).astype(np.int64), sigma)
