"""Whole tables to codes and back, from the public schema alone."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from typing_extensions import override

from ppsyn.arrays import Codes
from ppsyn.discretize.decoding import decode_column
from ppsyn.discretize.encoding import REFUSED, mark_column, refusal_of
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import SchemaError
from schemas.table import TableSchema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EncodedTable:
    """A private table, as codes."""

    domain: Domain
    columns: dict[str, Codes]

    def __post_init__(self) -> None:
        """Refuse columns that do not fit the domain."""
        _check_codes(self.columns, self.domain)

    @override
    def __repr__(self) -> str:
        return f"EncodedTable({', '.join(self.domain.names)})"


def domain_of(schema: TableSchema) -> Domain:
    """The attributes that a table of this schema is encoded to."""
    return Domain(tuple(Attribute(column.name, column.size, column.is_ordered) for column in schema.columns))


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


def decode(codes: Mapping[str, Codes], schema: TableSchema, rng: np.random.Generator) -> pd.DataFrame:
    """Draw a table that encodes to these codes, in the schema's order of columns and with its dtypes.

    Raises:
        SchemaError: If the codes do not fit the schema.
    """
    _check_codes(codes, domain_of(schema))
    return pd.DataFrame({column.name: decode_column(codes[column.name], column, rng) for column in schema.columns})


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


def _check_codes(codes: Mapping[str, Codes], domain: Domain) -> None:
    """Refuse codes outside the domain, without telling which or how many."""
    if set(codes) != set(domain.names):
        raise SchemaError(f"Expected codes of {', '.join(domain.names)}.")
    if len({column.shape for column in codes.values()}) != 1:
        raise SchemaError("Expected as many codes of each attribute.")
    for attribute in domain.attributes:
        column = codes[attribute.name]
        if column.ndim != 1 or (column.size and not 0 <= column.min() <= column.max() < attribute.size):
            raise SchemaError(f"Expected codes of {attribute.name!r} from 0 to {attribute.size - 1}.")
