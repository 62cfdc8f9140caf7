"""Partitions of one marginal, each one group larger or smaller than the last.

The order of the merges (Algorithm 3) and of the splits (Algorithm 4) depends on
the reconstruction error alone, so a sequence is computed once and a budget only
chooses where to stop ("skill to improve efficiency").
"""

import math
from dataclasses import dataclass

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.mechanisms.base import NOISE_L1
from ppsyn.privacy.partition import Partition, number_groups


@dataclass(frozen=True, slots=True, eq=False)
class PartitionSequence:
    """Nested partitions: every group of every one is a run of the same list of cells."""

    order: Codes
    """The cells, so listed that groups are runs."""
    cuts: Ints
    """Positions of `order` where runs begin; a partition of k groups uses the first k - 1."""
    sizes: Ints
    """|P_t|: the number of groups of each partition."""
    errors: Floats
    """RE_t: L1 distance of the counts from each group's count spread evenly over its cells."""

    def partition_at(self, index: int) -> Partition:
        """The partition P_t with t = `index`."""
        begins = np.zeros(self.order.size, np.int32)
        begins[self.cuts[: self.sizes[index] - 1]] = 1
        labels = np.empty_like(begins)
        labels[self.order] = np.cumsum(begins)
        return number_groups(labels)


def required_rho(sizes: Ints, tolerance: float, errors: Floats) -> Floats:
    """The zCDP budget at which noise and reconstruction error together come to `tolerance`.

    |P|^2 / (pi (eta Contr - RE)^2), with tolerance = eta * Contr (Algorithms 3 and
    4); infinite when the reconstruction error alone takes up the tolerance.
    """
    slack = tolerance - errors
    with np.errstate(over="ignore"):
        ratio = np.divide(sizes, slack, out=np.full(slack.shape, np.inf), where=slack > 0)
        return ratio**2 / math.pi


def stopping_point(sequence: PartitionSequence, tolerance: float) -> int:
    """The index at which Algorithm 3 or 4 stops: the next partition would require more budget.

    If no partition meets the tolerance, the one with the least error.
    """
    rho = required_rho(sequence.sizes, tolerance, sequence.errors)
    if np.isinf(rho).all():
        return int(np.argmin(sequence.errors))
    rises = np.flatnonzero(rho[1:] > rho[:-1])
    return int(rises[0]) if rises.size else rho.size - 1


def least_total_error(sequence: PartitionSequence, sigma: float) -> int:
    """The index of the partition with the least bound on its error under noise of scale `sigma`.

    RE + sqrt(2/pi) sigma |P|, the bound of the paper's theorem on a noisy marginal
    with a partition; the fewest groups among equals. With rho = 1 / (2 sigma^2) it
    is the smallest tolerance that any partition meets at this budget, and for that
    tolerance the partition returned requires the least budget.
    """
    totals = sequence.errors + NOISE_L1 * sigma * sequence.sizes
    return int(np.lexsort((sequence.sizes, totals))[0])
