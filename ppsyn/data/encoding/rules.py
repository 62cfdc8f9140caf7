"""Rows and the rules of their schema: which rows break one, and what becomes of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from typing_extensions import override

from ppsyn.arrays import Codes, Flags
from ppsyn.data.encoding.parsing import Fit, Raw
from ppsyn.data.encoding.table import (
    EncodedTable,
    Fate,
    check_refusals,
    encode_marked,
    fate_of,
    mark_column,
    place_column,
    read_positions,
)
from ppsyn.domain import domain_of
from ppsyn.possible import nearest
from ppsyn.schemas.columns import BooleanColumn, CategoricalColumn, ColumnSchema, DatetimeColumn
from ppsyn.schemas.derivation import Derivation, Values
from ppsyn.schemas.rules import Precedence, Table
from ppsyn.schemas.table import TableSchema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Possible:
    """Private rows of which none breaks a rule.

    Attributes:
        codes: Of the attributes, for the rows that are kept.
        is_kept: Which of the rows that came in are.
    """

    codes: dict[str, Codes]
    is_kept: Flags

    @override
    def __repr__(self) -> str:
        return "Possible()"


def encode(frame: pd.DataFrame, schema: TableSchema) -> EncodedTable:
    """Encode a private table.

    Privacy:
        The code of a value depends on the schema and on that value alone, not on
        another row nor on the index, so neighbouring tables have neighbouring
        encodings. What a row that breaks a rule becomes depends on that row and the
        schema, too. Nothing but a column that refuses can stop it.

    Raises:
        SchemaError: If a column is missing, repeated, or neither in `columns` nor in `excluded`.
        DomainRefusedError: If a column whose policy is to refuse holds a value outside its domain.
    """
    return EncodedTable(domain_of(schema), encode_rows(frame, schema).codes)


def encode_rows(frame: pd.DataFrame, schema: TableSchema) -> Possible:
    """The codes of private rows, and which of the rows are kept.

    Privacy:
        As of `encode`.

    Raises:
        PPSynError: As `encode`.
    """
    codes = encode_marked(frame, schema)
    check_refusals(codes, schema)
    return make_possible(frame, codes, schema)


def make_possible(frame: pd.DataFrame, codes: Mapping[str, Codes], schema: TableSchema) -> Possible:
    """Do with the rows that break a rule what the rule says: repair them, null what it names, or leave them out.

    Privacy:
        Claim C8. What becomes of a row depends on the schema and on that row alone.

    Args:
        frame: Private rows.
        codes: Their codes, of which none is refused.
        schema: The columns and the rules.
    """
    is_kept = np.ones(len(frame), np.bool_)
    settled = {column.name: codes[column.name] for column in schema.attributes}
    if not schema.tables and not schema.derived:
        return Possible(settled, is_kept)
    columns = {column.name: column for column in schema.columns}
    policies = [
        *((table.rule.broken, table.rule.nulled, is_broken) for table, is_broken in _by_table(codes, schema)),
        *(
            (one.follows.broken, one.follows.sources, contradicts(frame[one.column.name], one.column, found))
            for one, found in _computed(frame, codes, schema)
            if one.follows.broken != "repair"
        ),
    ]
    for policy, nulled, is_broken in policies:
        if policy == "drop":
            is_kept &= ~is_broken
        for name in nulled if policy == "null" else ():
            settled[name] = np.where(is_broken, np.int32(columns[name].value_count), settled[name])
    if not is_kept.all():
        settled = {name: column[is_kept] for name, column in settled.items()}
    return Possible(nearest(settled, domain_of(schema)), is_kept)


def rows_broken(frame: pd.DataFrame, schema: TableSchema) -> Iterable[tuple[str, Flags]]:
    """Of each rule, and of each column that follows from others and is there, which rows break it.

    Orders are judged by the values themselves, all else by the codes that they have.

    Privacy:
        What is found of private rows is private.
    """
    codes = {column.name: mark_column(frame[column.name], column) for column in schema.attributes}
    broken = {rule.name: np.zeros(len(frame), np.bool_) for rule in schema.rules}
    for table, is_broken in _by_table(codes, schema):
        broken[table.rule.name] |= is_broken
    for step in schema.precedences:
        broken[step.rule.name] |= _is_reversed(frame, codes, step, schema)
    yield from broken.items()
    for one, found in _computed(frame, codes, schema):
        if one.column.name in frame:
            yield one.column.name, contradicts(frame[one.column.name], one.column, found)


def _by_table(codes: Mapping[str, Codes], schema: TableSchema) -> Iterable[tuple[Table, Flags]]:
    for table in schema.tables:
        yield table, ~table.allowed[tuple(codes[name] for name in table.attributes)]


def _computed(
    frame: pd.DataFrame, codes: Mapping[str, Codes], schema: TableSchema
) -> Iterable[tuple[Derivation, Values]]:
    """What each column that follows from others should be in each row."""
    known: dict[str, Values] = {}
    for one in schema.derived:
        for source in one.sources:
            if source.name not in known:
                known[source.name] = _values(frame[source.name], source, codes[source.name])
        known[one.column.name] = one.compute(known)
        yield one, known[one.column.name]


def _values(raw: Raw, column: ColumnSchema, codes: Codes) -> Values:
    """The values that a private column is taken to have: those in its domain, and the nearest ones of those outside."""
    nulls = codes == column.value_count
    if isinstance(column, CategoricalColumn | BooleanColumn):
        return Values(codes.astype(np.int64), nulls)
    reading, intervals = read_positions(raw, column), column.intervals
    is_clipped = (reading.fits == Fit.OUTSIDE) | ~intervals.hold(reading.values)
    is_near = (reading.fits == Fit.INSIDE) & ~is_clipped
    if fate_of(Fit.OUTSIDE, column) is Fate.CLIPPED:
        is_near |= is_clipped & (reading.fits <= Fit.OUTSIDE)
    within = np.clip(reading.values, intervals.starts[0], intervals.ends[-1])
    return Values(np.where(is_near, within, intervals.starts[np.where(nulls, 0, codes)]), nulls)


def contradicts(raw: Raw, column: ColumnSchema, found: Values) -> Flags:
    """Which values of a column are not those that it should have."""
    place = place_column(raw, column)
    is_labelled = isinstance(column, CategoricalColumn | BooleanColumn)
    numbers = place.values if is_labelled else read_positions(raw, column).values
    is_other = (place.fits != Fit.INSIDE) | (numbers != found.numbers)
    return (found.nulls & (place.fits != Fit.NULL)) | (~found.nulls & is_other)


def _is_reversed(frame: pd.DataFrame, codes: Mapping[str, Codes], step: Precedence, schema: TableSchema) -> Flags:
    """Where both are there and the first is too great for the second."""
    columns = {column.name: column for column in schema.attributes}
    pair = [_values(frame[name], columns[name], codes[name]) for name in (step.before, step.after)]
    before = columns[step.before]
    unit = before.tick if isinstance(before, DatetimeColumn) else 1
    return ~pair[0].nulls & ~pair[1].nulls & (pair[0].numbers + step.gap * unit > pair[1].numbers)
