"""Fit the model to noisy measurements: the Private-PGM estimator, or mbi's by name."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.domain import Clique, Domain, maximal
from ppsyn.errors import InvariantError
from ppsyn.extras import require
from ppsyn.model import kernel
from ppsyn.model.fold import Fold
from ppsyn.model.graphical_model import GraphicalModel, flatten, unfitted, unflatten
from ppsyn.model.inference_plan import build, flat, unflat
from ppsyn.model.junction_tree import junction_tree
from ppsyn.model.measurement import Measurement
from ppsyn.model.off_tree import scaled, singles
from ppsyn.privacy.partition import finest

_SURER = 4.0
"""How much more closely than its measurements a loose marginal keeps the single attributes that the tree knows."""

_LEAST = 1e-9
"""Rows in a cell that the tree takes for empty, so that a loose marginal may still have some there."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard a fit tries.

    Attributes:
        iterations: Steps at most.
        tolerance: Relative gain of a step below which the fit counts as stalled.
    """

    iterations: int
    tolerance: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model and how the fit went."""

    model: GraphicalModel
    loss: float
    iterations: int


def estimate_total(measurements: Sequence[Measurement]) -> float:
    """The number of rows, from all measurements that tell it, by inverse variance; at least one."""
    measurements = [m for m in measurements if not m.partition.axes]
    if not measurements:
        return 1.0
    weights = np.array([1 / (m.sigma**2 * m.partition.count) for m in measurements])
    sums = np.array([float(m.noisy_counts.sum()) for m in measurements])
    return max(1.0, float((weights * sums).sum() / weights.sum()))


def fit(measurements: Sequence[Measurement], warm: GraphicalModel, effort: Effort) -> Fit:
    """Minimise the weighted squared residuals over the model's distributions.

    Deterministic: equal measurements, warm start and effort give equal bits.

    Args:
        measurements: Of the table's marginals; they part no values that the model takes as one.
        warm: Where to start, and which values the model takes as one.
        effort: How hard to try.
    """
    fold = warm.fold
    if not measurements:
        return Fit(unfitted(fold), 0.0, 0)
    inner = [m for m in lowered(fold, measurements) if not m.is_loose]
    total = estimate_total(inner)
    cliques = maximal(m.clique for m in inner)
    tree = junction_tree(fold.inner, cliques)
    program = build(tree, cliques, inner)
    theta = _carried_over(fold.inner, cliques, warm)
    step = warm.step if warm.step > 0 else 1.0 / total
    theta, beliefs, loss, step, taken = kernel.descend(program, theta, total, step, effort.iterations, effort.tolerance)
    if warm.potentials and not math.isfinite(loss):
        # Old potentials that met in a new tree and underflowed there: start afresh.
        return fit(measurements, unfitted(fold), effort)
    potentials = dict(zip(cliques, unflatten(fold.inner, cliques, theta), strict=True))
    model = GraphicalModel(fold.domain, potentials, total, step, tree, unflatten(fold.inner, tree.nodes, beliefs), fold)
    return Fit(loosened(model, measurements, effort), loss, taken)


def loosened(tree: GraphicalModel, measurements: Sequence[Measurement], effort: Effort) -> GraphicalModel:
    """The model of a fitted tree and of what was measured beside it."""
    inner, loose = lowered(tree.fold, measurements), dict[Clique, Floats]()
    for clique in sorted({m.clique for m in inner if m.is_loose}):
        told = [m for m in inner if m.clique == clique]
        domain = Domain(tuple(tree.fold.inner[name] for name in clique))
        loose[clique] = _fit_table(domain, tree.project_inner(clique), told, effort)
    return replace(tree, loose=loose)


def _fit_table(domain: Domain, expected: Floats, told: Sequence[Measurement], effort: Effort) -> Floats:
    """What was measured of all attributes of a domain together, and else what was expected.

    Of all tables that fit as well, mirror descent ends at the one nearest to where it starts, in relative entropy.
    Single attributes stay as expected: the tree knows them from more than these measurements.
    """
    clique, alone = domain.names, singles(domain.names, expected)
    sigma = min(m.scale for m in told) / _SURER
    known = [Measurement(one, finest(s.size), np.rint(s).astype(np.int64), sigma) for one, s in alone.items()]
    program, total = build(junction_tree(domain, (clique,)), (clique,), [*told, *known]), float(expected.sum())
    theta = flat(np.log(np.maximum(expected, _LEAST)))
    _, beliefs, *_ = kernel.descend(program, theta, total, 1.0 / total, effort.iterations, effort.tolerance)
    return scaled(clique, unflat(beliefs, expected.shape), alone)


def lowered(fold: Fold, measurements: Sequence[Measurement]) -> list[Measurement]:
    """The measurements as those of the model's own marginals."""
    return [replace(m, partition=fold.lower(m.clique, m.partition)) for m in measurements]


def _carried_over(domain: Domain, cliques: tuple[Clique, ...], warm: GraphicalModel) -> Floats:
    """The warm model's potentials on the new cliques, each old one added to a clique that holds it."""
    potentials = {clique: np.zeros(domain.shape(clique)) for clique in cliques}
    for old, table in warm.potentials.items():
        new = next((clique for clique in cliques if set(old) <= set(clique)), None)
        if new is None:
            raise InvariantError("Expected a warm start whose cliques are all measured.")
        potentials[new] += table.reshape([domain[name].size if name in old else 1 for name in new])
    return flatten(cliques, potentials)


class Engine(Protocol):
    """Fits a model to measurements, starting from `warm`. Deterministic."""

    def __call__(self, measurements: Sequence[Measurement], warm: GraphicalModel, effort: Effort) -> Fit:
        """Return the fitted model and how the fit went."""
        ...


def fit_with_mbi(measurements: Sequence[Measurement], warm: GraphicalModel, effort: Effort) -> Fit:
    """Fit with mbi's mirror descent: the reference. It compiles a program for every new set of cliques."""
    require("mbi", "The estimator 'mbi'")
    from ppsyn.model import mbi_adapter as exchange  # noqa: PLC0415  # JAX takes seconds to import; only this engine needs it

    return exchange.fit(measurements, warm, effort)


ENGINES: Mapping[str, Engine] = {"tree": fit, "mbi": fit_with_mbi}
