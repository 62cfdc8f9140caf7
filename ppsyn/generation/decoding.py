"""Codes to values, drawn evenly from the bin of each code, or to the bins themselves as the axis of a table."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import pandas_dtype

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.domain import check_codes, domain_of
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
from ppsyn.schemas.table import TableSchema

Decoded: TypeAlias = "pd.Series[Any]"
"""A column of the dtype that its schema declares."""


def decode(codes: Mapping[str, Codes], schema: TableSchema, rng: np.random.Generator) -> pd.DataFrame:
    """Draw a table that encodes to these codes, in the schema's order of columns and with its dtypes.

    Raises:
        SchemaError: If the codes do not fit the schema.
    """
    check_codes(codes, domain_of(schema))
    return pd.DataFrame({column.name: decode_column(codes[column.name], column, rng) for column in schema.columns})


def decode_column(codes: Codes, column: ColumnSchema, rng: np.random.Generator) -> Decoded:
    """Decode a column; every value encodes to the code it was drawn for."""
    nulls = codes == column.value_count
    present = np.where(nulls, 0, codes)
    match column:
        case CategoricalColumn() | BooleanColumn():
            return _pick_labels(column, np.where(nulls, -1, codes))
        case IntegerColumn():
            values = _draw_whole(column.drawable, present, rng)
        case RealColumn():
            values = _draw_reals(column.drawable, present, rng)
        case DateColumn():
            values = _draw_whole(column.drawable, present, rng).astype("datetime64[D]")
        case DatetimeColumn():
            values = moments_at(_draw_whole(column.drawable, present, rng) * column.tick, column.zone)
    decoded = pd.Series(values).astype(pandas_dtype(column.decoded_dtype))
    return decoded.mask(nulls) if column.nullable else decoded


def _pick_labels(column: LabelledColumn, positions: NDArray[np.int32]) -> Decoded:
    """The label at each position, and null for -1."""
    if column.decoded_dtype == "category":
        dtype = pd.CategoricalDtype(pd.Index(column.labels), ordered=column.is_ordered)
        return pd.Series(pd.Categorical.from_codes(positions, dtype=dtype))
    labels = pd.Series(column.labels, dtype=pandas_dtype(column.decoded_dtype)).array
    return pd.Series(labels.take(positions, allow_fill=column.nullable))


def _draw_whole(intervals: Intervals, codes: Codes, rng: np.random.Generator) -> Ints:
    starts, ends = (np.asarray(bounds[codes], np.int64) for bounds in (intervals.starts, intervals.ends))
    return rng.integers(starts, ends, endpoint=True)


def _draw_reals(intervals: Intervals, codes: Codes, rng: np.random.Generator) -> Floats:
    """Draw reals; those that rounding carries past an end of their bin are moved back to it."""
    starts, ends, shares = intervals.starts[codes], intervals.ends[codes], rng.random(codes.size)
    return np.clip(starts * (1 - shares) + ends * shares, starts, ends)


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
