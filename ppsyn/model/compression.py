"""Domain compression: the model learns how groups of values depend on the rest, and shares rows out within a group."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ppsyn.arrays import Floats, Ints
from ppsyn.domain import Attribute, Clique, Domain, Zeros
from ppsyn.errors import InvariantError
from ppsyn.generation.sampling import Step
from ppsyn.privacy.partition import Partition, number_groups

_T = TypeVar("_T", np.int32, np.float64, np.bool_)


@dataclass(frozen=True, eq=False)
class CompressedAttribute:
    """An attribute whose values are merged into groups.

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
class Compression:
    """How the table's domain becomes the smaller one that the model lives on. By default they are the same.

    A *compressed* marginal, as the model has it, is over groups of values. The table's own is over values.
    """

    domain: Domain
    attributes: Mapping[str, CompressedAttribute] = field(default_factory=dict[str, CompressedAttribute])

    def __post_init__(self) -> None:
        """Refuse groups of values that a rule tells apart."""
        for zeros, compressed in zip(self.domain.zeros, self.model_domain.zeros, strict=True):
            if not np.array_equal(self.spread(zeros.clique, compressed.allowed), zeros.allowed):
                raise InvariantError(
                    f"Expected values that the rule {zeros.rule!r} tells apart in groups of their own."
                )

    @cached_property
    def model_domain(self) -> Domain:
        """The attributes as the model has them."""
        return Domain(tuple(map(self._compress, self.domain.attributes)), tuple(map(self._zeros, self.domain.zeros)))

    def _zeros(self, zeros: Zeros) -> Zeros:
        if not self._touches(zeros.clique):
            return zeros
        return replace(zeros, allowed=self._firsts(zeros.clique, zeros.allowed))

    def _compress(self, attribute: Attribute) -> Attribute:
        compressed = self.attributes.get(attribute.name)
        return attribute if compressed is None else replace(attribute, size=compressed.groups.count)

    def spread(self, clique: Clique, compressed: NDArray[_T]) -> NDArray[_T]:
        """A table over the values of a marginal, from one over its groups: each value gets its group's entry."""
        for axis, name in enumerate(clique):
            if (attribute := self.attributes.get(name)) is not None:
                compressed = compressed.take(attribute.groups.groups, axis)
        return compressed

    def expand(self, clique: Clique, compressed: Floats) -> Floats:
        """The table's marginal that a compressed one stands for."""
        counts = self.spread(clique, compressed)
        for axis, name in enumerate(clique):
            if (attribute := self.attributes.get(name)) is not None:
                counts = counts * attribute.shares.reshape([-1 if other == axis else 1 for other in range(len(clique))])
        return counts

    def to_full(self, clique: Clique, partition: Partition) -> Partition:
        """A partition of a compressed marginal, as one of the table's."""
        if not self._touches(clique):
            return partition
        groups = self.spread(clique, partition.groups.reshape(self.model_domain.shape(clique)))
        return Partition(groups.ravel(), partition.count, partition.axes)

    def to_compressed(self, clique: Clique, partition: Partition) -> Partition:
        """The partition that `to_full` gave this one for.

        Raises:
            InvariantError: If it splits a group of values.
        """
        if not self._touches(clique):
            return partition
        groups = self._firsts(clique, partition.groups.reshape(self.domain.shape(clique)))
        found = Partition(np.ascontiguousarray(groups.ravel()), partition.count, partition.axes)
        if not np.array_equal(self.to_full(clique, found).groups, partition.groups):
            raise InvariantError("A measurement splits a group of values that the model takes as one.")
        return found

    def _firsts(self, clique: Clique, table: NDArray[_T]) -> NDArray[_T]:
        """Of a table over values the entry of one value of each group."""
        for axis, name in enumerate(clique):
            if (attribute := self.attributes.get(name)) is not None:
                table = table.take(attribute.firsts, axis)
        return table

    def holds(self, clique: Clique, partition: Partition) -> bool:
        """Whether the partition splits no group of values."""
        if not self._touches(clique):
            return True
        groups = partition.groups.reshape(self.domain.shape(clique))
        for axis, name in enumerate(clique):
            if (attribute := self.attributes.get(name)) is not None:
                groups = groups.take(attribute.firsts[attribute.groups.groups], axis)
        return np.array_equal(groups.ravel(), partition.groups)

    def _touches(self, clique: Clique) -> bool:
        return any(name in self.attributes for name in clique)

    @cached_property
    def generation_domain(self) -> Domain:
        """The attributes that generation makes: the table's, and the groups from which compressed ones are drawn."""
        groups = (replace(self.model_domain[name], name=self.group_name(name)) for name in self.attributes)
        return Domain((*self.domain.attributes, *groups))

    def group_name(self, name: str) -> str:
        """What generation calls the groups of an attribute: a name that no attribute has."""
        if name not in self.attributes:
            return name
        return name + "'" * (1 + max(map(len, self.domain.names)))

    def expansion_steps(self) -> tuple[Step, ...]:
        """The steps that draw values, given their groups."""
        return tuple(
            Step((self.group_name(name),), (name,), np.where(_is_member(compressed.groups), compressed.shares, 0.0))
            for name, compressed in self.attributes.items()
        )


def _is_member(groups: Partition) -> NDArray[np.bool_]:
    return np.arange(groups.count)[:, None] == groups.groups


def equal_mass_groups(expected: Floats, most: int) -> Partition:
    """Neighbouring values in at most `most` groups of about equal mass; a value with more than that stands alone."""
    labels = np.zeros(expected.size, np.int32)
    left, groups_left, mass = float(expected.sum()), most, 0.0
    for value, rows in enumerate(expected.tolist()):
        if value and groups_left > 1 and mass + rows / 2 > left / groups_left:
            left, groups_left, mass = left - mass, groups_left - 1, 0.0
        labels[value] = most - groups_left
        mass += rows
    return number_groups(labels)


def compress_attribute(expected: Floats, groups: Partition) -> CompressedAttribute:
    """Compress an attribute; rows are shared out within a group as the model expects them, or evenly."""
    sums = groups.sum_expected(expected)[groups.groups]
    sizes = np.bincount(groups.groups, minlength=groups.count)[groups.groups]
    shares = np.divide(expected, sums, out=1.0 / sizes, where=sums > 0)
    return CompressedAttribute(groups, shares)
