"""Ids of persons as bytes: ids that are equal are one person, in whatever types and batches they come."""

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from ppsyn.schemas.columns.calendar import instant

_PER_SECOND = 10**18
_SECONDS = {"W": 604_800, "D": 86_400, "h": 3600, "m": 60}
_PARTS = {unit: 1000**power for power, unit in enumerate(("as", "fs", "ps", "ns", "us", "ms", "s"))}
_TICKS = _PARTS | {unit: seconds * _PER_SECOND for unit, seconds in _SECONDS.items()}
"""Attoseconds in each of NumPy's units, but for years and months."""


def plain(person: object) -> bytes:
    """The same bytes for ids that are equal, whatever types they come in, and others for ids that are not.

    A day is its first moment, as it is to NumPy. Of a time that a clock shows twice both are
    one, as they are to Python.

    Raises:
        TypeError: If it is of no kind that is known to tell so.
    """
    match person:
        case np.timedelta64():  # NumPy calls it an integer
            raise TypeError("no plain identifier")
        case str():
            told = b"text " + person.encode("utf-8", "surrogatepass")
        case bytes():
            told = b"bytes " + person
        case UUID():
            told = b"uuid " + person.bytes
        case np.bool_():
            told = _plain_number(int(person))
        case Decimal() | Real():
            told = _plain_number(person)
        case np.datetime64():
            told = b"local %d" % _ticks(person)
        case date() | time():
            told = _plain_time(person) if isinstance(person, time) else _plain_moment(person)
        case _:
            raise TypeError("no plain identifier")
    return told


def _plain_number(number: Decimal | Real | int) -> bytes:
    """In base 16, which knows no limit of digits; 1, 1.0 and True are one."""
    if isinstance(number, Integral):
        return b"number %x/1" % int(number)
    if number in (math.inf, -math.inf):
        return f"number {float(number)}".encode()
    exact = number if isinstance(number, Rational | Decimal | float | np.floating) else float(number)
    ratio = Fraction(exact) if isinstance(exact, Rational) else Fraction(*exact.as_integer_ratio())
    return f"number {ratio.numerator:x}/{ratio.denominator:x}".encode()


def _plain_moment(day: date) -> bytes:
    """An instant, if it has an offset; otherwise what the clock shows, which is never equal to an instant."""
    moment = day.replace(fold=0) if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
    kind = b"local" if moment.utcoffset() is None else b"instant"
    if isinstance(moment, pd.Timestamp):
        return b"%s %d" % (kind, _ticks(moment.asm8))
    return b"%s %d" % (kind, instant(moment, None) * _PER_SECOND // 10**6)


def _ticks(moment: "np.datetime64[Any]") -> int:
    """Attoseconds since 1970, which any unit is a multiple of; years and months are taken by their first day."""
    unit, step = np.datetime_data(moment.dtype)
    if unit not in _TICKS:
        moment, unit, step = moment.astype("datetime64[D]"), "D", 1
    return int(moment.astype(np.int64)) * step * _TICKS[unit]


def _plain_time(moment: time) -> bytes:
    """Seconds and microseconds of a clock, less its offset if it has one; the two kinds are never equal."""
    offset, seconds = moment.utcoffset(), (moment.hour * 60 + moment.minute) * 60 + moment.second
    if offset is None:
        return b"clock %d %d" % (seconds, moment.microsecond)
    return b"clock with offset %d %d" % (seconds - offset // timedelta(seconds=1), moment.microsecond)
