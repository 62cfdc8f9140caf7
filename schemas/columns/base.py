"""What every kind of column has."""

from abc import ABC, abstractmethod
from typing import Generic, Self, TypeVar

import numpy as np
from pydantic import model_validator

from ppsyn.schemas.columns.intervals import check_size
from ppsyn.schemas.types import Flag, FrozenModel, Outside, Text

V = TypeVar("V")

_WHOLE_DTYPES = ("Int64", "Int32", "Int16", "Int8", "UInt64", "UInt32", "UInt16", "UInt8")


class Column(FrozenModel, ABC, Generic[V]):
    """A column of values of type V."""

    name: Text
    """As the private table has it."""
    nullable: Flag = False
    """Whether null is part of the domain; it then has the last code."""
    dtype: Text | None = None
    """The pandas dtype of the decoded column; never that of the private table, which can tell of nulls."""
    other: V | None = None
    """The value that outsiders become."""
    outside: Outside = "clip"
    """Where outsiders go."""

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
            raise ValueError("Expected nullable: true with outside: null.")
        if self.outside == "other" and self.other is None:
            raise ValueError("Expected `other` to be declared with outside: other.")
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
