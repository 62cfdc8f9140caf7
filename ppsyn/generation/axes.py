"""What the codes of a column stand for, as the axis of a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ppsyn.arrays import Ints
from ppsyn.generation.decoding import decode_column, moments_at
from ppsyn.schemas.columns import (
    BooleanColumn,
    CategoricalColumn,
    ColumnSchema,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    RealColumn,
)
from ppsyn.schemas.columns.calendar import DAY_MICROSECONDS
from ppsyn.schemas.columns.intervals import Intervals


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
