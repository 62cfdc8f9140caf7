"""Fit the model to noisy measurements: the Private-PGM estimator, or mbi's by name."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ppsyn.arrays import Flags, Floats
from ppsyn.domain import Clique, Domain
from ppsyn.errors import InvariantError
from ppsyn.extras import require
from ppsyn.model import kernel
from ppsyn.model.compression import Compression
from ppsyn.model.graphical_model import (
    ZERO,
    GraphicalModel,
    flatten,
    forbid,
    unflatten,
    uniform_model,
    with_zeros,
)
from ppsyn.model.inference_plan import build, flat, unflat
from ppsyn.model.junction_tree import junction_tree
from ppsyn.model.measurement import Measurement
from ppsyn.model.off_tree import fit_proportionally, singles
from ppsyn.privacy.partition import finest

_SURER = 4.0
"""How much more closely than its measurements an off-tree marginal keeps the single attributes that the tree knows."""

_LEAST = 1e-9
"""Rows in a cell that the tree takes for empty, so that an off-tree marginal may still have some there."""


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
    compression = warm.compression
    if not measurements:
        return Fit(uniform_model(compression), 0.0, 0)
    compressed = [m for m in compress_measurements(compression, measurements) if not m.is_off_tree]
    total = estimate_total(compressed)
    cliques = with_zeros(compression.model_domain, (m.clique for m in compressed))
    tree = junction_tree(compression.model_domain, cliques)
    program = build(tree, cliques, compressed)
    theta = _carried_over(compression.model_domain, cliques, warm)
    step = warm.step if warm.step > 0 else 1.0 / total
    theta, beliefs, loss, step, taken = kernel.descend(program, theta, total, step, effort.iterations, effort.tolerance)
    if not (math.isfinite(loss) or warm.is_blank):
        # Old potentials that met in a new tree and underflowed there: start afresh.
        return fit(measurements, uniform_model(compression), effort)
    potentials = dict(zip(cliques, unflatten(compression.model_domain, cliques, theta), strict=True))
    model = GraphicalModel(
        compression.domain,
        potentials,
        total,
        step,
        tree,
        unflatten(compression.model_domain, tree.nodes, beliefs),
        compression,
    )
    return Fit(fit_off_tree(model, measurements, effort), loss, taken)


def fit_off_tree(tree: GraphicalModel, measurements: Sequence[Measurement], effort: Effort) -> GraphicalModel:
    """The model of a fitted tree and of what was measured beside it."""
    compressed, off_tree = compress_measurements(tree.compression, measurements), dict[Clique, Floats]()
    for clique in sorted({m.clique for m in compressed if m.is_off_tree}):
        measured = [m for m in compressed if m.clique == clique]
        domain = Domain(tuple(tree.compression.model_domain[name] for name in clique))
        off_tree[clique] = _fit_table(domain, tree.project_compressed(clique), tree.possible(clique), measured, effort)
    return replace(tree, off_tree=off_tree)


def _fit_table(
    domain: Domain, expected: Floats, possible: Flags, measured: Sequence[Measurement], effort: Effort
) -> Floats:
    """What was measured of all attributes of a domain together, and else what was expected.

    Of all tables that fit as well, mirror descent ends at the one nearest to where it starts, in relative entropy.
    Single attributes stay as expected: the tree knows them from more than these measurements.
    """
    clique, alone = domain.names, singles(domain.names, expected)
    sigma = min(m.scale for m in measured) / _SURER
    known = [Measurement(one, finest(s.size), np.rint(s).astype(np.int64), sigma) for one, s in alone.items()]
    program, total = build(junction_tree(domain, (clique,)), (clique,), [*measured, *known]), float(expected.sum())
    theta = flat(np.where(possible, np.log(np.maximum(expected, _LEAST)), ZERO))
    _, beliefs, *_ = kernel.descend(program, theta, total, 1.0 / total, effort.iterations, effort.tolerance)
    return fit_proportionally(clique, unflat(beliefs, expected.shape), alone)


def compress_measurements(compression: Compression, measurements: Sequence[Measurement]) -> list[Measurement]:
    """The measurements as those of the model's own marginals."""
    return [replace(m, partition=compression.to_compressed(m.clique, m.partition)) for m in measurements]


def _carried_over(domain: Domain, cliques: tuple[Clique, ...], warm: GraphicalModel) -> Floats:
    """The warm model's potentials on the new cliques, each old one added to a clique that holds it."""
    potentials = {clique: np.zeros(domain.shape(clique)) for clique in cliques}
    for old, table in warm.potentials.items():
        new = next((clique for clique in cliques if set(old) <= set(clique)), None)
        if new is None:
            raise InvariantError("Expected a warm start whose cliques are all measured.")
        potentials[new] += table.reshape([domain[name].size if name in old else 1 for name in new])
    return flatten(cliques, {clique: forbid(domain, clique, table) for clique, table in potentials.items()})


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
