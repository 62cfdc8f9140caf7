"""How a column follows from others: it is then computed, exactly, and no part of the model."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from ppsyn.schemas.limits import CODES, COLUMNS, TEXT_CHARACTERS
from ppsyn.schemas.types import FrozenModel, Text, Whole


def _plain(value: object) -> object:
    """A day or a moment as text, as JSON has it."""
    if isinstance(value, str) and len(value) > TEXT_CHARACTERS:
        raise ValueError(f"Expected text of at most {TEXT_CHARACTERS:,} characters, got {len(value):,}.")
    return value.isoformat() if isinstance(value, date | datetime) else value


def key_of(value: object) -> object:
    """A value as text, as it is called where names are expected: 3, true, 2020-01-31."""
    if isinstance(value, bool):
        return str(value).lower()
    plain = _plain(value)
    return str(plain) if isinstance(plain, int | float) else plain


def _read_broken(value: object) -> object:
    """YAML reads an unquoted null as nothing; here it is the policy of that name."""
    return "null" if value is None else value


Value: TypeAlias = Annotated[bool | int | float | str, BeforeValidator(_plain)]
"""A value of a column, as a schema writes it; a date or a moment as text."""

Key: TypeAlias = Annotated[str, BeforeValidator(key_of)]
"""A value of a column, as text."""

Broken: TypeAlias = Annotated[Literal["repair", "null", "drop"], BeforeValidator(_read_broken)]
"""What becomes of a private row that breaks a rule: the nearest row that does not, nulls, or nothing."""


class _Follows(FrozenModel):
    broken: Broken = "repair"
    """What becomes of a private row that says otherwise: `repair` computes the value anew, and the column may then be
    missing from the private table; `null` makes the columns that it follows from null; `drop` leaves the row out."""


class Map(_Follows):
    """Each value of another column has its value here."""

    by: Literal["map"]
    of: Text
    """The other column: labels, or whole numbers."""
    to: Annotated[dict[Key, Value], Field(min_length=1, max_length=CODES)]
    """The value here, for each value there."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that it follows from."""
        return (self.of,)


class Group(_Follows):
    """Each value of another column is in one of the groups named here: counties in states."""

    by: Literal["group"]
    of: Text
    """The finer column: labels, or whole numbers."""
    groups: Annotated[dict[Key, tuple[Value, ...]], Field(min_length=1, max_length=CODES)]
    """The values there, for each value here."""

    @model_validator(mode="after")
    def _once(self) -> "Group":
        listed = [key_of(value) for members in self.groups.values() for value in members]
        if len(set(listed)) < len(listed):
            raise ValueError("Expected each value in one group.")
        return self

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that it follows from."""
        return (self.of,)


class Cut(_Follows):
    """The first label stands for what is below the first mark, the next for what is from there on, and so forth."""

    by: Literal["cut"]
    of: Text
    """The other column: numbers, dates or moments."""
    at: Annotated[tuple[Value, ...], Field(min_length=1, max_length=CODES)]
    """The marks, increasing: one fewer than this column has values."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that it follows from."""
        return (self.of,)


class Sum(_Follows):
    """A sum of numbers, each perhaps with a whole factor; null if one of them is."""

    by: Literal["sum"]
    of: Annotated[tuple[Text, ...], Field(min_length=1, max_length=COLUMNS)]
    """The columns of numbers."""
    times: Annotated[tuple[Whole, ...], Field(min_length=1, max_length=COLUMNS)] | None = None
    """The factor of each; -1 subtracts. Without them all are added."""
    plus: Whole = 0
    """What is added besides."""

    @model_validator(mode="after")
    def _paired(self) -> "Sum":
        if self.times is not None and len(self.times) != len(self.of):
            raise ValueError("Expected as many factors in `times` as columns in `of`.")
        return self

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that it follows from."""
        return self.of


class Elapsed(_Follows):
    """The time from one date to another, in whole days or completed years; null if one of them is."""

    by: Literal["elapsed"]
    of: tuple[Text, Text]
    """The columns of dates: from when, until when."""
    unit: Literal["day", "year"] = "day"
    """Days, or years as ages are counted."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that it follows from."""
        return self.of


class Part(_Follows):
    """A part of a date: its year, or its month as 1 to 12, or its day of the week as 1 (Monday) to 7."""

    by: Literal["part"]
    of: Text
    """The column of dates."""
    part: Literal["year", "quarter", "month", "weekday"]
    """Which."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that it follows from."""
        return (self.of,)


def words_of(follows: "Follows") -> str:
    """How a column follows, after its name."""
    match follows:
        case Map(of=of):
            return f"follows from {of} by a map"
        case Group(of=of):
            return f"is the group of {of}"
        case Cut(of=of, at=at):
            return f"follows from {of}, cut at {', '.join(str(key_of(mark)) for mark in at)}"
        case Sum(of=of, times=times, plus=plus):
            parts = [f"{time} {name}" for name, time in zip(of, times or (1,) * len(of), strict=True)]
            return f"is {' + '.join([*parts, *([str(plus)] if plus else [])])}"
        case Elapsed(of=of, unit=unit):
            return f"is the {unit}s from {of[0]} to {of[1]}"
        case Part(of=of, part=part):
            return f"is the {part} of {of}"


Follows: TypeAlias = Annotated[Map | Group | Cut | Sum | Elapsed | Part, Field(discriminator="by")]


def targets_of(follows: Map | Group) -> dict[str, object]:
    """The value here, by the text of each value there."""
    if isinstance(follows, Map):
        return dict(follows.to)
    listed: Sequence[tuple[object, str]] = [(m, group) for group, members in follows.groups.items() for m in members]
    return {str(key_of(member)): group for member, group in listed}
