"""What is known of a column: by its name and type, of which no value is looked at, and by values of a public sample."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TypeAlias
from zoneinfo import available_timezones

import numpy as np
import pyarrow as pa
from pyarrow import types
from pydantic import TypeAdapter, ValidationError

from ppsyn.data.encoding.numbers import SATURATION, find_truths, read_real, read_whole
from ppsyn.data.encoding.parsing import Fit, Raw, Reading
from ppsyn.data.encoding.temporal import read_days, read_moments
from ppsyn.data.sources.batches import VALUES
from ppsyn.schemas.columns import KINDS, ColumnSchema
from ppsyn.schemas.columns.calendar import DAY_MICROSECONDS, local_time
from ppsyn.schemas.files import Unfilled

Fields: TypeAlias = Mapping[str, object]
"""The fields of a column as a schema file has them, with `Unfilled` where a person has to say."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """A column of a draft.

    Attributes:
        fields: None if the column had better be left out of the release.
        note: Why, or what to look at.
    """

    name: str
    fields: Fields | None
    note: str = ""


NULLABLE = Unfilled("true or false, whether a value may be missing")
LOWER, UPPER = Unfilled("the least value that can occur"), Unfilled("the greatest value that can occur")

_KIND = Unfilled(f"one of {', '.join(KINDS)}")
_FIELDS: Mapping[str, Fields] = {
    "boolean": {},
    "integer": {"lower": LOWER, "upper": UPPER},
    "real": {"lower": LOWER, "upper": UPPER, "bins": Unfilled("how many bins; few and wide ones are best")},
    "categorical": {"values": Unfilled("[the, values, that, can, occur]"), "other": "other"},
    "date": {"lower": LOWER, "upper": UPPER, "unit": Unfilled("day, week, month, quarter or year")},
    "datetime": {"lower": LOWER, "upper": UPPER, "unit": Unfilled("minute, hour, day, week, month, quarter or year")},
}

_Is: TypeAlias = Callable[[pa.DataType], bool]
_KINDS: tuple[tuple[_Is, str], ...] = (
    (types.is_boolean, "boolean"),
    (types.is_integer, "integer"),
    (types.is_floating, "real"),
    (types.is_decimal, "real"),
    (types.is_string, "categorical"),
    (types.is_large_string, "categorical"),
    (types.is_string_view, "categorical"),
    (types.is_date, "date"),
    (types.is_timestamp, "datetime"),
)


def kind_of(found: pa.DataType) -> str | None:
    """The kind of column that a type stands for; None if it stands for none, or is not known."""
    if types.is_dictionary(found):
        return kind_of(found.value_type)
    return next((kind for is_kind, kind in _KINDS if is_kind(found)), None)


def draft_column(field: pa.Field) -> Drafted:
    """What is known of a column by its name and type."""
    nullable = NULLABLE if field.nullable else False
    if types.is_null(field.type):
        return Drafted(field.name, {"kind": _KIND, "nullable": NULLABLE})
    kind = kind_of(field.type)
    if kind is None:
        return Drafted(field.name, None, f"of the type {field.type}, which no kind of column can hold")
    zone = getattr(field.type, "tz", None)
    zoned = {"timezone": zone} if zone in available_timezones() else {}
    return Drafted(field.name, {"kind": kind, "nullable": nullable, **_FIELDS[kind], **zoned, **_listed(field)})


def _listed(field: pa.Field) -> Fields:
    """The values of an enumerated type, if it is one."""
    listed = (field.metadata or {}).get(VALUES)
    return {} if listed is None else {"values": json.loads(listed)}


_COLUMN: TypeAdapter[ColumnSchema] = TypeAdapter(ColumnSchema)

_OWN_CODES = 100
"""So many whole numbers, or fewer, are each a code of their own."""
_BINS = 40
"""At most about so many bins otherwise."""
_MOST_VALUES = 100
"""More different texts are an id or free text."""
_PADDED = re.compile(r"\s*[-+]?0[0-9]")
"""Digits that are no number: a code whose noughts matter."""
_KEPT_FIELDS = ("timezone", "values")
"""What a type may say, and a sample does not know better."""
_TRUTHS = frozenset({"true", "false"})

_Proposal: TypeAlias = Callable[[Raw], Fields | None]


def propose(drafted: Drafted, raw: Raw) -> Drafted:
    """The column, filled in from public values of it.

    Values that the sample lacks are clipped, become `other`, or null where the sample has nulls.
    """
    if drafted.fields is None:
        return drafted
    is_null = read_whole(raw).fits == Fit.NULL
    present = raw[~is_null]
    if not len(present):
        return Drafted(drafted.name, drafted.fields, "the sample holds no value of it")
    kind = drafted.fields["kind"]
    kinds = tuple(_PROPOSALS) if isinstance(kind, Unfilled) else (str(kind),)
    found = next((fields for name in kinds if (fields := _PROPOSALS[name](present)) is not None), None)
    if found is None and kinds[-1] == "categorical":
        return Drafted(drafted.name, None, f"more than {_MOST_VALUES} different texts: an id, or free text?")
    kept = {
        name: value
        for name, value in drafted.fields.items()
        if name in _KEPT_FIELDS and not isinstance(value, Unfilled)
    }
    fields = {"kind": kind, "nullable": bool(is_null.any()), **(found or {}), **kept}
    try:
        _COLUMN.validate_python({"name": drafted.name, **fields})
    except ValidationError:
        return Drafted(drafted.name, drafted.fields, "the values of the sample fit no column as they are")
    is_id = len(present) > _OWN_CODES and present.is_unique and fields["kind"] != "real"
    return Drafted(drafted.name, fields, "no value comes twice: an id? then move it to `excluded`" if is_id else "")


def _boolean(present: Raw) -> Fields | None:
    """Truth values, or the words for them; noughts and ones are numbers."""
    is_truth = present.dtype.kind == "b" or {str(value).strip().casefold() for value in present.unique()} <= _TRUTHS
    return {"kind": "boolean", "nullable": True} if is_truth and _all_inside(find_truths(present)) else None


def _integer(present: Raw) -> Fields | None:
    reading = read_whole(present)
    if not _all_inside(reading) or _is_padded(present) or np.abs(reading.values).max() >= SATURATION:
        return None
    lower, upper = int(reading.values.min()), int(reading.values.max())
    if upper - lower < _OWN_CODES:
        return {"kind": "integer", "lower": lower, "upper": upper}
    step = int(_nice_step(Decimal(upper - lower) / _BINS))
    return {"kind": "integer", "lower": lower // step * step, "upper": -(-(upper + 1) // step) * step - 1, "step": step}


def _real(present: Raw) -> Fields | None:
    reading = read_real(present)
    if not _all_inside(reading) or _is_padded(present) or not np.isfinite(reading.values).all():
        return None
    least, greatest = (Decimal(repr(float(value))) for value in (reading.values.min(), reading.values.max()))
    step = _nice_step((greatest - least) / _BINS)
    first, last = (least / step).to_integral_value("ROUND_FLOOR"), (greatest / step).to_integral_value("ROUND_CEILING")
    last = max(last, first + 1)
    return {"kind": "real", "lower": float(first * step), "upper": float(last * step), "bins": int(last - first)}


def _date(present: Raw) -> Fields | None:
    reading = read_days(present)
    if not _all_inside(reading) or np.any(read_moments(present, None).values % DAY_MICROSECONDS):
        return None
    first, last = (_day(int(value) * DAY_MICROSECONDS) for value in (reading.values.min(), reading.values.max()))
    return _calendar("date", first, last, (("day", 62), ("month", 366 * 4), ("quarter", 366 * 15), ("year", 366 * 300)))


def _datetime(present: Raw) -> Fields | None:
    reading = read_moments(present, None)
    if not _all_inside(reading):
        return None
    first, last = (_day(int(value)) for value in (reading.values.min(), reading.values.max()))
    units = (("hour", 3), ("day", 62), ("month", 366 * 4), ("quarter", 366 * 15), ("year", 366 * 300))
    return _calendar("datetime", first, last, units)


def _categorical(present: Raw) -> Fields | None:
    values = sorted({str(value) for value in present.unique()})
    if len(values) > _MOST_VALUES:
        return None
    other = next((value for value in values if value.casefold() == "other"), "other")
    return {"kind": "categorical", "values": values, "other": other}


_PROPOSALS: Mapping[str, _Proposal] = {
    "boolean": _boolean,
    "integer": _integer,
    "real": _real,
    "date": _date,
    "datetime": _datetime,
    "categorical": _categorical,
}
"""In the order in which they are tried where no type says which it is."""


def _calendar(kind: str, first: date | None, last: date | None, units: Sequence[tuple[str, int]]) -> Fields | None:
    """Whole years where there are many days, cut by the unit that makes not too many bins."""
    if first is None or last is None:
        return None
    days = (last - first).days
    unit = next((name for name, most in units if days <= most), None)
    if unit is None:
        return None
    if days > 366:
        first, last = date(first.year, 1, 1), date(last.year, 12, 31)
    bounds: tuple[object, object] = (first, last) if kind == "date" else (first.isoformat(), last.isoformat())
    return {"kind": kind, "lower": bounds[0], "upper": bounds[1], "unit": unit}


def _day(microseconds: int) -> date | None:
    try:
        return local_time(microseconds, None).date()
    except OverflowError:  # a year that the calendar does not have
        return None


def _all_inside(reading: Reading) -> bool:
    return bool(np.all(reading.fits == Fit.INSIDE))


def _is_padded(present: Raw) -> bool:
    return any(isinstance(value, str) and _PADDED.match(value) for value in present.unique())


def _nice_step(least: Decimal) -> Decimal:
    """1, 2 or 5 times a power of ten, not below `least`; 1 for nothing."""
    if not least:
        return Decimal(1)
    power = Decimal(10) ** math.floor(least.log10())
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
