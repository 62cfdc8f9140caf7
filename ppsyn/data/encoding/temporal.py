"""Reading moments, as microseconds since 1970, and days."""

import re
from datetime import date, datetime, time
from functools import partial
from typing import cast
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from ppsyn.arrays import Ints
from ppsyn.data.encoding.numbers import SATURATION, saturate
from ppsyn.data.encoding.parsing import Fit, Raw, Reading, is_null, read
from ppsyn.schemas.columns.calendar import DAY_MICROSECONDS, instant, local_time

_DTYPE = re.compile(r"(datetime64|timestamp|date32|date64)\[(\w+)(, [^\]]+)?\](\[pyarrow\])?")
_MICROSECONDS = {"day": DAY_MICROSECONDS, "s": 1_000_000, "ms": 1_000, "us": 1}

_FIRST, _LAST = instant(datetime(1, 1, 3), None), instant(datetime(9999, 12, 29), None)
"""Local times past these have no offset to speak of; they are outside the bounds of any column with a zone."""


def read_moments(raw: Raw, zone: ZoneInfo | None) -> Reading:
    """Read moments; one without an offset is local to `zone`, or UTC if there is none."""
    return read(raw, partial(_moment_of, zone=zone), partial(_moment_array, zone=zone), np.int64)


def read_days(raw: Raw) -> Reading:
    """Read days since 1970; of a moment, its day in UTC."""
    moments = read_moments(raw, None)
    return Reading(moments.values // DAY_MICROSECONDS, moments.fits)


def _moment_of(value: object, zone: ZoneInfo | None) -> tuple[int, Fit]:
    if is_null(value):
        return 0, Fit.NULL
    moment = _parse(value)
    if moment is None:
        return 0, Fit.MISFIT
    return _instant_of_stamp(moment, zone) if isinstance(moment, pd.Timestamp) else instant(moment, zone), Fit.INSIDE


def _parse(value: object) -> datetime | None:
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value.strip())
        if isinstance(value, np.datetime64):
            return pd.Timestamp(cast("np.datetime64[int]", value))
    except ValueError:
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time.min)
    return value if isinstance(value, datetime) else None


def _instant_of_stamp(stamp: pd.Timestamp, zone: ZoneInfo | None) -> int:
    """The instant of a timestamp, which may lie beyond the years that `datetime` knows."""
    ticks = int(stamp.asm8.astype(np.int64))
    microseconds = ticks // 1_000 if stamp.unit == "ns" else ticks * _MICROSECONDS[stamp.unit]
    if zone is None or stamp.tzinfo is not None:
        return saturate(microseconds)
    return instant(local_time(max(_FIRST, min(_LAST, microseconds)), None), zone)


def _moment_array(raw: Raw, zone: ZoneInfo | None) -> Reading | None:
    dtype = _DTYPE.fullmatch(str(raw.dtype))
    if dtype is None:
        return None
    kind, unit, offset, arrow = dtype.groups()
    if arrow:
        ticks = raw.astype("int32[pyarrow]" if kind == "date32" else "int64[pyarrow]").to_numpy(np.int64, na_value=0)
    else:
        ticks = pd.DatetimeIndex(raw).asi8
    nulls = raw.isna().to_numpy()
    instants = _rescale(np.where(nulls, 0, ticks), unit)
    if zone is not None and offset is None:
        instants = _localise(instants, zone)
    return Reading(instants, np.where(nulls, Fit.NULL, Fit.INSIDE).astype(np.int8))


def _rescale(ticks: Ints, unit: str) -> Ints:
    if unit == "ns":
        return ticks // 1_000
    reach = SATURATION // _MICROSECONDS[unit]
    return np.clip(ticks, -reach, reach) * _MICROSECONDS[unit]


def _localise(local_times: Ints, zone: ZoneInfo) -> Ints:
    """The same as `instant` of each local time."""
    times = np.clip(local_times, _FIRST, _LAST)
    is_first = np.ones(times.size, np.bool_)
    index = pd.DatetimeIndex(times.view("datetime64[us]")).tz_localize(zone, ambiguous=is_first, nonexistent="NaT")
    skipped = np.asarray(index.isna())
    instants = np.array(index.asi8)
    instants[skipped] = [instant(local_time(moment, None), zone) for moment in times[skipped].tolist()]
    return instants
