"""Codes to values, drawn evenly from bins and in the order that rules ask for; or to bins as the axis of a table."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import pandas_dtype

from ppsyn.arrays import Codes, Ints
from ppsyn.domain import check_codes, domain_of
from ppsyn.generation.drawing import bring_in_order, draw_reals, draw_whole, tick_of
from ppsyn.schemas.columns import (
    BooleanColumn,
    CategoricalColumn,
    ColumnSchema,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    LabelledColumn,
    RealColumn,
)
from ppsyn.schemas.columns.calendar import DAY_MICROSECONDS
from ppsyn.schemas.columns.intervals import Intervals
from ppsyn.schemas.derivation import Values
from ppsyn.schemas.table import TableSchema

Decoded: TypeAlias = "pd.Series[Any]"
"""A column of the dtype that its schema declares."""


def decode(codes: Mapping[str, Codes], schema: TableSchema, rng: np.random.Generator) -> pd.DataFrame:
    """Draw a table that encodes to these codes, in the schema's order of columns and with its dtypes.

    No row breaks a rule of the schema, unless its codes do.

    Raises:
        SchemaError: If the codes do not fit the schema.
    """
    check_codes(codes, domain_of(schema))
    drawn = {column.name: _draw(codes[column.name], column, rng) for column in schema.attributes}
    bring_in_order(drawn, codes, schema, rng)
    for derivation in schema.derived:
        drawn[derivation.column.name] = derivation.compute(drawn)
    return pd.DataFrame({column.name: _written(drawn[column.name], column) for column in schema.columns})


def decode_column(codes: Codes, column: ColumnSchema, rng: np.random.Generator) -> Decoded:
    """Decode a column; every value encodes to the code it was drawn for."""
    return _written(_draw(codes, column, rng), column)


def _draw(codes: Codes, column: ColumnSchema, rng: np.random.Generator) -> Values:
    """A value for each code."""
    nulls = codes == column.value_count
    present = np.where(nulls, 0, codes)
    match column:
        case CategoricalColumn() | BooleanColumn():
            return Values(present.astype(np.int64), nulls)
        case RealColumn():
            reals = draw_reals(column.drawable.starts[present], column.drawable.ends[present], rng)
            return Values(reals.astype(np.dtype(column.decoded_dtype)).astype(np.float64), nulls)
        case IntegerColumn() | DateColumn() | DatetimeColumn():
            starts, ends = column.drawable.starts[present], column.drawable.ends[present]
            return Values(draw_whole(starts, ends, rng) * tick_of(column), nulls)


def _written(values: Values, column: ColumnSchema) -> Decoded:
    """Values as the schema's dtype has them."""
    match column:
        case CategoricalColumn() | BooleanColumn():
            return _pick_labels(column, np.where(values.nulls, np.int32(-1), values.numbers.astype(np.int32)))
        case DateColumn():
            numbers = values.numbers.astype("datetime64[D]")
        case DatetimeColumn():
            numbers = moments_at(values.numbers.astype(np.int64), column.zone)
        case _:
            numbers = values.numbers
    decoded = pd.Series(numbers).astype(pandas_dtype(column.decoded_dtype))
    return decoded.mask(values.nulls) if column.nullable else decoded


def _pick_labels(column: LabelledColumn, positions: NDArray[np.int32]) -> Decoded:
    """The label at each position, and null for -1."""
    if column.decoded_dtype == "category":
        dtype = pd.CategoricalDtype(pd.Index(column.labels), ordered=column.is_ordered)
        return pd.Series(pd.Categorical.from_codes(positions, dtype=dtype))
    labels = pd.Series(column.labels, dtype=pandas_dtype(column.decoded_dtype)).array
    return pd.Series(labels.take(positions, allow_fill=column.nullable))


def moments_at(microseconds: Ints, zone: ZoneInfo | None) -> pd.DatetimeIndex:
    """The moments so many microseconds after the start of 1970 in UTC, on the clock of a zone if there is one."""
    moments = pd.DatetimeIndex(microseconds.astype("datetime64[us]"))
    return moments if zone is None else moments.tz_localize("UTC").tz_convert(zone)


def cells_of(columns: Sequence[ColumnSchema]) -> pd.Index:
    """The cells of a marginal of these columns, the last one varying fastest, in the order of their codes.

    A bin of several values is their interval. Null is no value, as in the synthetic table.
    """
    codes = np.indices([column.size for column in columns]).reshape(len(columns), -1)
    levels: list[Any] = [_values(column) for column in columns]
    places: list[Any] = [
        np.where(each < column.value_count, each, -1) for each, column in zip(codes, columns, strict=True)
    ]
    cells = pd.MultiIndex(levels, places, names=[column.name for column in columns])
    return cells if len(columns) > 1 else cells.get_level_values(0)


def _values(column: ColumnSchema) -> pd.Index:
    """What each code but that of null stands for."""
    if isinstance(column, CategoricalColumn | BooleanColumn) or _is_single(column.intervals):
        codes, rng = np.arange(column.value_count, dtype=np.int32), np.random.Generator(np.random.PCG64(0))
        return pd.Index(decode_column(codes, column, rng))  # one value to a code: nothing is drawn
    starts, ends = column.intervals.starts, column.intervals.ends
    if isinstance(column, RealColumn):
        marks = np.append(np.asarray(starts, np.float64), ends[-1])
        return pd.IntervalIndex.from_breaks(marks, closed="left")
    first, last = (_axis(np.asarray(bounds, np.int64), column) for bounds in (starts, ends))
    return pd.IntervalIndex.from_arrays(first, last, closed="both")


def _is_single(intervals: Intervals) -> bool:
    """Whether each bin holds one value."""
    return bool((intervals.starts == intervals.ends).all())


def _axis(positions: Ints, column: IntegerColumn | DateColumn | DatetimeColumn) -> pd.Index:
    """Places on the axis of a column, as its values."""
    match column:
        case IntegerColumn():
            return pd.Index(positions)
        case DateColumn():
            return moments_at(positions * DAY_MICROSECONDS, None)
        case DatetimeColumn():
            return moments_at(positions, column.zone)
