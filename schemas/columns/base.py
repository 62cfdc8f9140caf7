"""What every kind of column has, and what those have that are cut into bins along an axis of numbers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Generic, Self, TypeVar

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from ppsyn.schemas.columns.follows import Follows
from ppsyn.schemas.columns.intervals import Intervals, check_size
from ppsyn.schemas.limits import CODES
from ppsyn.schemas.types import Count, Flag, FrozenModel, Outside, Text, absent

V = TypeVar("V")

_WHOLE_DTYPES = ("Int64", "Int32", "Int16", "Int8", "UInt64", "UInt32", "UInt16", "UInt8")


class Column(FrozenModel, ABC, Generic[V]):
    """A column of values of type V."""

    name: Text
    """As the private table has it."""
    formerly: Annotated[Text | None, absent] = None
    """Its name in earlier releases, where it was another: what they tell of it is then used."""
    nullable: Flag = False
    """Whether null is part of the domain; it then has the last code."""
    dtype: Text | None = None
    """The pandas dtype of the decoded column; never that of the private table, which can tell of nulls."""
    other: V | None = None
    """The value that outsiders become."""
    outside: Outside = "clip"
    """Where outsiders go."""
    follows: Follows | None = None
    """How its values follow from those of other columns, if they do; it is then computed, and costs no budget."""

    @property
    @abstractmethod
    def value_count(self) -> int:
        """The number of codes, null apart."""

    @property
    @abstractmethod
    def other_code(self) -> int | None:
        """The code of `other`."""

    @property
    @abstractmethod
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that can hold every value of the domain; the first is the default."""

    @property
    @abstractmethod
    def rule(self) -> str:
        """What the schema demands of a value that is not null."""

    @property
    def size(self) -> int:
        """The number of codes."""
        return self.value_count + self.nullable

    @property
    def null_code(self) -> int | None:
        """The code of null."""
        return self.value_count if self.nullable else None

    @property
    def is_ordered(self) -> bool:
        """Whether neighbouring codes are neighbours in meaning."""
        return True

    @property
    def decoded_dtype(self) -> str:
        """The dtype of the decoded column."""
        return self.dtype or self.dtypes[0]

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_kind()
        check_size(self.size)
        if self.outside == "null" and not self.nullable:
            raise ValueError("Expected nullable: true with outside: null. Add it, or choose another outside.")
        if self.outside == "other" and self.other is None:
            raise ValueError("Expected `other` to be declared with outside: other. Add it, or choose another outside.")
        if self.decoded_dtype not in self.dtypes:
            raise ValueError(f"Expected dtype={self.dtype} to be one of {'; '.join(self.dtypes)}.")
        return self

    @abstractmethod
    def _check_kind(self) -> None:
        """Refuse what this kind cannot honour."""


def whole_dtypes(least: int, greatest: int, *, nullable: bool) -> tuple[str, ...]:
    """The dtypes of whole numbers that hold both bounds, and null if need be."""
    fitting = [name for name in _WHOLE_DTYPES if _fits(name.lower(), least, greatest)]
    plain = () if nullable else tuple(name.lower() for name in fitting)
    return (*plain, *fitting)


def _fits(dtype: str, least: int, greatest: int) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= least and greatest <= limits.max)


N = TypeVar("N", int, float)


class Binned(Column[V], Generic[V, N]):
    """A column of values of type V, which lie on an axis of type N."""

    lower: V | None = None
    """The least value."""
    upper: V | None = None
    """The greatest value."""
    edges: Annotated[tuple[V, ...], Field(max_length=CODES + 1)] | None = None
    """Where each bin starts, and then where the last one ends; the bounds follow from them."""
    bins: Count | None = None
    """How many bins of equal size."""

    @property
    @abstractmethod
    def dividers(self) -> Mapping[str, object]:
        """The fields that say how to divide the column, of which one may be given."""

    @abstractmethod
    def position(self, value: V) -> N:
        """Where on the axis a value lies."""

    @abstractmethod
    def starts(self, lower: N, upper: N) -> Sequence[N]:
        """Where the bins between the bounds start, if no edges are given."""

    @abstractmethod
    def divide(self, starts: Sequence[N], last: N) -> Intervals:
        """The bins that start so, the last one up to and including `last`."""

    @cached_property
    def intervals(self) -> Intervals:
        """The bins, on the axis."""
        if self.edges is not None:
            marks = self._marks(self.edges)
            return self.divide(marks[:-1], marks[-1])
        lower, upper = self._bounds()
        return self.divide(self.starts(lower, upper), upper)

    @cached_property
    def drawable(self) -> Intervals:
        """The part of each bin that the decoded dtype can hold."""
        return self.intervals

    @property
    @override
    def value_count(self) -> int:
        return len(self.intervals.starts)

    @property
    @override
    def other_code(self) -> int | None:
        return None if self.other is None else int(self.intervals.nearest(np.asarray([self.position(self.other)]))[0])

    @property
    @override
    def rule(self) -> str:
        lower, upper = (self.lower, self.upper) if self.edges is None else (self.edges[0], self.edges[-1])
        return f"expected values from {lower} to {upper}"

    def _bounds(self) -> tuple[N, N]:
        if self.lower is None or self.upper is None:
            raise ValueError("Expected lower and upper, or edges. Give the bounds of the column.")
        lower, upper = self.position(self.lower), self.position(self.upper)
        if lower > upper:
            raise ValueError(f"Expected lower={self.lower} to be at most upper={self.upper}.")
        return lower, upper

    def _marks(self, edges: tuple[V, ...]) -> list[N]:
        if len(edges) < 2:
            raise ValueError("Expected at least two edges. Give the start of each bin, then the end of the last.")
        if self.lower not in (None, edges[0]) or self.upper not in (None, edges[-1]):
            raise ValueError("Expected lower and upper to be the first and the last of edges, or to be left out.")
        marks = [self.position(edge) for edge in edges]
        if any(mark >= later for mark, later in pairwise(marks)):
            raise ValueError("Expected each of edges to be greater than the one before. Put them in increasing order.")
        return marks

    @override
    def _check_kind(self) -> None:
        given = [name for name, value in self.dividers.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"Expected only one of {', '.join(self.dividers)}, got {' and '.join(given)}.")
        if self.other is not None and not self.intervals.hold(np.asarray([self.position(self.other)])).all():
            raise ValueError(f"Expected other={self.other} to lie within the bounds.")
        if (self.drawable.starts > self.drawable.ends).any():
            raise ValueError(f"Expected every bin to hold a value of dtype={self.decoded_dtype}; use wider bins.")


def undivided(dividers: Mapping[str, object]) -> ValueError:
    """The error of a column that must be divided and does not say how."""
    return ValueError(f"Expected one of {', '.join(dividers)}.")
