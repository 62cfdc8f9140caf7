"""One raw column to codes: find the place of each value, then send outsiders where the schema says."""

from enum import Enum

import numpy as np

from ppsyn.arrays import Codes
from ppsyn.data.encoding.labels import find_labels, find_truths
from ppsyn.data.encoding.numeric import read_real, read_whole
from ppsyn.data.encoding.parsing import Fit, Raw, Reading
from ppsyn.data.encoding.temporal import read_days, read_moments
from ppsyn.errors import DomainRefusedError
from ppsyn.schemas.columns import (
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


class Fate(Enum):
    """What becomes of a value, by how it fits its column."""

    KEPT = "kept"
    CLIPPED = "clipped"
    OTHER = "other"
    NULL = "null"
    FIRST = "first"
    """The first bin, where there is nothing else for what cannot be compared."""
    REFUSED = "refused"


def fate_of(fit: Fit, column: ColumnSchema) -> Fate:
    """What the schema says of a value that fits its column so."""
    if fit is Fit.INSIDE or (fit is Fit.NULL and column.nullable):
        return Fate.KEPT
    if column.outside == "refuse":
        return Fate.REFUSED
    if fit is Fit.OUTSIDE:
        return {"other": Fate.OTHER, "null": Fate.NULL}.get(column.outside, Fate.CLIPPED)
    if column.nullable:
        return Fate.NULL
    return Fate.FIRST if column.other is None else Fate.OTHER


def mark_column(raw: Raw, column: ColumnSchema) -> Codes:
    """Encode a private column, with `REFUSED` for each value that its policy refuses.

    Privacy:
        The code of a value, or its refusal, depends on the schema and on that value alone.
    """
    return _settle(place_column(raw, column), column)


def place_column(raw: Raw, column: ColumnSchema) -> Reading:
    """The nearest code of each value of a private column, and how the value fits."""
    match column:
        case CategoricalColumn():
            return find_labels(raw, column.labels)
        case BooleanColumn():
            return find_truths(raw)
        case _:
            return _find_bins(raw, column)


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
    codes, targets = (
        place.values,
        {
            Fate.OTHER: column.other_code,
            Fate.NULL: column.null_code,
            Fate.FIRST: 0,
            Fate.REFUSED: REFUSED,
        },
    )
    for fit in (Fit.OUTSIDE, Fit.MISFIT, Fit.NULL):
        fate = fate_of(fit, column)
        target = column.null_code if fit is Fit.NULL and fate is Fate.KEPT else targets.get(fate)
        if target is not None:
            codes = np.where(place.fits == fit, target, codes)
    return codes.astype(np.int32)
