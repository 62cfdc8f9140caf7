"""Columns of a closed list of values: categories, and true or false."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Generic, Literal

from pydantic import Field
from typing_extensions import override

from ppsyn.schemas.columns.base import Column, V, whole_dtypes
from ppsyn.schemas.limits import CODES
from ppsyn.schemas.types import Flag, Label, Outside


def _default_outside(data: Mapping[str, object]) -> Outside:
    if data.get("other") is not None:
        return "other"
    return "null" if data.get("nullable") else "clip"


class Labelled(Column[V], Generic[V]):
    """A column whose values are listed."""

    outside: Outside = Field(default_factory=_default_outside)
    """Where outsiders go: if nothing is said, to `other` where declared, else to null in a nullable column."""

    @cached_property
    @abstractmethod
    def labels(self) -> Sequence[V]:
        """The values, by code."""

    @property
    @override
    def value_count(self) -> int:
        return len(self.labels)

    @property
    @override
    def other_code(self) -> int | None:
        return None if self.other is None else self.labels.index(self.other)

    @override
    def _check_kind(self) -> None:
        if self.outside == "clip":
            raise ValueError(
                "Expected a place for values that are not listed, since none of those listed is the nearest: "
                "declare other, or nullable: true, or outside: refuse."
            )


class CategoricalColumn(Labelled[Label]):
    """A column of text, or of whole numbers, from a closed list.

    A whole number also matches the text of its digits, and the other way round.
    """

    kind: Literal["categorical"] = "categorical"
    values: Annotated[tuple[Label, ...], Field(max_length=CODES)]
    """All of them, in the order of their codes."""
    ordered: Flag = False
    """Whether neighbouring values are neighbours in meaning."""

    @cached_property
    @override
    def labels(self) -> tuple[str | int, ...]:
        """The values, by code; an `other` that is none of them comes after them."""
        return self.values if self.other is None or self.other in self.values else (*self.values, self.other)

    @property
    @override
    def is_ordered(self) -> bool:
        return self.ordered

    @property
    @override
    def dtypes(self) -> tuple[str, ...]:
        numbers = [label for label in self.labels if isinstance(label, int)]
        if numbers:  # Parquet has no categories of whole numbers
            return whole_dtypes(min(numbers), max(numbers), nullable=self.nullable)
        return ("str", "category")

    @property
    @override
    def rule(self) -> str:
        return "expected one of the values listed"

    @override
    def _check_kind(self) -> None:
        super()._check_kind()
        if not self.values:
            raise ValueError("Expected at least one value in values, got none. List one.")
        if len(set(self.values)) != len(self.values):
            raise ValueError("Expected values to differ from each other. Remove the repeated ones.")
        if len({type(value) for value in self.values}) != 1:
            raise ValueError("Expected values to be all text or all whole numbers; put the text in quotes.")
        if self.other is not None and type(self.other) is not type(self.values[0]):
            raise ValueError("Expected other to be text if the values are, and a whole number if they are.")


class BooleanColumn(Labelled[Flag]):
    """A column of true and false, so written in any case, or as 1 and 0."""

    kind: Literal["boolean"] = "boolean"

    @cached_property
    @override
    def labels(self) -> tuple[bool, ...]:
        return (False, True)

    @property
    @override
    def dtypes(self) -> tuple[str, ...]:
        return ("boolean",) if self.nullable else ("bool", "boolean")

    @property
    @override
    def rule(self) -> str:
        return "expected true or false"
