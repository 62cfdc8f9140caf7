"""How far a table of counts may be trusted: what the noise that was added for privacy makes of it.

The model is fitted again to its own answers under fresh noise of the same scales, as for the error bars of
`Synthesis.marginal`, and the rows that change their cell are counted. A sum over many cells needs few repetitions.
Attributes that were never measured together have no figure: that the model's answer about them is steady does not
make it right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ppsyn.domain import Clique
from ppsyn.model.estimation import Effort
from ppsyn.model.graphical_model import GraphicalModel
from ppsyn.synthesis import Synthesis

_REFITS, _EFFORT = 2, Effort(iterations=100, tolerance=1e-5)
"""About as dear as two rounds; 200 steps instead of 100 find errors of pairs that are larger by a seventh."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What is expected of a table of counts.

    Attributes:
        misplaced: The share of rows that noise is expected to put into wrong cells; None if the attributes
            were never measured together.
    """

    clique: Clique
    misplaced: float | None


def trusts(synthesis: Synthesis) -> list[Trust]:
    """Of every attribute and every pair, in the domain's order."""
    names, model = synthesis.domain.names, synthesis.model
    measured = {pair for m in synthesis.measurements for size in (1, 2) for pair in combinations(m.clique, size)}
    refits = synthesis.refits(_REFITS, _EFFORT)
    cliques: list[Clique] = [*((name,) for name in names), *combinations(names, 2)]
    return [Trust(clique, _misplaced(model, refits, clique) if clique in measured else None) for clique in cliques]


def _misplaced(model: GraphicalModel, refits: Sequence[GraphicalModel], clique: Clique) -> float:
    """Half a sum of absolute differences counts the rows that change their cell."""
    expected = model.project(clique) / model.total
    return float(np.mean([np.abs(again.project(clique) / again.total - expected).sum() / 2 for again in refits]))
