"""A noisy answer about one marginal: what the model is fitted to."""

import math
from dataclasses import dataclass

from ppsyn.arrays import Floats, Ints
from ppsyn.domain import Clique
from ppsyn.privacy.partition import Partition
from ppsyn.privacy.residuals import UNIT, centred, degrees


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Noisy group counts of one marginal, or residuals of them where they form a grid: a released value.

    Attributes:
        noisy_counts: As they were drawn, with `sigma` the scale of their noise.
        is_off_tree: Whether the tree has no room for the marginal, which is then known beside it.
    """

    clique: Clique
    partition: Partition
    noisy_counts: Ints
    sigma: float
    is_off_tree: bool = False

    @property
    def target(self) -> Floats:
        """What a fit should reproduce of the group counts; of a grid, up to what its residuals leave out."""
        return self.noisy_counts / self.unit

    @property
    def scale(self) -> float:
        """How closely a fit should reproduce it: the standard deviation in every direction that was measured."""
        return self.sigma / self.unit

    @property
    def count_sigma(self) -> float:
        """The standard deviation of the noise on what was learned about each group's count."""
        axes = self.partition.axes
        return self.sigma / self.unit * (math.sqrt(degrees(axes) / self.partition.count) if axes else 1.0)

    def difference(self, expected: Floats) -> Floats:
        """How far the answer as drawn is from expected group counts; of a grid, in its residuals."""
        return self.contrast(self.noisy_counts / self.unit - expected)

    def contrast(self, difference: Floats) -> Floats:
        """The part of a difference of group counts that was measured."""
        return centred(difference, self.partition.axes) if self.partition.axes else difference

    @property
    def unit(self) -> float:
        """What stands for one row in the answer as drawn."""
        return unit_of(self.partition)


def unit_of(partition: Partition) -> float:
    """What stands for one row in an answer about the groups."""
    return float(UNIT * partition.count) if partition.axes else 1.0
