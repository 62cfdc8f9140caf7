"""Values that the model takes as one: it learns how groups of them depend on the rest, and shares rows out within."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ppsyn.arrays import Floats, Ints
from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.errors import InvariantError
from ppsyn.generation.sampling import Step
from ppsyn.privacy.partition import Partition, number_groups

_T = TypeVar("_T", np.int32, np.float64)


@dataclass(frozen=True, eq=False)
class Folded:
    """An attribute whose values stand in groups.

    Attributes:
        groups: The group of each value.
        shares: Each value's share of its group's rows, whatever the row's other attributes are.
    """

    groups: Partition
    shares: Floats

    def __post_init__(self) -> None:
        """Refuse shares that lose or make rows."""
        sums = self.groups.sum_expected(self.shares)
        if self.shares.shape != self.groups.groups.shape or self.shares.min() < 0 or not np.allclose(sums, 1.0):
            raise InvariantError("Expected the shares of each group to be non-negative and to sum to one.")

    @cached_property
    def firsts(self) -> Ints:
        """A value of each group."""
        return np.unique(self.groups.groups, return_index=True)[1]


@dataclass(frozen=True, eq=False)
class Fold:
    """How the table's domain becomes the smaller one that the model lives on. By default they are the same.

    A marginal of the model is *inner*: over groups of values. The table's own is over values.
    """

    domain: Domain
    folded: Mapping[str, Folded] = field(default_factory=dict[str, Folded])

    @cached_property
    def inner(self) -> Domain:
        """The attributes as the model has them."""
        return Domain(tuple(map(self._inner, self.domain.attributes)))

    def _inner(self, attribute: Attribute) -> Attribute:
        folded = self.folded.get(attribute.name)
        return attribute if folded is None else replace(attribute, size=folded.groups.count)

    def spread(self, clique: Clique, inner: NDArray[_T]) -> NDArray[_T]:
        """A table over the values of a marginal, from one over its groups: each value gets its group's entry."""
        for axis, name in enumerate(clique):
            if (folded := self.folded.get(name)) is not None:
                inner = inner.take(folded.groups.groups, axis)
        return inner

    def expand(self, clique: Clique, inner: Floats) -> Floats:
        """The table's marginal that an inner one stands for."""
        counts = self.spread(clique, inner)
        for axis, name in enumerate(clique):
            if (folded := self.folded.get(name)) is not None:
                counts = counts * folded.shares.reshape([-1 if other == axis else 1 for other in range(len(clique))])
        return counts

    def lift(self, clique: Clique, partition: Partition) -> Partition:
        """A partition of an inner marginal, as one of the table's."""
        if not self._touches(clique):
            return partition
        groups = self.spread(clique, partition.groups.reshape(self.inner.shape(clique)))
        return Partition(groups.ravel(), partition.count, partition.axes)

    def lower(self, clique: Clique, partition: Partition) -> Partition:
        """The partition that `lift` gave this one for.

        Raises:
            InvariantError: If it parts what the fold holds together.
        """
        if not self._touches(clique):
            return partition
        groups = partition.groups.reshape(self.domain.shape(clique))
        for axis, name in enumerate(clique):
            if (folded := self.folded.get(name)) is not None:
                groups = groups.take(folded.firsts, axis)
        lowered = Partition(np.ascontiguousarray(groups.ravel()), partition.count, partition.axes)
        if not np.array_equal(self.lift(clique, lowered).groups, partition.groups):
            raise InvariantError("A measurement parts values that the model takes as one.")
        return lowered

    def _touches(self, clique: Clique) -> bool:
        return any(name in self.folded for name in clique)

    @cached_property
    def drawn(self) -> Domain:
        """The attributes that generation makes: the table's, and the groups from which folded ones are drawn."""
        hidden = (replace(self.inner[name], name=self.hidden(name)) for name in self.folded)
        return Domain((*self.domain.attributes, *hidden))

    def hidden(self, name: str) -> str:
        """What generation calls the groups of an attribute: a name that no attribute has."""
        if name not in self.folded:
            return name
        return name + "'" * (1 + max(map(len, self.domain.names)))

    def unfolding(self) -> tuple[Step, ...]:
        """The steps that draw values, given their groups."""
        return tuple(
            Step((self.hidden(name),), (name,), np.where(_is_member(folded.groups), folded.shares, 0.0))
            for name, folded in self.folded.items()
        )


def _is_member(groups: Partition) -> NDArray[np.bool_]:
    return np.arange(groups.count)[:, None] == groups.groups


def equal_mass(expected: Floats, most: int) -> Partition:
    """Neighbouring values in at most `most` groups of about equal mass; a value with more than that stands alone."""
    labels = np.zeros(expected.size, np.int32)
    left, groups_left, mass = float(expected.sum()), most, 0.0
    for value, rows in enumerate(expected.tolist()):
        if value and groups_left > 1 and mass + rows / 2 > left / groups_left:
            left, groups_left, mass = left - mass, groups_left - 1, 0.0
        labels[value] = most - groups_left
        mass += rows
    return number_groups(labels)


def fold_values(expected: Floats, groups: Partition) -> Folded:
    """Fold an attribute; rows are shared out within a group as the model has them, or evenly where it has none."""
    sums = groups.sum_expected(expected)[groups.groups]
    sizes = np.bincount(groups.groups, minlength=groups.count)[groups.groups]
    shares = np.divide(expected, sums, out=1.0 / sizes, where=sums > 0)
    return Folded(groups, shares)
