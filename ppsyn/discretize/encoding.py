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


def encode_column(raw: Raw, column: ColumnSchema) -> Codes:
    """Encode a private column.

    Privacy:
        The code of a value depends on the schema and on that value alone.

    Raises:
        DomainRefusedError: If the column's policy is to refuse and a value is outside its domain.
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
    reading = _read(raw, column)
    is_outside = (reading.fits == Fit.INSIDE) & ~column.intervals.hold(reading.values)
    return Reading(
        column.intervals.nearest(reading.values).astype(np.int64),
        np.where(is_outside, np.int8(Fit.OUTSIDE), reading.fits),
    )


def _read(raw: Raw, column: BinnedColumn) -> Reading:
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
    """Send each outsider, misfit and null to its code."""
    codes, fits = place.values, place.fits
    null, other = column.null_code, column.other_code
    is_refused = (fits != Fit.INSIDE) & ((fits != Fit.NULL) | (null is None))
    if column.outside == "refuse" and is_refused.any():
        raise DomainRefusedError(column.name, column.rule if null is None else f"{column.rule}, or null")
    outside = {"other": other, "null": null}.get(column.outside)
    if outside is not None:
        codes = np.where(fits == Fit.OUTSIDE, outside, codes)
    incomparable = next(code for code in (null, other, 0) if code is not None)
    return np.where(fits >= Fit.MISFIT, incomparable, codes).astype(np.int32)
