"""How far a marginal of the model may be trusted: what the added noise is expected to make of it.

A marginal is told by every measurement that contains it. Summed to the marginal's cells, in the proportions
that the model gives to cells of one group, a measurement tells each cell with a standard deviation that follows
from its noise scale; several tell it together, by inverse variance. The fit does at least about as well: it
reconciles these with all the others. Where no measurement contains the marginal there is no such figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.domain import Clique
from ppsyn.model.graphical import GraphicalModel
from ppsyn.model.program import Measurement, cell_index

_MEAN_ABSOLUTE = (2 / np.pi) ** 0.5
"""Of a normal variable, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What is expected of a marginal.

    Attributes:
        misplaced: The share of rows that noise is expected to put into wrong cells; None if the attributes
            were never measured together.
    """

    clique: Clique
    misplaced: float | None


def trusts(model: GraphicalModel, measurements: Sequence[Measurement]) -> list[Trust]:
    """Of every attribute and every pair, in the domain's order."""
    names = model.domain.names
    cliques = [*((name,) for name in names), *combinations(names, 2)]
    return [Trust(clique, expected_error(model, measurements, clique)) for clique in cliques]


def expected_error(model: GraphicalModel, measurements: Sequence[Measurement], clique: Clique) -> float | None:
    """The share of rows that noise is expected to put into wrong cells of a marginal, if it was measured."""
    telling = [m for m in measurements if set(clique) <= set(m.clique)]
    if not telling:
        return None
    precision = sum((_precision(model, m, clique) for m in telling), np.zeros(model.domain.size(clique)))
    deviations = np.divide(1.0, np.sqrt(precision), out=np.zeros_like(precision), where=np.isfinite(precision))
    # Half the sum of absolute errors is the number of rows to be moved; no cell can be wrong by all rows.
    return min(1.0, float(_MEAN_ABSOLUTE * deviations.sum()) / (2 * model.total))


def _precision(model: GraphicalModel, measurement: Measurement, clique: Clique) -> Floats:
    """One over the variance with which a measurement tells each cell; infinite where the model has no rows."""
    expected = model.project(measurement.clique).ravel()
    partition = measurement.partition
    sums = partition.sum_expected(expected)[partition.groups]
    parts = np.divide(expected, sums, out=np.zeros_like(expected), where=sums > 0)
    cells = cell_index(model.domain, measurement.clique, clique).astype(np.int64)
    keys, inverse = np.unique(cells * partition.count + partition.groups, return_inverse=True)
    weights = np.bincount(inverse, weights=parts)
    squares = np.bincount(keys // partition.count, weights=weights**2, minlength=model.domain.size(clique))
    with np.errstate(divide="ignore"):
        return 1 / (squares * measurement.sigma**2)
