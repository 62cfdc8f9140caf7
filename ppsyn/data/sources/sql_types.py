"""The types that a database declares for the columns of a query; no row is read."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import cast

import psycopg
import pyarrow as pa
from sqlalchemy.engine import Connection

VALUES = b"values"
"""In the metadata of a field: all values that its type allows, as JSON."""

_POSTGRESQL: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(),
    **dict.fromkeys(("int2", "int4", "int8"), pa.int64()),
    **dict.fromkeys(("float4", "float8", "numeric"), pa.float64()),
    **dict.fromkeys(("text", "varchar", "bpchar"), pa.string()),
    "date": pa.date32(),
    **dict.fromkeys(("timestamp", "timestamptz"), pa.timestamp("us")),
}

_SQLITE: tuple[tuple[str, pa.DataType], ...] = (
    (r"BOOL", pa.bool_()),
    (r"DATETIME|TIMESTAMP", pa.timestamp("us")),
    (r"DATE", pa.date32()),
    (r"(NUMERIC|DECIMAL)\s*\(\s*\d+\s*(,\s*0\s*)?\)", pa.int64()),
    (r"REAL|FLOA|DOUB|NUMERIC|DECIMAL", pa.float64()),
    (r"\w*INT", pa.int64()),
    (r"\w*(CHAR|CLOB|TEXT)", pa.string()),
)
"""How a declared type begins, which in SQLite may be anything."""


def declared(connection: Connection, nested: str) -> pa.Schema:
    """The columns of a query in brackets: null stands for a type that says no kind.

    Privacy:
        Declarations alone are asked for, the values of enumerated types among them. No row is read.
    """
    is_sqlite = connection.dialect.name == "sqlite"
    return pa.schema(_of_sqlite(connection, nested) if is_sqlite else _of_postgresql(connection, nested))


def _of_sqlite(connection: Connection, nested: str) -> Sequence[pa.Field]:
    """By a view of this connection alone, of which the database tells the types of the columns beneath."""
    names = list(connection.exec_driver_sql(f"SELECT * FROM {nested} LIMIT 0").keys())
    connection.exec_driver_sql("PRAGMA query_only = OFF").close()
    connection.exec_driver_sql(f"CREATE TEMP VIEW ppsyn_drafted AS SELECT * FROM {nested}").close()
    connection.exec_driver_sql("PRAGMA query_only = ON").close()
    found = connection.exec_driver_sql("PRAGMA temp.table_info(ppsyn_drafted)").all()
    return [pa.field(name, _sqlite_type(str(row[2]))) for name, row in zip(names, found, strict=True)]


def _sqlite_type(told: str) -> pa.DataType:
    return next((kind for begin, kind in _SQLITE if re.match(begin, told, re.IGNORECASE)), pa.null())


def _of_postgresql(connection: Connection, nested: str) -> Sequence[pa.Field]:
    cursor = cast("psycopg.Cursor", connection.exec_driver_sql(f"SELECT * FROM {nested} LIMIT 0").cursor)
    labels: defaultdict[int, list[str]] = defaultdict(list)
    for code, label in connection.exec_driver_sql(
        "SELECT enumtypid::bigint, enumlabel FROM pg_enum ORDER BY enumtypid, enumsortorder"
    ):
        labels[code].append(label)
    return [_postgresql_field(column, labels.get(column.type_code)) for column in cursor.description or ()]


def _postgresql_field(column: psycopg.Column, labels: Sequence[str] | None) -> pa.Field:
    if labels is not None:
        return pa.field(column.name, pa.string(), metadata={VALUES: json.dumps(labels)})
    known = psycopg.adapters.types.get(column.type_code)
    name = "" if known is None else known.name
    kind = pa.int64() if name == "numeric" and column.scale == 0 else _POSTGRESQL.get(name, pa.null())
    return pa.field(column.name, kind)
