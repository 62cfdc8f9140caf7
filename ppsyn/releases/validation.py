"""Expectations of a synthetic table, from its schema; all values here are released."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal, cast

import numpy as np
import pandas as pd
from pydantic import JsonValue

from ppsyn.data.encoding import rows_broken
from ppsyn.data.encoding.parsing import Fit, Raw
from ppsyn.data.encoding.table import read_positions
from ppsyn.data.validation import Expectation, judge
from ppsyn.schemas.columns import BinnedColumn, BooleanColumn, CategoricalColumn, ColumnSchema
from ppsyn.schemas.columns.follows import words_of
from ppsyn.schemas.columns.intervals import Axis
from ppsyn.schemas.manifest import Validation, ValidationResult
from ppsyn.schemas.table import TableSchema

_LONG = 1_000
"""A list of more values is checked here, and Great Expectations gets a flag for each value: whether it is listed."""


@dataclass(frozen=True, slots=True)
class _Check:
    """An expectation, and the view of a block that it is held against."""

    about: Literal["columns", "dtype", "nulls", "values", "follows", "rules"]
    run: Expectation
    """As it is run: dates and moments as numbers."""
    kwargs: dict[str, JsonValue]
    """The result as it is published."""
    subject: str | None = None
    """What it is told of, if not of the column that it is run on."""


def validate(blocks: Iterator[pd.DataFrame], schema: TableSchema) -> Validation:
    """Hold a synthetic table against its schema, block by block, with one verdict.

    It has the schema's columns in order, of the decoded dtypes, with values of the
    domain, and nulls only where the schema allows them; and no row breaks a rule.
    """
    checks = _checks(schema)
    met = dict.fromkeys(range(len(checks)), True)
    for block in blocks:
        for about, view in _views(block, schema).items():
            numbers = [number for number, check in enumerate(checks) if check.about == about]
            if not numbers:
                continue
            verdicts = judge(view, [checks[number].run for number in numbers])
            for number, verdict in zip(numbers, verdicts, strict=True):
                met[number] &= verdict.success
    results = tuple(
        ValidationResult(
            column=check.subject or check.run.column,
            about=check.about,
            expectation=check.run.name,
            kwargs=check.kwargs,
            success=met[number],
        )
        for number, check in enumerate(checks)
    )
    return Validation(success=all(met.values()), results=results)


def _checks(schema: TableSchema) -> list[_Check]:
    names: list[JsonValue] = [column.name for column in schema.columns]
    order = Expectation("expect_table_columns_to_match_ordered_list", None, {"column_list": names})
    checks = [_Check("columns", order, {"column_list": names})]
    for column in schema.columns:
        dtypes: list[JsonValue] = [column.decoded_dtype]
        checks.append(_one_of("dtype", column.name, dtypes))
        if not column.nullable:
            checks.append(_Check("nulls", Expectation("expect_column_values_to_not_be_null", column.name, {}), {}))
        checks.append(_domain(column))
    told: list[tuple[Literal["follows", "rules"], str, str]] = [
        *(("rules", rule.name, rule.words) for rule in schema.rules),
        *(("follows", one.column.name, words_of(one.follows)) for one in schema.derived),
    ]
    for number, (about, name, words) in enumerate(told):
        kept = Expectation("expect_column_values_to_be_in_set", _rule(number), {"value_set": [True]})
        checks.append(_Check(about, kept, {"rule": words}, name))
    return checks


def _rule(number: int) -> str:
    """What a view calls the rows that keep a rule: columns and rules may share a name."""
    return f"rule {number}"


def _domain(column: ColumnSchema) -> _Check:
    if _is_long(column):  # Great Expectations copies the list over and over
        run = Expectation("expect_column_values_to_be_in_set", column.name, {"value_set": [True]})
        return _Check("values", run, {"value_set": f"the {column.value_count:,} values of the schema"})
    if isinstance(column, CategoricalColumn | BooleanColumn):
        return _one_of("values", column.name, [*column.labels])
    # Great Expectations takes bounds as doubles: those it cannot have exactly are moved outwards.
    least, greatest = column.intervals.starts[0].item(), column.intervals.ends[-1].item()
    bounds = {"min_value": _at_most(least), "max_value": -_at_most(-greatest)}
    run = Expectation("expect_column_values_to_be_between", column.name, bounds)
    lower, upper = (column.lower, column.upper) if column.edges is None else (column.edges[0], column.edges[-1])
    return _Check("values", run, {"min_value": _written(lower), "max_value": _written(upper)})


def _one_of(about: Literal["dtype", "values"], column: str, values: list[JsonValue]) -> _Check:
    return _Check(
        about,
        Expectation("expect_column_values_to_be_in_set", column, {"value_set": values}),
        {"value_set": values},
    )


def _at_most(number: float) -> float:
    """The greatest double that is not above a number."""
    nearest = float(number)
    return nearest if nearest <= number else math.nextafter(nearest, -math.inf)


def _written(bound: float | date | None) -> JsonValue:
    return bound.isoformat() if isinstance(bound, date) else bound


def _views(block: pd.DataFrame, schema: TableSchema) -> dict[str, pd.DataFrame]:
    """What each sort of check looks at."""
    block = block.reset_index(drop=True)
    dtypes = {name: [str(block[name].dtype)] for name in _present(block, schema)}
    values = {name: _seen(block[name], column) for name, column in _present(block, schema).items()}
    kept = _kept(block, schema)
    return {
        "columns": block.iloc[:0],
        "dtype": pd.DataFrame(dtypes),
        "nulls": block,
        "values": pd.DataFrame(values),
        "rules": kept,
        "follows": kept,
    }


def _kept(block: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Which rows keep which rule; none does in a block without all columns."""
    count = len(schema.rules) + len(schema.derived)
    if len(_present(block, schema)) < len(schema.columns):
        return pd.DataFrame({_rule(number): [False] for number in range(count)})
    return pd.DataFrame({_rule(number): ~found for number, (_, found) in enumerate(rows_broken(block, schema))})


def _is_long(column: ColumnSchema) -> bool:
    return isinstance(column, CategoricalColumn) and column.value_count > _LONG


def _seen(raw: Raw, column: ColumnSchema) -> "Raw | Axis":
    """A column as its check of values sees it."""
    if isinstance(column, CategoricalColumn) and _is_long(column):
        return raw.isin(column.labels) | raw.isna()  # nulls have a check of their own
    return raw if isinstance(column, CategoricalColumn | BooleanColumn) else _positions(raw, column)


def _present(block: pd.DataFrame, schema: TableSchema) -> dict[str, ColumnSchema]:
    names = list(cast("list[object]", block.columns.tolist()))
    return {column.name: column for column in schema.columns if names.count(column.name) == 1}


def _positions(raw: Raw, column: BinnedColumn) -> Axis:
    """Where on the axis each value lies; a null inside, for it has a check of its own, and a misfit far outside."""
    reading = read_positions(raw, column)
    far = np.inf if reading.values.dtype.kind == "f" else np.iinfo(np.int64).max
    is_misfit = (reading.fits != Fit.INSIDE) & (reading.fits != Fit.NULL)
    inside = np.where(reading.fits == Fit.NULL, column.intervals.starts[0], reading.values)
    return np.where(is_misfit, far, inside).astype(reading.values.dtype)
