"""Columns that follow from others: computed exactly, and refused where they cannot follow so."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ppsyn.schemas.derivation import Values, derivations
from ppsyn.schemas.table import TableSchema

EPOCH = date(1970, 1, 1)

COLUMNS = """
name: people
columns:
  - {name: city, kind: categorical, values: [bonn, ulm, kiel], outside: refuse}
  - {name: age, kind: integer, lower: 0, upper: 9}
  - {name: pay, kind: real, lower: 0, upper: 1, bins: 2}
  - {name: born, kind: date, lower: 1900-01-01, upper: 2000-12-31, unit: year}
  - {name: seen, kind: date, lower: 1900-01-01, upper: 2020-12-31, unit: year}
  - {name: maybe, kind: integer, lower: 0, upper: 9, nullable: true}
"""


def schema_with(*columns: str) -> TableSchema:
    """The columns above, and some that follow."""
    document: dict[str, Any] = yaml.safe_load(COLUMNS)
    return TableSchema.model_validate(
        {**document, "columns": [*document["columns"], *(yaml.safe_load(column) for column in columns)]}
    )


def values(*numbers: float, null_at: int = -1) -> Values:
    """Values of which one may be null."""
    return Values(np.array(numbers), np.arange(len(numbers)) == null_at)


def computed(column: str, **given: Values) -> list[float | None]:
    """What a column becomes."""
    (derivation,) = schema_with(column).derived
    found = derivation.compute(given)
    return [None if null else number for number, null in zip(found.numbers.tolist(), found.nulls.tolist(), strict=True)]


def test_a_map_and_a_group_give_each_value_its_own() -> None:
    by_map = (
        "{name: n, kind: integer, lower: 1, upper: 3, follows: {by: map, of: city, to: {bonn: 3, ulm: 1, kiel: 2}}}"
    )
    by_group = (
        "{name: n, kind: categorical, values: [north, south], outside: refuse, "
        "follows: {by: group, of: city, groups: {north: [kiel], south: [bonn, ulm]}}}"
    )
    assert computed(by_map, city=values(0, 1, 2, 0)) == [3, 1, 2, 3]
    assert computed(by_group, city=values(0, 1, 2)) == [1, 1, 0]


def test_a_map_of_whole_numbers_counts_from_the_least() -> None:
    to = {number: number * number for number in range(10)}
    column = f"{{name: n, kind: integer, lower: 0, upper: 81, follows: {{by: map, of: age, to: {to}}}}}"
    assert computed(column, age=values(0, 3, 9)) == [0, 9, 81]


def test_a_cut_begins_a_label_at_its_mark() -> None:
    column = "{name: n, kind: categorical, values: [a, b, c], outside: refuse, follows: {by: cut, of: age, at: [2, 5]}}"
    assert computed(column, age=values(0, 1, 2, 4, 5, 9)) == [0, 0, 1, 1, 2, 2]


def test_a_sum_has_factors_and_is_null_where_a_part_is() -> None:
    column = (
        "{name: n, kind: integer, lower: -90, upper: 19, nullable: true, "
        "follows: {by: sum, of: [age, maybe], times: [1, -10], plus: 1}}"
    )
    assert computed(column, age=values(9, 2), maybe=values(0, 3, null_at=1)) == [10, None]


def test_a_sum_of_reals_is_what_the_dtype_holds() -> None:
    column = "{name: n, kind: real, lower: 0, upper: 2, dtype: float32, follows: {by: sum, of: [pay], times: [2]}}"
    assert computed(column, pay=values(0.1)) == [float(np.float32(0.2))]


days = st.dates(date(1900, 1, 1), date(2000, 12, 31))


@settings(deadline=None)
@given(born=days, later=st.integers(0, 7000))
def test_years_are_counted_as_birthdays_are(born: date, later: int) -> None:
    seen = born + timedelta(days=later)
    column = "{name: n, kind: integer, lower: -101, upper: 120, follows: {by: elapsed, of: [born, seen], unit: year}}"
    found = computed(column, born=values((born - EPOCH).days), seen=values((seen - EPOCH).days))
    assert found == [seen.year - born.year - ((seen.month, seen.day) < (born.month, born.day))]


@settings(deadline=None)
@given(day=days)
def test_parts_of_a_date_are_the_calendars(day: date) -> None:
    expected = {"year": day.year, "quarter": (day.month + 2) // 3, "month": day.month, "weekday": day.isoweekday()}
    for part, number in expected.items():
        column = f"{{name: n, kind: integer, lower: 1, upper: 2000, follows: {{by: part, of: born, part: {part}}}}}"
        assert computed(column, born=values((day - EPOCH).days)) == [number]


def test_columns_follow_from_columns_that_follow() -> None:
    schema = schema_with(
        "{name: b, kind: boolean, outside: refuse, follows: {by: cut, of: a, at: [5]}}",
        "{name: a, kind: integer, lower: 1, upper: 10, follows: {by: sum, of: [age], plus: 1}}",
    )
    assert [derivation.column.name for derivation in schema.derived] == ["a", "b"]


def test_an_order_keeps_what_elapsed_from_being_negative() -> None:
    document = yaml.safe_load(COLUMNS)
    column = "{name: n, kind: integer, lower: 0, upper: 120, follows: {by: elapsed, of: [born, seen], unit: year}}"
    document["columns"].append(yaml.safe_load(column))
    with pytest.raises(ValidationError, match="bounds that hold all results, which run from -101 to 120"):
        TableSchema.model_validate(document)
    document["rules"] = [{"name": "seen once born", "order": ["born", "seen"]}]
    assert TableSchema.model_validate(document).derived


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("{kind: integer, lower: 1, upper: 3, follows: {by: map, of: city, to: {bonn: 3, ulm: 1}}}", "none for 'kiel'"),
        (
            "{kind: integer, lower: 1, upper: 3, follows: {by: map, of: city, to: {bonn: 3, ulm: 1, kiel: 4}}}",
            "run from 1 to 4",
        ),
        (
            "{kind: integer, lower: 1, upper: 3, follows: {by: map, of: city, to: {bonn: 3, ulm: 1, kiel: 2, x: 1}}}",
            "got 'x'",
        ),
        (
            "{kind: boolean, outside: refuse, follows: {by: map, of: city, to: {bonn: 3, ulm: 1, kiel: 2}}}",
            "the column 'n' can have, got '3'",
        ),
        ("{kind: integer, lower: 1, upper: 3, follows: {by: map, of: pay, to: {0: 3}}}", "labels or whole numbers"),
        ("{kind: boolean, outside: refuse, follows: {by: cut, of: age, at: [1, 2]}}", "Expected 1 marks"),
        ("{kind: boolean, outside: refuse, follows: {by: cut, of: city, at: [1]}}", "numbers, dates or moments"),
        ("{kind: integer, lower: 0, upper: 17, follows: {by: sum, of: [age, age]}}", "run from 0 to 18"),
        ("{kind: integer, lower: 0, upper: 17, follows: {by: sum, of: [age, pay]}}", "real if one of them is"),
        ("{kind: integer, lower: 0, upper: 17, follows: {by: sum, of: [age], times: [1, 2]}}", "as many factors"),
        ("{kind: integer, lower: 0, upper: 9, follows: {by: sum, of: [maybe]}}", "Expected nullable: true"),
        ("{kind: integer, lower: 0, upper: 9, nullable: true, follows: {by: sum, of: [age]}}", "nullable: false"),
        ("{kind: integer, lower: 0, upper: 9, follows: {by: sum, of: [age], broken: null}}", "'age' to be nullable"),
        (
            "{kind: integer, lower: 0, upper: 9, follows: {by: sum, of: [n]}}",
            "from other columns of the table, got 'n'",
        ),
        ("{kind: integer, lower: 0, upper: 9, follows: {by: sum, of: [nothing]}}", "got 'nothing'"),
        ("{kind: integer, lower: 0, upper: 9, follows: {by: part, of: age, part: year}}", "to be of dates"),
    ],
)
def test_a_column_that_cannot_follow_so_is_refused_in_a_sentence(column: str, told: str) -> None:
    with pytest.raises(ValidationError) as error:
        schema_with(f"{{name: n, {column[1:]}")
    assert told in str(error.value)


def test_columns_that_follow_from_each_other_are_refused() -> None:
    with pytest.raises(ValidationError, match="no column to follow from itself"):
        schema_with(
            "{name: a, kind: integer, lower: 0, upper: 9, follows: {by: sum, of: [b]}}",
            "{name: b, kind: integer, lower: 0, upper: 9, follows: {by: sum, of: [a]}}",
        )


def test_a_table_needs_a_column_that_follows_from_none() -> None:
    assert derivations((), frozenset()) == ()
    with pytest.raises(ValidationError):
        TableSchema.model_validate({"name": "none", "columns": []})
