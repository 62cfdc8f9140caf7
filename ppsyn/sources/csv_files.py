"""CSV files, read as text: what a field is read as depends on nothing but its own characters."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

import csv
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pandas as pd
import pyarrow as pa
from pyarrow import csv as arrow_csv

from ppsyn.errors import SourceError
from ppsyn.sources.batches import regroup
from ppsyn.sources.fragments import UNREADABLE, Fragment, unreadable
from schemas.release import CsvSource

_BLOCK = 2**23
_LONGEST_HEADER = 2**20


def csv_names(fragment: Fragment, source: CsvSource) -> list[str]:
    """The names in the first line.

    Raises:
        SourceError: If it cannot be read, or is not a header.
    """
    try:
        with fragment.opened() as file:
            return _header(file, source.delimiter)[0]
    except UNREADABLE:
        problem = unreadable(fragment.url)
    except (ValueError, csv.Error):
        problem = f"Expected the first line of {fragment.url} to be a header in UTF-8, with quotes closed on that line."
    raise SourceError(problem)


def csv_frames(fragment: Fragment, source: CsvSource, names: Sequence[str]) -> Iterator[pd.DataFrame]:
    """The columns of these names, as text, so many rows at a time.

    Privacy:
        A field is text or, if it is unquoted and listed in `nulls`, null. No type is guessed.
    """
    with fragment.opened() as file:
        header, has_rows = _header(file, source.delimiter)
        if not has_rows:
            return
        file.seek(0)
        reader = arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=arrow_csv.ParseOptions(
                delimiter=source.delimiter, newlines_in_values=True, ignore_empty_lines=len(header) > 1
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=list(names),
                null_values=list(source.nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        for table in regroup(iter(reader), source.batch_rows):
            yield pd.DataFrame({name: _text(table[name]) for name in names})


def csv_rule(fragment: Fragment) -> str:
    """The rule that a file which cannot be parsed has broken."""
    return (
        f"Expected every row of {fragment.url} to have as many fields as the header, in UTF-8, "
        f"and none to be longer than {_BLOCK >> 20} MB."
    )


def check_delimiter(source: CsvSource) -> None:
    """Refuse a delimiter that is no single byte, or that means something else already."""
    if not source.delimiter.isascii() or source.delimiter in '"\r\n':
        raise SourceError(f"Expected delimiter={source.delimiter!r} to be ASCII, and no quote nor end of line.")


def _header(file: BinaryIO, delimiter: str) -> tuple[list[str], bool]:
    """The names in the first line, and whether anything comes after it."""
    start = file.readline(_LONGEST_HEADER)
    line, *rest = re.split(rb"\r\n|\r|\n", start, maxsplit=1)
    names = next(csv.reader([line.decode("utf-8-sig")], delimiter=delimiter, strict=True), [])
    return names, bool(rest and rest[0]) or file.read(1) != b""


def _text(column: pa.ChunkedArray) -> "pd.Series[str]":
    return pd.Series(pd.arrays.ArrowExtensionArray(column))
