"""Marginals that the tree has no room for: known beside it, and brought into the rows by swaps.

A pair of attributes that would make the junction tree pass its cap is a small table by itself.
"""

from collections.abc import Mapping

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.domain import Clique

_CYCLES = 3
"""How often a marginal is scaled to several tables in turn; they nearly agree, so more change little."""


def reconcile(clique: Clique, table: Floats, off_tree: Mapping[Clique, Floats]) -> Floats:
    """The marginal, brought into agreement with the off-tree ones it contains; its total stays."""
    parts = {part: wanted for part, wanted in off_tree.items() if set(part) <= set(clique)}
    return parts[clique] if clique in parts else fit_proportionally(clique, table, parts)


def fit_proportionally(clique: Clique, table: Floats, parts: Mapping[Clique, Floats]) -> Floats:
    """The marginal, scaled to smaller ones in turn (iterative proportional fitting); its total stays.

    Cells without rows stay without. Where nothing is left that way, the parts contradict it, and it stays as it is.
    """
    if not parts:
        return table
    found = table
    for part, wanted in (*parts.items(),) * (_CYCLES if len(parts) > 1 else 1):
        sums: Floats = found.sum(axis=_others(clique, part), keepdims=True)
        found = found * np.divide(wanted.reshape(sums.shape), sums, out=np.zeros(sums.shape), where=sums > 0)
    left = found.sum()
    return found * (table.sum() / left) if left > 0 else table


def singles(clique: Clique, table: Floats) -> dict[Clique, Floats]:
    """What a marginal says of each of its attributes alone."""
    return {(name,): table.sum(axis=_others(clique, (name,))) for name in clique}


def _others(clique: Clique, part: Clique) -> tuple[int, ...]:
    return tuple(axis for axis, name in enumerate(clique) if name not in part)
