"""Raw columns, read value by value: what one row is read as depends on no other row."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import IntEnum
from numbers import Rational, Real
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ppsyn.schemas.columns.intervals import Axis

Raw: TypeAlias = "pd.Series[Any]"
"""A private column, of whatever dtype it came in."""

_MISFIT = b""
"""Stands for a value that fits no column."""

_TIMES: tuple[type, ...] = (np.datetime64, np.timedelta64)

_SIMPLE: set[type] = {str, int, float, bool, date, np.int64, np.float64, type(None), type(pd.NA), type(pd.NaT)}
"""Types whose equal values are read alike, 1 and True among them; not so a clock's time, which may come twice."""


class Fit(IntEnum):
    """How a raw value fits its column."""

    INSIDE = 0
    OUTSIDE = 1
    """Not in the domain, but it can be compared with what is."""
    MISFIT = 2
    """Cannot be compared: text that does not parse, or an object of another kind."""
    NULL = 3


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A number for each row, and how its value fits; for a misfit or a null the number is 0."""

    values: Axis
    fits: NDArray[np.int8]


ReadOne: TypeAlias = Callable[[object], tuple[float, Fit]]
"""Reads any object."""

ReadMany: TypeAlias = Callable[[Raw], Reading | None]
"""Reads a column of a dtype that it knows, with the same result; of any other, None."""


def read(raw: Raw, one: ReadOne, many: ReadMany, dtype: type[np.int64 | np.float64]) -> Reading:
    """Read a column of any dtype."""
    if isinstance(raw.dtype, pd.CategoricalDtype):
        categories = pd.Series(raw.cat.categories)
        return _spread(read(categories, one, many, dtype), raw.cat.codes.to_numpy())
    if _is_groupable(raw):
        positions, distinct = pd.factorize(raw)
        return _spread(_read_each(distinct.tolist(), one, dtype), positions)
    return many(raw) or _read_each(_objects(raw), one, dtype)


def _objects(raw: Raw) -> list[object]:
    """The values as objects. Arrow's moments and durations may have none; those fit no other column anyhow."""
    if isinstance(raw.dtype, pd.ArrowDtype) and pa.types.is_temporal(raw.dtype.pyarrow_dtype):
        return [_MISFIT if is_present else None for is_present in raw.notna()]
    return raw.tolist()


def is_null(value: object) -> bool:
    """Whether a value is missing: None, NA, NaT or not a number."""
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, float | Real) and not isinstance(value, Rational):
        return math.isnan(value)
    if isinstance(value, _TIMES):
        return bool(np.isnat(cast("np.datetime64[int]", value)))
    return value is None or value is pd.NA or value is pd.NaT


def _is_groupable(raw: Raw) -> bool:
    """Whether to read each distinct value once: text, and objects whose equality can be relied on."""
    dtype = raw.dtype
    if isinstance(dtype, np.dtype):
        return dtype.kind == "O" and set(map(type, raw.tolist())) <= _SIMPLE
    return isinstance(dtype, pd.StringDtype) or (isinstance(dtype, pd.ArrowDtype) and dtype.kind == "U")


def _read_each(values: Iterable[object], one: ReadOne, dtype: type[np.int64 | np.float64]) -> Reading:
    pairs = [_read_one(value, one) for value in values]
    numbers = np.fromiter((number for number, _ in pairs), dtype, len(pairs))
    return Reading(numbers, np.fromiter((fit for _, fit in pairs), np.int8, len(pairs)))


def _read_one(value: object, one: ReadOne) -> tuple[float, Fit]:
    """NumPy's durations say that they are integers; they fit no column."""
    if isinstance(value, np.timedelta64):
        return one(None if is_null(value) else _MISFIT)
    return one(value)


def _spread(distinct: Reading, positions: NDArray[np.integer[Any]]) -> Reading:
    """The reading of rows that each refer to a distinct value, or by -1 to null."""
    values, fits = np.append(distinct.values, 0), np.append(distinct.fits, np.int8(Fit.NULL))
    return Reading(values[positions], fits[positions])
