"""One raw column to codes: find the place of each value, then send outsiders where the schema says."""

import numpy as np

from ppsyn.arrays import Codes
from ppsyn.discretize.labels import find_labels, find_truths
from ppsyn.discretize.numeric import read_real, read_whole
from ppsyn.discretize.reading import Fit, Raw, Reading
from ppsyn.discretize.temporal import read_days, read_moments
from ppsyn.errors import DomainRefusedError
from schemas.columns import (
    BinnedColumn,
    BooleanColumn,
    CategoricalColumn,
    ColumnSchema,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    RealColumn,
)

REFUSED = -1
"""Stands where a value is refused; it is no code."""


def refusal_of(column: ColumnSchema) -> DomainRefusedError:
    """The error of a column that refuses a value, from the schema alone."""
    return DomainRefusedError(column.name, column.rule if column.null_code is None else f"{column.rule}, or null")


def mark_column(raw: Raw, column: ColumnSchema) -> Codes:
    """Encode a private column, with `REFUSED` for each value that its policy refuses.

    Privacy:
        The code of a value, or its refusal, depends on the schema and on that value alone.
    """
    match column:
        case CategoricalColumn():
            place = find_labels(raw, column.labels)
        case BooleanColumn():
            place = find_truths(raw)
        case _:
            place = _find_bins(raw, column)
    return _settle(place, column)


def _find_bins(raw: Raw, column: BinnedColumn) -> Reading:
    reading = read_positions(raw, column)
    is_outside = (reading.fits == Fit.INSIDE) & ~column.intervals.hold(reading.values)
    return Reading(
        column.intervals.nearest(reading.values).astype(np.int64),
        np.where(is_outside, np.int8(Fit.OUTSIDE), reading.fits),
    )


def read_positions(raw: Raw, column: BinnedColumn) -> Reading:
    """Where on the axis of its column each value lies."""
    match column:
        case IntegerColumn():
            return read_whole(raw)
        case RealColumn():
            return read_real(raw)
        case DateColumn():
            return read_days(raw)
        case DatetimeColumn():
            return read_moments(raw, column.zone)


def _settle(place: Reading, column: ColumnSchema) -> Codes:
    """Send each outsider, misfit and null to its code, or mark it as refused."""
    codes, fits = place.values, place.fits
    null, other = column.null_code, column.other_code
    outside = {"other": other, "null": null}.get(column.outside)
    if outside is not None:
        codes = np.where(fits == Fit.OUTSIDE, outside, codes)
    incomparable = next(code for code in (null, other, 0) if code is not None)
    codes = np.where(fits >= Fit.MISFIT, incomparable, codes)
    if column.outside == "refuse":
        is_refused = (fits != Fit.INSIDE) & ((fits != Fit.NULL) | (null is None))
        codes = np.where(is_refused, REFUSED, codes)
    return codes.astype(np.int32)
