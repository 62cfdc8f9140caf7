"""How values are written in a CSV file: what a field means is settled by its own characters and by the source."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeAlias

import pandas as pd
import pyarrow as pa

from ppsyn.schemas.columns import BooleanColumn, ColumnSchema, DateColumn, DatetimeColumn, IntegerColumn, RealColumn
from ppsyn.schemas.release import CsvSource
from ppsyn.schemas.table import TableSchema

_THOUSANDS = {None: "", " ": " \u00a0\u202f", "'": "'\u2019"}
"""The characters that a mark between groups of digits may be written by; any other is itself alone."""

_MISFIT = "\0field"
"""Stands for a field that is not written as the source says: no field can hold it, and it fits no domain."""

_Rewrite: TypeAlias = Callable[[str], str]


def in_plain_words(frame: pd.DataFrame, source: CsvSource, schema: TableSchema) -> pd.DataFrame:
    """The same rows, written as numbers, dates and truth values are where a source says nothing.

    Privacy:
        What a field becomes depends on the source, the schema and the field alone.
    """
    rewrites = {column.name: _rewrite_of(column, source) for column in schema.columns if column.name in frame}
    return frame.assign(**{name: _each(frame[name], rewrite) for name, rewrite in rewrites.items() if rewrite})


def _each(column: "pd.Series[str]", rewrite: _Rewrite) -> "pd.Series[str]":
    """Rewrite each distinct text once."""
    positions, distinct = pd.factorize(column)
    # What stands for a line that cannot be read stays what it is.
    texts = pa.array([text if "\0" in text else rewrite(text) for text in map(str, distinct)], pa.string())
    return pd.Series(pd.arrays.ArrowExtensionArray(texts.take(pa.array(positions, mask=positions < 0))))


def _rewrite_of(column: ColumnSchema, source: CsvSource) -> _Rewrite | None:
    match column:
        case IntegerColumn() | RealColumn() if source.decimal != "." or source.thousands is not None:
            return partial(_number, decimal=source.decimal, marks=_marks(source), form=_number_form(source))
        case DateColumn() if source.dates is not None:
            return partial(_moment, form=source.dates)
        case DatetimeColumn() if source.datetimes is not None:
            return partial(_moment, form=source.datetimes)
        case BooleanColumn() if source.trues or source.falses:
            words = dict.fromkeys(source.trues, "true") | dict.fromkeys(source.falses, "false")
            return lambda text: words.get(text, text)
        case _:
            return None


def _number_form(source: CsvSource) -> re.Pattern[str]:
    mark = _THOUSANDS.get(source.thousands, source.thousands)
    whole = f"[0-9]{{1,3}}(?:[{mark}][0-9]{{3}})+|[0-9]+" if mark else "[0-9]+"
    return re.compile(rf"([-+]?)({whole})?(?:{re.escape(source.decimal)}([0-9]*))?([eE][-+]?[0-9]+)?")


def _marks(source: CsvSource) -> str:
    """What stands in no number that is written in another way."""
    return f".{source.decimal}{_THOUSANDS.get(source.thousands, source.thousands)}"


def _number(text: str, decimal: str, marks: str, form: re.Pattern[str]) -> str:
    found = form.fullmatch(text.strip())
    if found is None:
        return _MISFIT if any(mark in text for mark in marks) else text
    sign, whole, fraction, exponent = (part or "" for part in found.groups())
    digits = re.sub("[^0-9]", "", whole)
    if not digits and not fraction:
        return _MISFIT if decimal in text else text
    return f"{sign}{digits}{'.' if fraction else ''}{fraction}{exponent}"


def _moment(text: str, form: str) -> str:
    try:
        return datetime.strptime(text.strip(), form).isoformat()  # one without an offset is local
    except ValueError:
        return _MISFIT
