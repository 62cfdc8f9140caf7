"""Rules between columns: public facts about which rows there cannot be."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Annotated, Self, TypeAlias, cast

import numpy as np
from pydantic import Field, model_validator

from ppsyn.schemas.columns import (
    BinnedColumn,
    BooleanColumn,
    CategoricalColumn,
    ColumnSchema,
    DateColumn,
    IntegerColumn,
    RealColumn,
)
from ppsyn.schemas.columns.follows import Broken, Value, key_of
from ppsyn.schemas.columns.intervals import Axis, Flags
from ppsyn.schemas.derivation import Derivation, Values, number_of
from ppsyn.schemas.limits import CELLS, CODES, COLUMNS
from ppsyn.schemas.types import Flag, FrozenModel, Text

_TOLD = 5
"""Values that a sentence about a rule lists."""

_SPANS = ("at_least", "above", "at_most", "below")


class Condition(FrozenModel):
    """Which values of a column are meant: a value, a list of values, null, or from where to where."""

    one_of: Annotated[tuple[Value | None, ...], Field(min_length=1, max_length=CODES)] | None = None
    """These values. Instead of `{one_of: [a, b]}` write `[a, b]`, or `a` for one."""
    other_than: Annotated[tuple[Value | None, ...], Field(min_length=1, max_length=CODES)] | None = None
    """All values but these."""
    at_least: Value | None = None
    """This value and those after it; null is none of them."""
    above: Value | None = None
    """The values after this one."""
    at_most: Value | None = None
    """This value and those before it."""
    below: Value | None = None
    """The values before this one."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, written: object) -> object:
        if isinstance(written, list | tuple):
            return {"one_of": cast("object", written)}
        return cast("object", written) if isinstance(written, dict | Condition) else {"one_of": [written]}

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        lists, spans = [name for name in given if name not in _SPANS], [name for name in given if name in _SPANS]
        if len(lists) + bool(spans) != 1 or {"at_least", "above"} <= {*spans} or {"at_most", "below"} <= {*spans}:
            raise ValueError("Expected a value, a list of values, `other_than`, or from where to where.")
        return self

    @property
    def words(self) -> str:
        """What it says of a column, after the column's name."""
        if self.one_of is not None:
            return f"is {_listed(self.one_of)}"
        return f"is not {_listed(self.other_than)}" if self.other_than is not None else f"is {_span(self)}"


def _listed(values: Sequence[object]) -> str:
    few = [str(key_of(value)) if value is not None else "null" for value in values[:_TOLD]]
    return " or ".join(few) + (f" or {len(values) - _TOLD} more" if len(values) > _TOLD else "")


def _span(condition: Condition) -> str:
    marks = ((name, getattr(condition, name)) for name in _SPANS)
    return " and ".join(f"{name.replace('_', ' ')} {key_of(mark)}" for name, mark in marks if mark is not None)


Conditions: TypeAlias = Annotated[dict[Text, Condition], Field(min_length=1, max_length=COLUMNS)]


class Rule(FrozenModel):
    """A public fact about the rows there can be: `when` and `then`, or `never`, or `order`."""

    name: Text
    """By which errors, checks and the report call it."""
    when: Conditions | None = None
    """Where all of these hold, so does `then`."""
    then: Conditions | None = None
    """What holds where `when` does; `column: null` for a column that is then not applicable."""
    never: Conditions | None = None
    """What never holds together."""
    order: Annotated[tuple[Text, ...], Field(min_length=2, max_length=COLUMNS)] | None = None
    """Columns of which none is greater than the next, wherever both are there."""
    strict: Flag = False
    """Whether equal values break an `order`."""
    broken: Broken = "repair"
    """What becomes of a private row that breaks the rule: `repair` makes it the nearest row that breaks none,
    `null` makes the columns of `then`, or the last of `order`, null, which the rule then allows; `drop` leaves the row
    out."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [name for name in ("when", "then", "never", "order") if getattr(self, name) is not None]
        if given not in (["when", "then"], ["never"], ["order"]):
            raise ValueError(f"Expected `when` and `then`, or `never`, or `order` in the rule {self.name!r}.")
        if self.strict and self.order is None:
            raise ValueError(f"Expected `strict` with `order` in the rule {self.name!r}.")
        if self.order is not None and len(set(self.order)) < len(self.order):
            raise ValueError(f"Expected each column once in `order` of the rule {self.name!r}.")
        if self.never is not None and self.broken == "null":
            raise ValueError(
                f"Expected broken: repair or drop in the rule {self.name!r}: `never` names nothing to null."
            )
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        named = (*(self.when or {}), *(self.then or {}), *(self.never or {}), *(self.order or ()))
        return tuple(dict.fromkeys(named))

    @property
    def words(self) -> str:
        """The rule as a sentence."""
        if self.order is not None:
            return f"{(' is less than ' if self.strict else ' is at most ').join(self.order)}, where both are there"
        if self.never is not None:
            return f"it never holds that {_all(self.never)}"
        return f"where {_all(self.when or {})}, {_all(self.then or {})}"

    @property
    def nulled(self) -> tuple[str, ...]:
        """The columns that become null in a private row that breaks it."""
        if self.broken != "null":
            return ()
        return tuple(self.then or {}) if self.order is None else self.order[-1:]


def _all(conditions: Mapping[str, Condition]) -> str:
    return " and ".join(f"{name} {condition.words}" for name, condition in conditions.items())


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A rule as what it allows: one axis for each of its attributes, in the schema's order, over their codes."""

    rule: Rule
    attributes: tuple[str, ...]
    allowed: Flags


@dataclass(frozen=True, slots=True)
class Precedence:
    """One column is never greater than another by a rule, or by several; by `gap` steps at least it is less."""

    before: str
    after: str
    gap: int
    rule: Rule


def precedences(rules: Sequence[Rule]) -> tuple[Precedence, ...]:
    """What all orders say together, step over step.

    Raises:
        ValueError: If columns come before themselves; the rules are named.
    """
    found: dict[tuple[str, str], Precedence] = {}
    for rule in rules:
        for before, after in pairwise(rule.order or ()):
            step = Precedence(before, after, int(rule.strict), rule)
            if (before, after) not in found or found[before, after].gap < step.gap:
                found[before, after] = step
    names = dict.fromkeys(name for pair in found for name in pair)
    for middle in names:
        for before in names:
            for after in names:
                first, last = found.get((before, middle)), found.get((middle, after))
                if first is not None and last is not None:
                    gap = first.gap + last.gap
                    if before == after:
                        raise ValueError(
                            f"The rules {first.rule.name!r} and {last.rule.name!r} contradict each other: "
                            f"{before!r} would come before itself."
                        )
                    if (before, after) not in found or found[before, after].gap < gap:
                        found[before, after] = Precedence(before, after, gap, last.rule)
    return tuple(found.values())


class Reader:
    """Reads rules as tables over the codes of the columns that the model has."""

    def __init__(self, columns: Sequence[ColumnSchema], derived: Sequence[Derivation]) -> None:
        """Take the columns of a schema."""
        self._columns = {column.name: column for column in columns}
        self._place = {column.name: place for place, column in enumerate(columns)}
        self._derived = {derivation.column.name: derivation for derivation in derived}

    def tables(self, rules: Sequence[Rule]) -> tuple[Table, ...]:
        """What each rule allows; an order has a table for each pair of its columns.

        Raises:
            ValueError: If a rule cannot be said in codes; it is named.
        """
        found = list[Table]()
        for rule in rules:
            if rule.order is None:
                try:
                    found.append(self._conditions(rule))
                except ValueError as error:
                    raise ValueError(f"The rule {rule.name!r} cannot be kept. {error}") from None
        for step in precedences(rules):
            try:
                found.append(self._order(step))
            except ValueError as error:
                raise ValueError(f"The rule {step.rule.name!r} cannot be kept. {error}") from None
        return tuple(found)

    def _conditions(self, rule: Rule) -> Table:
        when, then = rule.when or rule.never or {}, rule.then
        premises = [self._where(name, condition, is_null_meant=False) for name, condition in when.items()]
        attributes = {name for name, _ in premises}
        results = [
            self._where(name, condition, is_null_meant=rule.broken == "null")
            for name, condition in (then or {}).items()
        ]
        attributes |= {name for name, _ in results}
        axes = tuple(sorted(attributes, key=self._place.__getitem__))
        shape = tuple(self._columns[name].size for name in axes)
        if np.prod(shape, dtype=np.float64) > CELLS:
            sizes = ", ".join(f"{name!r} has {self._columns[name].size:,} codes" for name in axes)
            raise ValueError(f"Expected at most {CELLS:,} cells: {sizes}. Use fewer bins, or fewer columns in it.")

        def all_of(parts: Iterable[tuple[str, Flags]]) -> Flags:
            spread = (flags.reshape([-1 if name == axis else 1 for axis in axes]) for name, flags in parts)
            return reduce(np.logical_and, spread, np.ones(shape, np.bool_))

        broken = all_of(premises) & ~(all_of(results) if results else np.zeros(shape, np.bool_))
        return Table(rule, axes, ~broken)

    def _where(self, name: str, condition: Condition, *, is_null_meant: bool) -> tuple[str, Flags]:
        """Of the attribute that decides it, which codes mean that the condition holds of a column."""
        column = self._column(name)
        if is_null_meant and not column.nullable:
            raise ValueError(f"Expected {name!r} to be nullable with broken: null.")
        if name in self._derived:
            attribute, values = self._decided(name)
            holds = _holds(column, condition, values.numbers, values.numbers)
        else:
            attribute = name
            low, high, nulls = _ends(column)
            values, holds = Values(low, nulls), _holds(column, condition, low, high)
        is_listed = condition.one_of is not None and None in condition.one_of
        is_left_out = condition.other_than is not None and None in condition.other_than
        if (is_listed or is_left_out) and not column.nullable:
            raise ValueError(f"Expected {name!r} to be nullable, since a condition names null.")
        of_null = is_null_meant or is_listed or (condition.other_than is not None and not is_left_out)
        return attribute, np.where(values.nulls, of_null, holds)

    def _column(self, name: str) -> ColumnSchema:
        if name not in self._columns:
            raise ValueError(f"Expected columns of the table, got {name!r}.")
        return self._columns[name]

    def _decided(self, name: str) -> tuple[str, Values]:
        """The attribute that a column follows from, and the column's value for each code of it."""
        derivation = self._derived[name]
        source, *others = derivation.sources
        if others:
            raise ValueError(f"Expected columns that follow from one other at most; {name!r} follows from several.")
        if source.name in self._derived:
            attribute, values = self._decided(source.name)
            return attribute, derivation.compute({source.name: values})
        low, high, nulls = _ends(source)
        first, last = (derivation.compute({source.name: Values(ends, nulls)}) for ends in (low, high))
        is_decided = (first.numbers == last.numbers) & (derivation.is_monotone | (low == high))
        if not (is_decided | nulls).all():
            raise ValueError(f"Expected each bin of {source.name!r} to have one value of {name!r}; change its edges.")
        return source.name, first

    def _order(self, step: Precedence) -> Table:
        before, after = self._ordered(step.before), self._ordered(step.after)
        for name in step.rule.nulled:
            if not self._columns[name].nullable:
                raise ValueError(f"Expected {name!r} to be nullable with broken: null.")
        is_whole = isinstance(before, IntegerColumn | DateColumn)
        if type(before) is not type(after) or not (is_whole or before.decoded_dtype == after.decoded_dtype):
            raise ValueError(f"Expected {step.before!r} and {step.after!r} to be of one kind and dtype.")
        if isinstance(before, RealColumn) and step.gap:
            raise ValueError("Expected `strict` between whole numbers, dates or moments.")
        if before.size * after.size > CELLS:
            raise ValueError(f"Expected at most {CELLS:,} pairs of bins; use fewer.")
        low, high = before.drawable.starts, after.drawable.ends
        allowed = np.ones((before.size, after.size), np.bool_)
        allowed[: low.size, : high.size] = low[:, None] + step.gap <= high[None, :]
        names = (step.before, step.after)
        is_sorted = self._place[step.before] < self._place[step.after]
        return Table(step.rule, names if is_sorted else names[::-1], allowed if is_sorted else allowed.T.copy())

    def _ordered(self, name: str) -> BinnedColumn:
        column = self._column(name)
        if isinstance(column, CategoricalColumn | BooleanColumn) or name in self._derived:
            raise ValueError(
                f"Expected an order of numbers, dates or moments that follow from no other; {name!r} is not."
            )
        return column


def _ends(column: ColumnSchema) -> tuple[Axis, Axis, Flags]:
    """The least and the greatest number of each code, and which code is null, whose numbers say nothing."""
    nulls = np.arange(column.size) == column.value_count
    if isinstance(column, CategoricalColumn | BooleanColumn):
        codes = np.minimum(np.arange(column.size), column.value_count - 1)
        return codes, codes, nulls
    spare = [0] * column.nullable
    starts, ends = column.intervals.starts, column.intervals.ends
    return np.append(starts, starts[spare]), np.append(ends, starts[spare]), nulls


def _holds(column: ColumnSchema, condition: Condition, low: Axis, high: Axis) -> Flags:
    """For numbers from `low` to `high` each, whether the condition holds of all of them.

    Raises:
        ValueError: If it holds of some.
    """
    listed = condition.one_of if condition.one_of is not None else condition.other_than
    if listed is not None:
        numbers = np.array(sorted(number_of(column, value) for value in listed if value is not None))
        first = np.searchsorted(numbers, low) if numbers.size else np.zeros(low.size, np.int64)
        last = np.searchsorted(numbers, high, side="right") if numbers.size else first
        within, all_of = last > first, low == high
        _check_bins(column, within & ~all_of, listed)
        unknown = [value for value in listed if value is not None and not _is_there(column, number_of(column, value))]
        if unknown:
            raise ValueError(f"Expected values of {column.name!r}, got {unknown[0]!r}.")
        return within if condition.one_of is not None else ~within
    if not column.is_ordered:
        raise ValueError(f"Expected a list of values of {column.name!r}, whose values have no order.")
    starts, stops = np.ones(low.size, np.bool_), np.ones(low.size, np.bool_)
    for name, meets in _MEETS.items():
        mark = getattr(condition, name)
        if mark is not None:
            number = number_of(column, mark)
            starts, stops = starts & meets(low, number), stops & meets(high, number)
    # An interval that begins before and ends after what is meant has both ends outside it.
    _check_bins(column, (starts != stops) | _spans(column, condition, low, high), [_span(condition)])
    return starts & stops


_MEETS: Mapping[str, Callable[[Axis, float], Flags]] = {
    "at_least": operator.ge,
    "above": operator.gt,
    "at_most": operator.le,
    "below": operator.lt,
}


def _spans(column: ColumnSchema, condition: Condition, low: Axis, high: Axis) -> Flags:
    """Whether a bin begins before what is meant and ends after it."""
    lower = condition.at_least if condition.at_least is not None else condition.above
    upper = condition.at_most if condition.at_most is not None else condition.below
    if lower is None or upper is None:
        return np.zeros(low.size, np.bool_)
    return (low < number_of(column, lower)) & (high > number_of(column, upper))


def _is_there(column: ColumnSchema, number: float) -> bool:
    return isinstance(column, CategoricalColumn | BooleanColumn) or bool(column.intervals.hold(np.array([number]))[0])


def _check_bins(column: ColumnSchema, is_parted: Flags, said: Sequence[object]) -> None:
    if is_parted.any():
        values = ", ".join(map(str, said))
        raise ValueError(f"Expected the bins of {column.name!r} not to be parted by {values}; give it edges there.")
