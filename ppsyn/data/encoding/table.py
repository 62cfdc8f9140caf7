"""Whole tables to codes, from the public schema alone."""

from dataclasses import dataclass

import pandas as pd
from typing_extensions import override

from ppsyn.arrays import Codes
from ppsyn.data.encoding.columns import REFUSED, mark_column, refusal_of
from ppsyn.domain import Domain, check_codes, domain_of
from ppsyn.errors import SchemaError
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


def encode(frame: pd.DataFrame, schema: TableSchema) -> EncodedTable:
    """Encode a private table.

    Privacy:
        The code of a value depends on the schema and on that value alone, not on
        another row nor on the index, so neighbouring tables have neighbouring
        encodings. Nothing but a column that refuses can stop it.

    Raises:
        SchemaError: If a column is missing, repeated, or neither in `columns` nor in `excluded`.
        DomainRefusedError: If a column whose policy is to refuse holds a value outside its domain.
    """
    codes = encode_marked(frame, schema)
    for column in schema.columns:
        if (codes[column.name] == REFUSED).any():
            raise refusal_of(column)
    return EncodedTable(domain_of(schema), codes)


def encode_marked(frame: pd.DataFrame, schema: TableSchema) -> dict[str, Codes]:
    """The codes of a private table, with -1 for each value that its column refuses; whoever asks must look for it.

    Privacy:
        As of `encode`; nothing can stop it.

    Raises:
        SchemaError: If a column is missing, repeated, or neither in `columns` nor in `excluded`.
    """
    _check_names(frame, schema)
    return {column.name: mark_column(frame[column.name], column) for column in schema.columns}


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
    for name in names:
        if name not in present:
            raise SchemaError(f"Expected a column {name!r} in the table.")
