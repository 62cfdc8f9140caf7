"""Small private tables, written in every way that a source can have them."""

import csv
import io
import sqlite3
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource, ParquetSource, Source, SqlSource
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store

Rows = Sequence[dict[str, object]]

CANARY = "canary-7f3a"

SCHEMA = TableSchema.model_validate(
    {
        "name": "people",
        "columns": [
            {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "nullable": True},
            {"name": "job.title", "kind": "categorical", "values": ["cook", "nurse", ""], "nullable": True},
        ],
        "excluded": ["who"],
    }
)

ROWS: Rows = [
    {"age": 31, "job.title": "cook", "who": 1},
    {"age": None, "job.title": "", "who": 1},
    {"age": 58, "job.title": None, "who": 2},
    {"age": 44, "job.title": "nurse", "who": None},
    {"age": 2, "job.title": "clown", "who": 3},
]


def csv_bytes(rows: Rows, names: Sequence[str]) -> bytes:
    """Text is quoted and null is nothing at all."""
    text = io.StringIO()
    text.write(",".join(_quoted(name) for name in names) + "\n")
    for row in rows:
        text.write(",".join("" if row[name] is None else _quoted(written(row[name])) for name in names) + "\n")
    return text.getvalue().encode()


def written(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else repr(value) if isinstance(value, float) else str(value)


def _quoted(value: str) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="").writerow([value])
    return text.getvalue()


def parquet_bytes(
    rows: Rows, names: Sequence[str], types: dict[str, pa.DataType] | None = None, compression: str = "snappy"
) -> bytes:
    sink = pa.BufferOutputStream()
    columns = {name: pa.array([row[name] for row in rows], (types or {}).get(name)) for name in names}
    parquet.write_table(pa.table(columns), sink, row_group_size=3, compression=compression)
    return sink.getvalue().to_pybytes()


def put(location: Location, files: dict[str, bytes]) -> None:
    store = open_store(location)
    for key, data in files.items():
        store.put(key, data)


def halves(rows: Rows, write: Callable[[Rows], bytes], suffix: str) -> dict[str, bytes]:
    """Two fragments, one of them in a folder."""
    middle = len(rows) // 2
    return {f"a.{suffix}": write(rows[:middle]), f"deep/b.{suffix}": write(rows[middle:])}


def csv_source(
    location: Location, rows: Rows, *, batch_rows: int = 2, names: Sequence[str] = ("age", "job.title", "who")
) -> Source:
    put(location, halves(rows, lambda part: csv_bytes(part, names), "csv"))
    return CsvSource(kind="csv", path=location, batch_rows=batch_rows)


def parquet_source(
    location: Location,
    rows: Rows,
    *,
    batch_rows: int = 2,
    names: Sequence[str] = ("age", "job.title", "who"),
    types: dict[str, pa.DataType] | None = None,
) -> Source:
    put(location, halves(rows, lambda part: parquet_bytes(part, names, types), "parquet"))
    return ParquetSource(kind="parquet", path=location, batch_rows=batch_rows)


def sqlite_source(
    folder: Path, rows: Rows, *, batch_rows: int = 2, names: Sequence[str] = ("age", "job.title", "who")
) -> Source:
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    path = folder / "table.db"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE t ({quoted})")
    marks = ", ".join("?" * len(names))
    connection.executemany(f"INSERT INTO t VALUES ({marks})", [[_stored(row[name]) for name in names] for row in rows])
    connection.commit()
    connection.close()
    return SqlSource(kind="sql", url=f"sqlite:///{path}", query="SELECT * FROM t", batch_rows=batch_rows)


def _stored(value: object) -> object:
    """SQLite has no dates, and whole numbers of 64 bits."""
    return value.isoformat() if isinstance(value, date | datetime) else value
