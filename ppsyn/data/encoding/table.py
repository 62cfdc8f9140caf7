"""Tables to codes, from the public schema alone: find each value, then send outsiders where the schema says."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pandas as pd
from typing_extensions import override

from ppsyn.arrays import Codes
from ppsyn.data.encoding.numbers import find_labels, find_truths, read_real, read_whole
from ppsyn.data.encoding.parsing import Fit, Raw, Reading
from ppsyn.data.encoding.temporal import read_days, read_moments
from ppsyn.domain import Domain, check_codes
from ppsyn.errors import DomainRefusedError, SchemaError
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
from ppsyn.schemas.table import TableSchema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EncodedTable:
    """A private table, as codes."""

    domain: Domain
    columns: dict[str, Codes]

    def __post_init__(self) -> None:
        """Refuse columns that do not fit the domain."""
        check_codes(self.columns, self.domain)

    @override
    def __repr__(self) -> str:
        return f"EncodedTable({', '.join(self.domain.names)})"


def check_refusals(codes: Mapping[str, Codes], schema: TableSchema) -> None:
    """Stop if a column has refused a value.

    Privacy:
        Reads private codes. Stopping tells that a value is refused (PRIVACY.md, L2);
        the error names the column and the rule, never the value nor how many.

    Raises:
        DomainRefusedError: If a column refuses a value; the first such column of the schema.
    """
    for column in schema.attributes:
        if (codes[column.name] == REFUSED).any():
            raise refusal_of(column)


def encode_marked(frame: pd.DataFrame, schema: TableSchema) -> dict[str, Codes]:
    """The codes of a private table, with -1 for each value that its column refuses; whoever asks must look for it.

    Privacy:
        As of `encode`; nothing can stop it.

    Raises:
        SchemaError: If a column is missing, repeated, or neither in `columns` nor in `excluded`.
    """
    _check_names(frame, schema)
    return {column.name: mark_column(frame[column.name], column) for column in schema.attributes}


def _check_names(frame: pd.DataFrame, schema: TableSchema) -> None:
    """Refuse a table whose columns are not those of the schema. Names are public."""
    names = [column.name for column in schema.columns]
    present: set[object] = set()
    for name in frame.columns:
        if name in present:
            raise SchemaError(f"Expected the column {name!r} once in the table.")
        if name not in names and name not in schema.excluded:
            raise SchemaError(f"Expected no column {name!r} in the table; add it to columns or to excluded.")
        present.add(name)
    for column in schema.read:
        if column.name not in present:
            raise SchemaError(f"Expected a column {column.name!r} in the table.")


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
    return _apply_policy(place_column(raw, column), column)


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


def _apply_policy(place: Reading, column: ColumnSchema) -> Codes:
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
