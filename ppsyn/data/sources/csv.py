"""CSV files, read as text: what a row is read as depends on nothing but its own line.

The source says how numbers, dates and truth values are written; what a field means depends on its own characters.
"""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

import csv
import gzip
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import BinaryIO, TypeAlias, cast

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow_csv

from ppsyn.data.sources.batches import UNREADABLE_LINE, regroup
from ppsyn.data.sources.csv_lines import is_plain, readable, whole_lines
from ppsyn.data.sources.files import UNREADABLE, Fragment, unreadable
from ppsyn.errors import InvariantError, SourceError, translated
from ppsyn.schemas.columns import BooleanColumn, ColumnSchema, DateColumn, DatetimeColumn, IntegerColumn, RealColumn
from ppsyn.schemas.release import CsvSource
from ppsyn.schemas.table import TableSchema

_LONGEST_HEADER = 2**20
_LONGEST_ROW = 2**23
_MARK = "\ufeff"


def csv_names(fragment: Fragment, source: CsvSource) -> list[str]:
    """The names in the first line.

    Raises:
        SourceError: If it cannot be read, or is not a header.
    """
    rule = (
        f"Expected the first line of {fragment.url} to be a header in {source.encoding}, with quotes closed on that "
        "line, and lines to end with \\n or \\r\\n."
    )
    with (
        translated((ValueError, csv.Error), to=SourceError, message=rule),
        translated(UNREADABLE, to=SourceError, message=unreadable(fragment.url)),
        _opened(fragment) as file,
    ):
        return _header(file, source)


def csv_frames(
    fragment: Fragment, source: CsvSource, names: Sequence[str], person_column: str | None
) -> Iterator[pd.DataFrame]:
    """The columns of these names, as text, so many rows at a time.

    Privacy:
        A line is a row, and what it is read as depends on that line alone (PRIVACY.md, C8). One that cannot be
        read has `UNREADABLE_LINE` in every column and belongs to nobody. A field is text or, if it is unquoted and
        listed in `nulls`, null. No type is guessed. Where the source says that values hold newlines, a row is what
        is left of the file by those before it, and one that cannot be read stops the reading (L3).
    """
    with _opened(fragment) as file:
        header = _header(file, source)
        if source.newlines_in_values:
            blocks = _any_rows(file, source, names)
        else:
            blocks = _rows(file, source, header, names, person_column)
        for table in regroup(blocks, source.batch_rows):
            yield pd.DataFrame({name: _text(table[name]) for name in names})


def csv_rule(fragment: Fragment, source: CsvSource) -> str:
    """The rule that a file which cannot be read has broken."""
    if not source.newlines_in_values:
        return unreadable(fragment.url)
    return (
        f"Expected every row of {fragment.url} to have as many fields as the header, in {source.encoding}, "
        f"and none to be longer than {_LONGEST_ROW >> 20} MB."
    )


@contextmanager
def _opened(fragment: Fragment) -> Generator[BinaryIO]:
    with fragment.open() as file:
        if not fragment.key.lower().endswith(".gz"):
            yield file
            return
        with gzip.GzipFile(fileobj=file) as text:
            yield cast("BinaryIO", text)


def _header(file: BinaryIO, source: CsvSource) -> list[str]:
    """The names in the first line, which is read and no more."""
    line = file.readline(_LONGEST_HEADER).removesuffix(b"\n").removesuffix(b"\r")
    if b"\r" in line:
        raise ValueError
    return next(
        csv.reader([line.decode(source.encoding).removeprefix(_MARK)], delimiter=source.delimiter, strict=True), []
    )


def _rows(
    file: BinaryIO, source: CsvSource, header: list[str], names: Sequence[str], person_column: str | None
) -> Iterator[pa.RecordBatch]:
    def parsed(lines: bytes) -> pa.Table:
        # The empty first line is skipped; without it Arrow would take a byte order mark off the second.
        return arrow_csv.read_csv(
            pa.BufferReader(b"\n" + lines),
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=len(lines) + 2, column_names=header, skip_rows=1
            ),
            parse_options=_syntax(source, len(header)),
            convert_options=_meaning(source, names),
        )

    for lines in whole_lines(file, source.encoding):
        if is_plain(lines):
            with suppress(pa.ArrowInvalid):  # another number of fields
                yield from parsed(lines).to_batches()
                continue
        text, unreadable_rows, rows = readable(lines, source.delimiter, len(header))
        table = parsed(text)
        if table.num_rows != rows:
            raise InvariantError("Lines of a CSV file were read as more or fewer rows than there are.")
        yield from _marked(table, unreadable_rows, person_column).to_batches()


def _marked(table: pa.Table, rows: np.ndarray, person_column: str | None) -> pa.Table:
    """The table with these rows as what stands for a line that cannot be read."""
    if not rows.size:
        return table
    is_unreadable = pa.array(np.isin(np.arange(table.num_rows), rows))
    for place, name in enumerate(table.column_names):
        mark = pa.scalar(None if name == person_column else UNREADABLE_LINE, pa.string())
        marked = compute.call_function("if_else", [is_unreadable, mark, table[name]])
        table = table.set_column(place, name, marked)
    return table


def _any_rows(file: BinaryIO, source: CsvSource, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Rows whose values may hold newlines."""
    has_rows = file.read(1) != b""
    file.seek(0)
    fields = len(_header(file, source))
    if not has_rows:
        return
    file.seek(0)
    yield from arrow_csv.open_csv(
        file,
        read_options=arrow_csv.ReadOptions(use_threads=False, block_size=_LONGEST_ROW, encoding=source.encoding),
        parse_options=_syntax(source, fields),
        convert_options=_meaning(source, names),
    )


def _syntax(source: CsvSource, fields: int) -> arrow_csv.ParseOptions:
    return arrow_csv.ParseOptions(
        delimiter=source.delimiter, newlines_in_values=source.newlines_in_values, ignore_empty_lines=fields > 1
    )


def _meaning(source: CsvSource, names: Sequence[str]) -> arrow_csv.ConvertOptions:
    return arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        include_columns=list(names),
        null_values=list(source.nulls),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def check_delimiter(source: CsvSource) -> None:
    """Refuse a delimiter that is no single byte, or that means something else already."""
    if not source.delimiter.isascii() or source.delimiter in '"\r\n\0':
        raise SourceError(
            f"Expected delimiter={source.delimiter!r} to be ASCII, and no quote nor end of line. Use a comma."
        )


def _text(column: pa.ChunkedArray) -> "pd.Series[str]":
    return pd.Series(pd.arrays.ArrowExtensionArray(column))


# How values are written


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
