"""The public shape of an encoded table: ordered attributes with their sizes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

import numpy as np

from ppsyn.arrays import Codes, Flags
from ppsyn.errors import ConfigError, SchemaError
from ppsyn.schemas.table import TableSchema

Clique: TypeAlias = tuple[str, ...]
"""Attribute names in the domain's order."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One encoded column: codes 0 to size - 1."""

    name: str
    size: int
    is_ordered: bool = True
    """Whether neighbouring codes are neighbours in meaning."""


@dataclass(frozen=True, eq=False)
class Zeros:
    """Cells of a marginal in which there can be no row, by a rule of the schema: structural zeros.

    Attributes:
        rule: Its name.
        allowed: Which cells there can be rows in, one axis an attribute.
    """

    rule: str
    clique: Clique
    allowed: Flags

    def __post_init__(self) -> None:
        """Keep the cells as they are."""
        self.allowed.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        """Equal when they are those of one rule and the same cells."""
        return (
            isinstance(other, Zeros)
            and (self.rule, self.clique) == (other.rule, other.clique)
            and np.array_equal(self.allowed, other.allowed)
        )

    def __hash__(self) -> int:
        """Hash of the rule and the attributes."""
        return hash((self.rule, self.clique))


@dataclass(frozen=True)
class Domain:
    """The attributes of an encoded table, in the table's order, and the cells in which there can be no rows."""

    attributes: tuple[Attribute, ...]
    zeros: tuple[Zeros, ...] = ()

    def __post_init__(self) -> None:
        """Refuse duplicate names, empty attributes, and zeros of another shape than their attributes have."""
        if not self.attributes:
            raise SchemaError("Expected at least one attribute, got none.")
        if len(self._by_name) != len(self.attributes):
            raise SchemaError("Expected attribute names to differ from each other.")
        for attribute in self.attributes:
            if attribute.size < 1:
                raise SchemaError(f"Expected attribute {attribute.name!r} to have at least one value.")
        for zeros in self.zeros:
            if self.clique(zeros.clique) != zeros.clique or self.shape(zeros.clique) != zeros.allowed.shape:
                raise SchemaError(f"Expected the rule {zeros.rule!r} to be about the codes of attributes.")

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return {attribute.name: attribute for attribute in self.attributes}

    @cached_property
    def rank(self) -> dict[str, int]:
        """The position of each attribute."""
        return {attribute.name: position for position, attribute in enumerate(self.attributes)}

    @property
    def names(self) -> Clique:
        """All attribute names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    def __getitem__(self, name: str) -> Attribute:
        """Return the attribute called `name`."""
        return self._by_name[name]

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """The sizes of the clique's attributes."""
        return tuple(self._by_name[name].size for name in clique)

    def size(self, clique: Iterable[str]) -> int:
        """The number of cells of the clique's marginal."""
        return math.prod(self.shape(clique))

    def clique(self, names: Iterable[str]) -> Clique:
        """Bring names into the domain's order, or say which is unknown or repeated."""
        listed = tuple(names)
        for name in listed:
            if name not in self.rank:
                raise ConfigError(f"Expected attributes of the table, got {name!r}; it has {', '.join(self.names)}.")
        if len(set(listed)) != len(listed) or not listed:
            raise ConfigError(f"Expected distinct attributes, got {listed!r}.")
        return tuple(sorted(listed, key=self.rank.__getitem__))

    def allowed(self, clique: Clique) -> Flags | None:
        """The cells of a marginal that no rule about its attributes alone forbids; None where no rule is about them."""
        found: Flags | None = None
        for zeros in self.zeros:
            if set(zeros.clique) <= set(clique):
                part = zeros.allowed.reshape([self[name].size if name in zeros.clique else 1 for name in clique])
                found = np.broadcast_to(part, self.shape(clique)) if found is None else found & part
        return found

    def kinds(self, name: str) -> Codes | None:
        """Numbers codes of an attribute alike that no rule tells apart; None where no rule is about it."""
        slices = [
            np.moveaxis(zeros.allowed, zeros.clique.index(name), 0).reshape(self[name].size, -1)
            for zeros in self.zeros
            if name in zeros.clique
        ]
        if not slices:
            return None
        return np.unique(np.concatenate(slices, axis=1), axis=0, return_inverse=True)[1].astype(np.int32).ravel()


def non_constant(domain: Domain) -> Clique:
    """The attributes with more than one value; the first one, so that there is one, where none has."""
    return tuple(a.name for a in domain.attributes if a.size > 1) or domain.names[:1]


def downward_closure(cliques: Sequence[Clique]) -> tuple[Clique, ...]:
    """Every non-empty subset of the cliques, small ones first, in a fixed order."""
    found = {
        subset for clique in cliques for degree in range(1, len(clique) + 1) for subset in combinations(clique, degree)
    }
    return tuple(sorted(found, key=lambda clique: (len(clique), clique)))


def maximal(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """The cliques that no other clique contains, largest first, in a fixed order."""
    kept: list[Clique] = []
    covered: set[frozenset[str]] = set()
    given = set(cliques)
    degrees = {len(clique) for clique in given}
    for clique in sorted(given, key=lambda clique: (-len(clique), clique)):
        if frozenset(clique) not in covered:
            kept.append(clique)
            smaller = (degree for degree in degrees if degree <= len(clique))
            covered.update(frozenset(subset) for degree in smaller for subset in combinations(clique, degree))
    return tuple(kept)


def domain_of(schema: TableSchema) -> Domain:
    """The attributes that a table of this schema is encoded to, and what its rules leave no rows in."""
    zeros = (Zeros(table.rule.name, table.attributes, table.allowed) for table in schema.tables)
    return Domain(
        tuple(Attribute(column.name, column.size, column.is_ordered) for column in schema.attributes),
        tuple(one for one in zeros if not one.allowed.all()),
    )


def check_codes(codes: Mapping[str, Codes], domain: Domain) -> None:
    """Refuse codes outside the domain, without telling which or how many."""
    if set(codes) != set(domain.names):
        raise SchemaError(f"Expected codes of {', '.join(domain.names)}.")
    if len({column.shape for column in codes.values()}) != 1:
        raise SchemaError("Expected as many codes of each attribute.")
    for attribute in domain.attributes:
        column = codes[attribute.name]
        if column.ndim != 1 or (column.size and not 0 <= column.min() <= column.max() < attribute.size):
            raise SchemaError(f"Expected codes of {attribute.name!r} from 0 to {attribute.size - 1}.")
