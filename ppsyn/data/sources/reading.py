"""One way to read all sources. No error of a reader gets out: its message may quote a row."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

import csv
from collections.abc import Iterator
from typing import TypeAlias

import pandas as pd
import pyarrow as pa

from ppsyn.data.sources.batches import Batch, check_names, guarded, needed_columns
from ppsyn.data.sources.csv import check_delimiter, csv_frames, csv_names, csv_rule, in_plain_words
from ppsyn.data.sources.files import UNREADABLE, Fragment, find_fragments
from ppsyn.data.sources.parquet import check_ids, parquet_frames, parquet_names, parquet_rule, parquet_types
from ppsyn.errors import SourceError
from ppsyn.extras import require
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.release import CsvSource, ParquetSource, Source, SqlSource
from ppsyn.schemas.table import TableSchema

_Files: TypeAlias = CsvSource | ParquetSource

_BROKEN = (*UNREADABLE, pa.ArrowException, csv.Error, ValueError)


def check_source(source: Source, schema: TableSchema, person: PersonUnit | None) -> None:
    """See that the table is there and has the columns of its schema; no row is read.

    Raises:
        SourceError: If it is not, with the file or the query, the rule and what to do.
        SchemaError: If the person column is released, or cannot tell persons apart.
    """
    needed_columns(schema, person)
    if isinstance(source, SqlSource):
        require("sql", "A query as a source")
        from ppsyn.data.sources.sql import QUERY, check_query

        check_names(check_query(source), QUERY, schema)
        return
    if isinstance(source, CsvSource):
        check_delimiter(source)
    for fragment in find_fragments(source):
        _check_fragment(fragment, source, schema, person)


def check_stable(source: Source, person: PersonUnit | None) -> list[str]:
    """What the owner has to answer for, so that one unit moves no rows of another: a sentence each; no row is read.

    Files are read row by row by themselves (PRIVACY.md, C8); of a query its text is looked at (L3).

    Raises:
        SourceError: If the query lets one unit move the rows of others, as far as its text tells.
    """
    if not isinstance(source, SqlSource):
        return []
    require("sql", "A query as a source")
    from ppsyn.data.sources.sql import check_stable as query_stable

    return query_stable(source, person)


def columns_of(source: Source) -> pa.Schema:
    """The names of the columns, with their types where the source has some and null where not; no row is read.

    Raises:
        SourceError: If the table is not there, or its first line is no header.
    """
    if isinstance(source, SqlSource):
        require("sql", "A query as a source")
        from ppsyn.data.sources.sql import query_columns

        return query_columns(source)
    first = find_fragments(source)[0]
    if isinstance(source, CsvSource):
        check_delimiter(source)
        return _untyped(csv_names(first, source))
    return parquet_types(first)


def names_of(source: Source) -> list[str]:
    """The names of the columns, as `columns_of` finds them."""
    return list(columns_of(source).names)


def read_frames(source: CsvSource | ParquetSource, names: list[str]) -> Iterator[pd.DataFrame]:
    """The columns of these names of a table that need not fit a schema, so many rows at a time.

    Raises:
        SourceError: If a part of the table cannot be read.
    """
    for fragment in find_fragments(source):
        yield from guarded(_frames(fragment, source, names, None), _BROKEN, _rule(fragment, source))


def _untyped(names: list[str]) -> pa.Schema:
    return pa.schema([pa.field(name, pa.null()) for name in names])


def read_batches(source: Source, schema: TableSchema, person: PersonUnit | None) -> Iterator[Batch]:
    """The private table, so many rows at a time, in bounded memory.

    Privacy:
        What a row is read as depends on no other row (PRIVACY.md, C8 and L3): no
        type is guessed. An error tells the file, or that it was the query, and the
        rule; never a value, a row's number or the message of a library.

    Raises:
        SourceError: If a part of the table cannot be read.
        SchemaError: If the person column is released, or cannot tell persons apart.
    """
    names = needed_columns(schema, person)
    if isinstance(source, SqlSource):
        require("sql", "A query as a source")
        from ppsyn.data.sources.sql import QUERY, query_frames

        for frame in query_frames(source, names):
            yield Batch(QUERY, frame)
        return
    for fragment in find_fragments(source):
        own = _check_fragment(fragment, source, schema, person)
        inside = [name for name in names if name in own]
        for frame in guarded(_frames(fragment, source, inside, person), _BROKEN, _rule(fragment, source)):
            if isinstance(source, CsvSource):
                frame = in_plain_words(frame, source, schema)  # noqa: PLW2901
            outside = {name: _repeated(fragment.partition[name], len(frame)) for name in names if name not in own}
            yield Batch(fragment.url, frame.assign(**outside)[names] if outside else frame)


def _check_fragment(fragment: Fragment, source: _Files, schema: TableSchema, person: PersonUnit | None) -> list[str]:
    """The columns of the file itself; those that it lacks are in the names of its folders."""
    own = csv_names(fragment, source) if isinstance(source, CsvSource) else parquet_names(fragment)
    columns = [column.name for column in schema.read]
    lacking = [name for name in (*columns, *schema.excluded) if name not in own and name in fragment.partition]
    if set(columns) <= set(lacking):
        raise SourceError(f"Expected a column of the schema in {fragment.url} itself, not in the name of its folder.")
    check_names([*own, *lacking], fragment.url, schema)
    if isinstance(source, ParquetSource) and person is not None and person.column in own:
        check_ids(fragment, person.column)
    return own


def _repeated(value: str | None, rows: int) -> "pd.Series[str]":
    """A column of one text, as it would be read from a CSV file."""
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.repeat(pa.scalar(value, pa.string()), rows)))


def _frames(fragment: Fragment, source: _Files, names: list[str], person: PersonUnit | None) -> Iterator[pd.DataFrame]:
    if isinstance(source, CsvSource):
        return csv_frames(fragment, source, names, None if person is None else person.column)
    return parquet_frames(fragment, source, names)


def _rule(fragment: Fragment, source: _Files) -> str:
    return csv_rule(fragment, source) if isinstance(source, CsvSource) else parquet_rule(fragment)
