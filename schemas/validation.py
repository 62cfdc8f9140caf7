"""What was found when a synthetic table was held against its schema; equal tables give equal bytes."""

from typing import Literal

from pydantic import JsonValue

from ppsyn.schemas.types import FrozenModel


class ValidationResult(FrozenModel):
    """One expectation, over the whole table."""

    column: str | None
    """The column, or None if it is about the table."""
    about: Literal["columns", "dtype", "nulls", "values"]
    expectation: str
    """As Great Expectations names it."""
    kwargs: dict[str, JsonValue]
    """What was expected, as the schema writes it."""
    success: bool


class Validation(FrozenModel):
    """The verdict on a synthetic table."""

    success: bool
    """Whether every expectation was met."""
    results: tuple[ValidationResult, ...]
