"""The rows of a query, as the database's own objects; its password stays in the environment."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

import json
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast
from urllib.parse import quote

import pandas as pd
import psycopg
import pyarrow as pa
import sqlalchemy
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from typing_extensions import override

from ppsyn.data.sources.batches import VALUES, guarded
from ppsyn.data.sources.sql_stability import judge
from ppsyn.errors import SourceError, translated
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.release import SqlSource

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPICursor

T = TypeVar("T")

QUERY = "the query"
"""What stands for a fragment's name."""

_VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")
_BROKEN = (SQLAlchemyError, psycopg.Error, sqlite3.Error, OSError, ValueError, ArithmeticError)
_CONNECT_SECONDS = 30
_VIEWS = {
    "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'view'",
    "postgresql": (
        "SELECT relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE relkind IN ('v', 'm', 'f') AND nspname NOT IN ('pg_catalog', 'information_schema')"
    ),
}
"""Names of what hides a query: views, materialised ones, and tables of other servers."""


def check_query(source: SqlSource) -> list[str]:
    """The names of the query's columns; no row is read.

    The database only plans the query, so that what it says about it depends on no row and may be shown.

    Raises:
        SourceError: If a variable is missing, nobody answers, or the database does not understand the query.
    """
    return _with_connection(source, lambda connection: _names(connection, source))


def query_columns(source: SqlSource) -> pa.Schema:
    """The names of the query's columns, with the types that the database declares for them; no row is read.

    Raises:
        SourceError: As `check_query`.
    """
    check_query(source)
    return _with_connection(source, lambda connection: declared(connection, _nested(source)))


def _with_connection(source: SqlSource, ask: Callable[[Connection], T]) -> T:
    """What the database says about the query."""
    for name in source.variables:
        if name not in os.environ:
            raise SourceError(f"Expected the environment to hold {name}, for the url of the source.")
    with _translated(source), _connected(source) as connection:
        return ask(connection)


def _translated(source: SqlSource) -> AbstractContextManager[None]:
    return translated(_BROKEN, to=SourceError, message=lambda error: _sentence_of(error, source))


def check_stable(source: SqlSource, person: PersonUnit | None) -> list[str]:
    """What the owner has to answer for, a sentence each, so that one unit moves no rows of another; no row is read.

    Raises:
        SourceError: If the query lets it, as far as its text tells.
    """
    with _translated(source), _connected(source) as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        views = [str(name) for (name,) in connection.exec_driver_sql(_VIEWS[connection.dialect.name])]
    column = None if person is None else person.column
    return judge(source.query, "sqlite" if is_sqlite else "postgres", column, views)


def query_frames(source: SqlSource, names: Sequence[str]) -> Iterator[pd.DataFrame]:
    """The columns of these names, so many rows at a time, as objects.

    Privacy:
        No type is guessed: every value is what the database gave for it. An error
        tells the rule alone, because that of a database may quote the row at fault.

    Raises:
        SourceError: If the query cannot be read to its end.
    """
    rule = f"Expected the database to answer {QUERY} to its end. Try it in a client, and see its log."
    return guarded(_frames(source, names), _BROKEN, rule)


def _frames(source: SqlSource, names: Sequence[str]) -> Iterator[pd.DataFrame]:
    with _connected(source) as connection:
        quoted = ", ".join(map(connection.dialect.identifier_preparer.quote_identifier, names))
        streamed = connection.execution_options(stream_results=True, yield_per=source.batch_rows)
        result = streamed.exec_driver_sql(f"SELECT {quoted} FROM {_nested(source)}")
        with closing(cast("DBAPICursor", result.cursor)):  # which is left open if the connection is lost
            for rows in result.partitions(source.batch_rows):
                columns = zip(names, zip(*rows, strict=True), strict=True)
                yield pd.DataFrame({name: pd.Series(list(values), dtype=object) for name, values in columns})


def _names(connection: Connection, source: SqlSource) -> list[str]:
    connection.exec_driver_sql(f"EXPLAIN SELECT * FROM {_nested(source)}").close()
    # SQLite may compute a nested query even for no rows, and stumble over one.
    rule = f"Expected the database to answer {QUERY} for no rows. Try it in a client, and see its log."
    with translated(_BROKEN, to=SourceError, message=rule):
        return list(connection.exec_driver_sql(f"SELECT * FROM {_nested(source)} LIMIT 0").keys())


def _nested(source: SqlSource) -> str:
    """The query in brackets, which hold one query and no other statement."""
    return f"(\n{source.query.strip().rstrip(';')}\n) AS q"


@contextmanager
def _connected(source: SqlSource) -> Generator[Connection]:
    """A connection that may only read."""
    engine = _engine(source)
    try:
        with engine.connect().execution_options(no_parameters=True) as connection:
            if connection.dialect.name == "postgresql":
                connection = connection.execution_options(postgresql_readonly=True)  # noqa: PLW2901
                read_any_moment(connection)
            else:
                connection.exec_driver_sql("PRAGMA query_only = ON").close()
            yield connection
    finally:
        engine.dispose()


def _engine(source: SqlSource) -> Engine:
    if source.url.startswith("sqlite:///"):
        path = Path(_expand(source.url.removeprefix("sqlite:///")))
        if not path.is_file():
            raise SourceError(f"Expected a database at {source.url}.")
        address = f"file:{quote(str(path.absolute()))}?mode=rw"  # `rw` makes no file, as the default would
        return sqlalchemy.create_engine(
            "sqlite://", creator=lambda: sqlite3.connect(address, uri=True), poolclass=NullPool
        )
    scheme, _, rest = source.url.partition("://")
    user, at, host = rest.rpartition("@")
    url = f"{scheme}+psycopg://{_expand(user, escape=True)}{at}{_expand(host)}"
    settings = {} if "connect_timeout" in host else {"connect_timeout": _CONNECT_SECONDS}
    return sqlalchemy.create_engine(
        url, poolclass=NullPool, pool_reset_on_return=None, hide_parameters=True, connect_args=settings
    )


def _expand(text: str, *, escape: bool = False) -> str:
    return _VARIABLE.sub(lambda found: quote(os.environ[found[1]], safe="") if escape else os.environ[found[1]], text)


def _sentence_of(error: Exception, source: SqlSource) -> str:
    """What the database said, without what the environment holds."""
    said = str(error.orig if isinstance(error, DBAPIError) else error) or type(error).__name__
    for name in source.variables:
        for secret in {os.environ[name], quote(os.environ[name], safe="")} - {""}:
            said = said.replace(secret, f"${{{name}}}")
    return f"Expected the database at {source.url} to take {QUERY}. It says: {said.strip()}"


# What types the database declares for the columns of a query; no row is read


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


def _sqlite_type(declared_as: str) -> pa.DataType:
    return next((kind for begin, kind in _SQLITE if re.match(begin, declared_as, re.IGNORECASE)), pa.null())


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


# Moments of PostgreSQL that Python has no object for, such as infinity, as text instead of an error


def read_any_moment(connection: Connection) -> None:
    """Have a row with such a moment read like any other: as a value that fits no domain."""
    driver = connection.connection.driver_connection
    if isinstance(driver, psycopg.Connection):
        for name, loader in (("date", _Date), ("timestamp", _Timestamp), ("timestamptz", _Timestamptz)):
            driver.adapters.register_loader(name, loader)


class _Lenient(Loader):
    exact: ClassVar[type[Loader]]

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._exact = self.exact(oid, context)

    @override
    def load(self, data: Buffer) -> object:
        try:
            return self._exact.load(data)
        except psycopg.DataError:
            return bytes(data).decode()


class _Date(_Lenient):
    exact = DateLoader


class _Timestamp(_Lenient):
    exact = TimestampLoader


class _Timestamptz(_Lenient):
    exact = TimestamptzLoader
