"""How far a synthetic table is from the real one. Every result here is private: it reads the real table."""

from collections.abc import Sequence

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.discretize import EncodedTable
from ppsyn.domain import Clique
from ppsyn.marginals import TableCounter


def workload_error(private_table: EncodedTable, synthetic: EncodedTable, workload: Sequence[Clique]) -> float:
    """Mean total variation distance over the workload's marginals. Private."""
    real, made = TableCounter(private_table), TableCounter(synthetic)
    return float(np.mean([_total_variation(real.counts(clique), made.counts(clique)) for clique in workload]))


def _total_variation(left: Ints, right: Ints) -> float:
    return float(0.5 * np.abs(left / max(1, left.sum()) - right / max(1, right.sum())).sum())
