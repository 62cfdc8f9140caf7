"""The schema check: count what a schema does to the values of a private table. All of it is private."""

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
from typing_extensions import override

from ppsyn.data.contributions import ContributionBounder
from ppsyn.data.encoding import rows_broken
from ppsyn.data.encoding.parsing import Fit
from ppsyn.data.encoding.table import Fate, fate_of, place_column
from ppsyn.data.sources import names_of, read_batches
from ppsyn.errors import SchemaError
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.limits import TEXT_CHARACTERS
from ppsyn.schemas.release import CsvSource, Source
from ppsyn.schemas.table import TableSchema

_FIRST_ROWS = 100_000
"""Enough rows to see that a file is not written as described. Reading them takes about a second."""


@dataclass(frozen=True, slots=True)
class NameComparison:
    """How the columns of a table compare with those of a schema. Names are public.

    Attributes:
        excluded: In `excluded` of the schema and in the table.
        missing: In `columns` of the schema and not in the table.
        absent: In `excluded` of the schema and not in the table.
        unknown: In the table, and neither in `columns` nor in `excluded`.
    """

    present: tuple[str, ...]
    excluded: tuple[str, ...]
    missing: tuple[str, ...]
    absent: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether a release would take the table."""
        return not (self.missing or self.absent or self.unknown)


@dataclass(slots=True, repr=False)
class EncodingSummary:
    """How the values of a table relate to its schema, by column. Private.

    Attributes:
        kept: Rows that are left after contribution bounding, if each person counts with some rows only.
        unreadable: Rows that are lines of CSV files that cannot be read.
        broken: How many rows break each rule, and contradict each column that follows from others; by its name.
    """

    names: NameComparison
    fits: dict[str, Counter[Fit]]
    rows: int = 0
    kept: int | None = None
    unreadable: int = 0
    columns: dict[str, ColumnSchema] = field(default_factory=dict[str, ColumnSchema])
    broken: Counter[str] = field(default_factory=Counter[str])

    @override
    def __repr__(self) -> str:
        return "EncodingSummary()"

    def outcomes(self, name: str) -> dict[Fate, int]:
        """How many values of a column have which outcome; nulls that are part of the domain are kept."""
        found: Counter[Fate] = Counter()
        for fit, count in self.fits[name].items():
            found[fate_of(fit, self.columns[name])] += count
        return found

    @property
    def is_refused(self) -> bool:
        """Whether a release would stop."""
        return not self.names.is_whole or any(self.outcomes(name)[Fate.REFUSED] for name in self.fits)


def compare_names(source: Source, schema: TableSchema) -> NameComparison:
    """Compare the names of the table's columns with the schema; no row is read.

    Privacy:
        A table that has none of the columns may have no header: the error quotes nothing of its first line.

    Raises:
        SourceError: If the table is not there.
        SchemaError: If it has none of the columns, or a name that no schema can hold.
    """
    found = names_of(source)
    if (longest := max(map(len, found), default=0)) > TEXT_CHARACTERS:
        raise SchemaError(
            f"Expected names of columns of at most {TEXT_CHARACTERS:,} characters, got one of {longest:,}. Rename it."
        )
    released = [column.name for column in schema.columns]
    missing = tuple(column.name for column in schema.read if column.name not in found)
    if not set(released) & set(found):
        raise SchemaError(f"Expected the table to have columns of the schema {schema.name!r}; it has none of them.")
    known = {*released, *schema.excluded}
    return NameComparison(
        tuple(name for name in released if name in found),
        tuple(name for name in schema.excluded if name in found),
        missing,
        tuple(name for name in schema.excluded if name not in found),
        tuple(dict.fromkeys(name for name in found if name not in known)),
    )


def lost_columns(source: Source, schema: TableSchema) -> list[str]:
    """The columns of which most values would change, by the first rows of a table that has all columns.

    Privacy:
        Reads the private table. The result is private, and no noise is added to it.

    Raises:
        PPSynError: If the first rows cannot be read.
    """
    rows, kept = 0, Counter[str]()
    for batch in read_batches(source, schema, None):
        rows += len(batch.frame)
        for column in schema.read:
            fits = [fit for fit in Fit if fate_of(fit, column) is Fate.KEPT]
            kept[column.name] += int(np.isin(place_column(batch.frame[column.name], column).fits, fits).sum())
        if rows >= _FIRST_ROWS:
            break
    return [column.name for column in schema.read if 2 * kept[column.name] < rows]


def summarize_encoding(source: Source, schema: TableSchema, person: PersonUnit | None) -> EncodingSummary:
    """Count what will become of every value, in batches; no value is kept.

    Privacy:
        Reads the private table. The result is private, and no noise is added to it.

    Raises:
        SourceError: If a part of the table cannot be read.
        SchemaError: If none of the columns are there, or the person column cannot tell persons apart.
    """
    names = compare_names(source, schema)
    reduced = _reduce_schema(schema, names)
    if person is not None and person.column in names.absent:
        person = None
    summary = EncodingSummary(
        names, {name: Counter() for name in names.present}, columns={c.name: c for c in reduced.read}
    )
    with nullcontext() if person is None else ContributionBounder(person.column, person.max_rows) as bounder:
        for batch in read_batches(source, reduced, person):
            summary.rows += len(batch.frame)
            summary.unreadable += batch.unreadable_lines() if isinstance(source, CsvSource) else 0
            for column in reduced.read:
                fits, counts = np.unique(place_column(batch.frame[column.name], column).fits, return_counts=True)
                _add(summary.fits[column.name], fits.tolist(), counts.tolist())
            if reduced.rules or reduced.derived:
                summary.broken.update({name: int(found.sum()) for name, found in rows_broken(batch.frame, reduced)})
            if bounder is not None and person is not None:
                bounder.add(batch.frame[person.column])
        if bounder is not None:
            summary.kept = sum(int(is_kept.sum()) for is_kept in bounder.kept_rows())
    return summary


def _reduce_schema(schema: TableSchema, names: NameComparison) -> TableSchema:
    """The part of the schema that the table has, all of it read; its other columns are excluded.

    Where columns are missing, nothing follows from others, and no rule is judged.
    """
    excluded = (*names.excluded, *names.unknown)
    if names.missing:
        present = (column for column in schema.read if column.name in names.present)
        columns = tuple(one for one in present if one.follows is None)
        return TableSchema(name=schema.name, columns=columns, excluded=excluded)
    columns = tuple(_read_too(column) if column.name in names.present else column for column in schema.columns)
    return TableSchema(name=schema.name, columns=columns, excluded=excluded, rules=schema.rules)


def _read_too(column: ColumnSchema) -> ColumnSchema:
    """The column as one that is read, whatever becomes of the rows that contradict it."""
    if column.follows is None:
        return column
    return column.model_copy(update={"follows": column.follows.model_copy(update={"broken": "drop"})})


def _add(counter: Counter[Fit], fits: Sequence[int], counts: Sequence[int]) -> None:
    for fit, count in zip(fits, counts, strict=True):
        counter[Fit(fit)] += count
