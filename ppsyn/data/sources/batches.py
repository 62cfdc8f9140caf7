"""What every reader gives: some rows of the private table, with the columns that it must have."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
from typing_extensions import override

from ppsyn.errors import SchemaError, SourceError, translated
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.table import TableSchema

VALUES = b"values"
"""In the metadata of a column of a query: all values that its type allows, as JSON."""

UNREADABLE_LINE = "\0line"
"""Stands in every column for a line of a CSV file that cannot be read, which no field can hold: it fits no domain."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Batch:
    """Private rows, with the columns of the schema and the person column if there is one."""

    fragment: str
    """Where they come from: the address of a file, or "the query"."""
    frame: pd.DataFrame

    @override
    def __repr__(self) -> str:
        return f"Batch({self.fragment})"

    def unreadable_lines(self) -> int:
        """How many rows stand for a line that cannot be read. Private."""
        return int((self.frame == UNREADABLE_LINE).any(axis="columns").sum())


def regroup(blocks: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of `rows` rows; the last may have fewer."""
    pending: list[pa.RecordBatch] = []
    count = 0
    for block in blocks:
        start = 0
        while count + block.num_rows - start >= rows:
            taken = rows - count
            pending.append(block.slice(start, taken))
            yield pa.Table.from_batches(pending)
            start, pending, count = start + taken, [], 0
        if start < block.num_rows:
            pending.append(block.slice(start))
            count += block.num_rows - start
    if pending:
        yield pa.Table.from_batches(pending)


def guarded(frames: Iterator[pd.DataFrame], broken: tuple[type[Exception], ...], rule: str) -> Iterator[pd.DataFrame]:
    """The same frames; an error of these kinds shows the rule alone, because its text may quote a row.

    Raises:
        SourceError: With the rule.
    """
    while True:
        with translated(broken, to=SourceError, message=rule):
            frame = next(frames, None)
        if frame is None:
            return
        yield frame


def needed_columns(schema: TableSchema, person: PersonUnit | None) -> list[str]:
    """The columns to read: those of the schema but for those that are computed anyhow, then the person column.

    Raises:
        SchemaError: If the person column is not among those left out of the release.
    """
    names = [column.name for column in schema.read]
    if person is None:
        return names
    if person.column not in schema.excluded:
        raise SchemaError(
            f"Expected the person column {person.column!r} in `excluded` of the schema {schema.name!r}: "
            "it is read, but never released. Add it there."
        )
    return [*names, person.column]


def check_names(found: Sequence[str], fragment: str, schema: TableSchema) -> None:
    """Refuse a fragment whose columns are not those of the schema and of `excluded`, each once.

    Privacy:
        A name that the schema does not have is shown only once all of the schema's
        are there. A file without a header thus never has its first row shown.

    Raises:
        SourceError: It names the fragment and the column.
    """
    wanted = [*(column.name for column in schema.read), *schema.excluded]
    expected = {*wanted, *(column.name for column in schema.columns)}
    for name in wanted:
        if name not in found:
            advice = " or take it out of `excluded`" if name in schema.excluded else ""
            raise SourceError(f"Expected a column {name!r} in {fragment}. Add it there{advice}.")
    for name in found:
        if name not in expected:
            raise SourceError(f"Expected no column {name!r} in {fragment}. Add it to `columns` or to `excluded`.")
        if found.count(name) > 1:
            raise SourceError(f"Expected the column {name!r} once in {fragment}.")
