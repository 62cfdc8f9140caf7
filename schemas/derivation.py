"""Computing the columns that follow from others: for rows that are made, private or published, in the same way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from ppsyn.schemas.columns import (
    BinnedColumn,
    BooleanColumn,
    CategoricalColumn,
    ColumnSchema,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    RealColumn,
)
from ppsyn.schemas.columns.follows import Cut, Elapsed, Follows, Group, Map, Part, Sum, key_of, targets_of
from ppsyn.schemas.columns.intervals import Axis, Flags, Intervals
from ppsyn.schemas.limits import CODES
from ppsyn.schemas.types import LARGEST, Day, Moment, Real

_DAY, _MOMENT, _REAL = TypeAdapter[Day](Day), TypeAdapter[Moment](Moment), TypeAdapter[Real](Real)


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Values of a column: codes of its labels, or places on its axis; the numbers of nulls say nothing."""

    numbers: Axis
    nulls: Flags


@dataclass(frozen=True, slots=True, eq=False)
class Derivation:
    """How to compute a column.

    Attributes:
        sources: The columns that it follows from.
        numbers: Of a map, what each code or place of the source becomes, from `first` on; of a cut, its marks.
    """

    column: ColumnSchema
    follows: Follows
    sources: tuple[ColumnSchema, ...]
    numbers: Axis
    first: int = 0

    @property
    def is_monotone(self) -> bool:
        """Whether two equal results of one source mean that all values between give the same."""
        return isinstance(self.follows, Cut) or (isinstance(self.follows, Part) and self.follows.part == "year")

    def compute(self, given: Mapping[str, Values]) -> Values:
        """The column's values, row by row; null where one of its sources is."""
        sources = [given[source.name] for source in self.sources]
        numbers = self._numbers([source.numbers for source in sources])
        if isinstance(self.column, RealColumn):
            rounded = numbers.astype(np.dtype(self.column.decoded_dtype)).astype(np.float64)
            numbers = np.clip(rounded, self.column.drawable.starts[0], self.column.drawable.ends[-1])
        return Values(numbers, np.logical_or.reduce([source.nulls for source in sources]))

    def _numbers(self, sources: Sequence[Axis]) -> Axis:
        whole = cast("Sequence[NDArray[np.int64]]", sources)  # codes, whole numbers and days, but for cuts and sums
        match self.follows:
            case Map() | Group():
                return self.numbers[np.clip(whole[0] - self.first, 0, self.numbers.size - 1)]
            case Cut():
                return np.searchsorted(self.numbers, sources[0], side="right").astype(np.int64)
            case Sum(times=times, plus=plus):
                parts = zip(sources, times or (1,) * len(sources), strict=True)
                return sum((part * time for part, time in parts), np.full(sources[0].shape, plus))
            case Elapsed(unit=unit):
                return whole[1] - whole[0] if unit == "day" else _years(whole[0], whole[1])
            case Part(part=part):
                return _part(sources[0], part)


def _years(since: Axis, until: Axis) -> Axis:
    """Completed years between days."""
    first, last = (days.astype(np.int64).astype("datetime64[D]") for days in (since, until))
    months = (last.astype("datetime64[M]") - first.astype("datetime64[M]")).astype(np.int64)
    days = [(day - day.astype("datetime64[M]")).astype(np.int64) for day in (first, last)]
    return (months - (days[1] < days[0])) // 12


def _part(days: Axis, part: str) -> Axis:
    day = days.astype(np.int64).astype("datetime64[D]")
    months = day.astype("datetime64[M]").astype(np.int64)
    match part:
        case "year":
            return months // 12 + 1970
        case "quarter":
            return months % 12 // 3 + 1
        case "month":
            return months % 12 + 1
        case _:
            return (day.astype(np.int64) + 3) % 7 + 1  # 1970 began on a Thursday


def number_of(column: ColumnSchema, value: object) -> int | float:
    """The code of a label, or the place of a value on the axis of its column, inside its bounds or not.

    Raises:
        ValueError: If the column cannot have such a value.
    """
    text = str(key_of(value))
    if isinstance(column, CategoricalColumn | BooleanColumn):
        found = next((code for code, label in enumerate(column.labels) if key_of(label) == text), None)
    else:
        found = _place(column, text)
    if found is None:
        raise ValueError(f"Expected values that the column {column.name!r} can have, got {text!r}.")
    return found


def _place(column: BinnedColumn, text: str) -> int | float | None:
    try:
        match column:
            case IntegerColumn():
                return number if abs(number := int(text)) <= LARGEST else None
            case RealColumn():
                return column.position(_REAL.validate_python(float(text)))
            case DateColumn():
                return column.position(_DAY.validate_python(text))
            case DatetimeColumn():
                return column.position(_MOMENT.validate_python(text))
    except (ValidationError, ValueError):
        return None


def derivations(columns: Sequence[ColumnSchema], ordered: frozenset[tuple[str, str]]) -> tuple[Derivation, ...]:
    """How to compute the columns that follow from others, each after those that it needs.

    Args:
        columns: All columns of a schema.
        ordered: Columns of which a rule says that the first is never after the second.

    Raises:
        ValueError: If a column cannot follow so; it is named.
    """
    named = {column.name: column for column in columns}
    left = {column.name: column.follows for column in columns if column.follows is not None}
    for name, follows in left.items():
        for source in follows.sources:
            if source not in named or source == name:
                raise ValueError(f"Expected {name!r} to follow from other columns of the table, got {source!r}.")
    found = list[Derivation]()
    while left:
        ready = [name for name, follows in left.items() if not any(source in left for source in follows.sources)]
        if not ready:
            raise ValueError(f"Expected no column to follow from itself; {', '.join(map(repr, left))} do.")
        for name in ready:
            follows = left.pop(name)
            try:
                found.append(_derivation(named[name], follows, tuple(named[of] for of in follows.sources), ordered))
            except ValueError as error:
                raise ValueError(f"The column {name!r} cannot follow so. {error}") from None
    return tuple(found)


def _derivation(
    column: ColumnSchema, follows: Follows, sources: tuple[ColumnSchema, ...], ordered: frozenset[tuple[str, str]]
) -> Derivation:
    if not column.nullable and (missing := [source.name for source in sources if source.nullable]):
        raise ValueError(f"Expected nullable: true, since {', '.join(map(repr, missing))} may be null.")
    if column.nullable and not any(source.nullable for source in sources):
        raise ValueError("Expected nullable: false, since nothing that it follows from may be null.")
    if follows.broken == "null" and (whole := [source.name for source in sources if not source.nullable]):
        raise ValueError(f"Expected {', '.join(map(repr, whole))} to be nullable with broken: null.")
    match follows:
        case Map() | Group():
            return _mapped(column, follows, sources)
        case Cut():
            return _cut(column, follows, sources)
        case Sum():
            _expect(sources, (IntegerColumn, RealColumn), "numbers")
            whole = all(isinstance(source, IntegerColumn) for source in sources)
            _expect(
                (column,), (IntegerColumn, RealColumn) if whole else (RealColumn,), "numbers, real if one of them is"
            )
        case Elapsed() | Part():
            _expect(sources, (DateColumn,), "dates")
            _expect((column,), (IntegerColumn,), "whole numbers")
    found = Derivation(column, follows, sources, np.zeros(0, np.int64))
    _check_bounds(found, *_bounds(found, ordered))
    return found


def _mapped(column: ColumnSchema, follows: Map | Group, sources: tuple[ColumnSchema, ...]) -> Derivation:
    source, told = sources[0], targets_of(follows)
    if isinstance(source, CategoricalColumn | BooleanColumn):
        first, keys = 0, [str(key_of(label)) for label in source.labels]
    else:
        _expect(sources, (IntegerColumn,), "labels or whole numbers")
        first, last = int(source.intervals.starts[0]), int(source.intervals.ends[-1])
        if last - first >= CODES:
            raise ValueError(f"Expected {source.name!r} to have at most {CODES:,} values.")
        keys = [str(number) for number in range(first, last + 1)]
    if lacking := [key for key in keys if key not in told]:
        raise ValueError(f"Expected a value for each value of {source.name!r}, got none for {lacking[0]!r}.")
    if unknown := set(told).difference(keys):
        raise ValueError(f"Expected values of {source.name!r}, got {min(unknown)!r}.")
    numbers = np.array([number_of(column, told[key]) for key in keys])
    found = Derivation(column, follows, sources, numbers, first)
    if not isinstance(column, CategoricalColumn | BooleanColumn):
        _check_bounds(found, numbers.min(), numbers.max())
    return found


def _cut(column: ColumnSchema, follows: Cut, sources: tuple[ColumnSchema, ...]) -> Derivation:
    _expect((column,), (CategoricalColumn, BooleanColumn), "labels")
    _expect(sources, (IntegerColumn, RealColumn, DateColumn, DatetimeColumn), "numbers, dates or moments")
    if len(follows.at) != column.value_count - 1:
        raise ValueError(f"Expected {column.value_count - 1} marks for {column.value_count} values.")
    marks = [number_of(sources[0], mark) for mark in follows.at]
    if any(mark >= later for mark, later in pairwise(marks)):
        raise ValueError("Expected each mark to be greater than the one before.")
    return Derivation(column, follows, sources, np.array(marks))


def _expect(columns: Sequence[ColumnSchema], kinds: tuple[type, ...], said: str) -> None:
    for column in columns:
        if not isinstance(column, kinds):
            raise ValueError(f"Expected {column.name!r} to be of {said}, got the kind {column.kind}.")


def _bounds(found: Derivation, ordered: frozenset[tuple[str, str]]) -> tuple[int | float, int | float]:
    """The least and the greatest result there can be."""
    ends = [(_intervals(source).starts[0].item(), _intervals(source).ends[-1].item()) for source in found.sources]
    match found.follows:
        case Sum(times=times, plus=plus):
            parts = [
                sorted((low * time, high * time))
                for (low, high), time in zip(ends, times or (1,) * len(ends), strict=True)
            ]
            return plus + sum(low for low, _ in parts), plus + sum(high for _, high in parts)
        case Part(part="quarter"):
            return 1, 4
        case Part(part="month"):
            return 1, 12
        case Part(part="weekday"):
            return 1, 7
        case _:
            corners = [[ends[0][1], ends[-1][0]], [ends[0][0], ends[-1][1]]]
            low, high = (
                found.compute(
                    {
                        source.name: Values(np.array([place]), np.zeros(1, np.bool_))
                        for source, place in zip(
                            found.sources, corner if len(found.sources) > 1 else [edge], strict=True
                        )
                    }
                ).numbers.item()
                for corner, edge in zip(corners, ends[0], strict=True)
            )
            is_ordered = tuple(source.name for source in found.sources) in ordered
            return (max(low, 0) if is_ordered else low), high


def _intervals(column: ColumnSchema) -> Intervals:
    if isinstance(column, CategoricalColumn | BooleanColumn):
        raise ValueError(f"Expected {column.name!r} to have bounds.")
    return column.intervals


def _check_bounds(found: Derivation, low: float, high: float) -> None:
    intervals = _intervals(found.column)
    if not (intervals.starts[0] <= low and high <= intervals.ends[-1]):
        raise ValueError(f"Expected bounds that hold all results, which run from {low} to {high}.")
