"""Distances between marginals of two tables, as private as the tables."""

from collections.abc import Sequence

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Clique


def workload_error(private_table: EncodedTable, synthetic: EncodedTable, workload: Sequence[Clique]) -> float:
    """Mean total variation distance over the workload's marginals. Private."""
    real, made = TableCounter(private_table), TableCounter(synthetic)
    return float(np.mean([total_variation(real.counts(clique), made.counts(clique)) for clique in workload]))


def total_variation(left: Ints, right: Ints) -> float:
    """The share of rows that would have to change their cell, where both tables count the same cells."""
    return float(0.5 * np.abs(left / max(1, left.sum()) - right / max(1, right.sum())).sum())
