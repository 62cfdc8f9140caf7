"""What the type of a column says about it, and what is left to a person. No value is looked at."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from zoneinfo import available_timezones

import pyarrow as pa
from pyarrow import types

from ppsyn.data.sources.sql_types import VALUES
from ppsyn.schemas.columns import KINDS
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
    told = (field.metadata or {}).get(VALUES)
    return {} if told is None else {"values": json.loads(told)}
