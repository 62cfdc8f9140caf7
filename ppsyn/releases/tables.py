"""The Parquet files of a release: synthetic rows, whole or in parts, answers, and account entries, there and back."""
# pyarrow is annotated in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownParameterType=false

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from ppsyn.code_version import code_version
from ppsyn.errors import ClusterError, InvariantError, translated
from ppsyn.generation.plan import Recipe
from ppsyn.generation.sampling import BLOCK_ROWS
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.ledger import Spend
from ppsyn.privacy.requests import Answer, Lost, Measured, Selected
from ppsyn.schemas.account import Charge, from_bytes, hash_of
from ppsyn.schemas.limits import ARRAYS_BYTES, VALUES

_ANSWERS = pa.schema(
    [
        ("step", pa.int32()),
        ("kind", pa.string()),
        ("is_lost", pa.bool_()),
        ("clique", pa.list_(pa.string())),
        ("rho", pa.string()),
        ("sigma", pa.float64()),
        ("group_of_cell", pa.list_(pa.int32())),
        ("grid", pa.list_(pa.int32())),
        ("noisy_counts", pa.list_(pa.int64())),
        ("selected", pa.int32()),
    ]
)

_ENTRIES = pa.schema(
    [
        ("number", pa.int64()),
        ("kind", pa.string()),
        ("run", pa.string()),
        ("step", pa.int32()),
        ("mechanism", pa.string()),
        ("clique", pa.list_(pa.string())),
        ("rho", pa.float64()),
        ("hash", pa.string()),
        ("entry", pa.string()),
    ]
)


def write_rows(
    blocks: Iterable[pd.DataFrame], empty: pd.DataFrame, file: IO[bytes], group_rows: int = BLOCK_ROWS
) -> int:
    """Write synthetic rows in row groups, never more than a group and a block in memory; returns how many.

    Args:
        blocks: The rows.
        empty: A table without rows, that has the types of all blocks.
        file: Where to.
        group_rows: Rows of each row group but the last. It changes the file, not what is read back from it.
    """
    schema = pa.Schema.from_pandas(empty, preserve_index=False)
    tables = (pa.Table.from_pandas(block, schema=schema, preserve_index=False) for block in blocks)
    rows = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for group in _regrouped(tables, group_rows):
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
    return rows


def write_csv(blocks: Iterable[pd.DataFrame], empty: pd.DataFrame, file: IO[bytes]) -> int:
    """Write synthetic rows as CSV with a header, never more than a block in memory; returns how many.

    Text is quoted and a null is an empty field without quotes, so that the file reads back as the same table.

    Args:
        blocks: The rows.
        empty: A table without rows, that has the types of all blocks.
        file: Where to.
    """
    typed = pa.Schema.from_pandas(empty, preserve_index=False)
    schema = pa.schema([pa.field(field.name, _written_type(field.type)) for field in typed])
    rows = 0
    with csv.CSVWriter(file, schema) as writer:
        for block in blocks:
            writer.write_table(pa.Table.from_pandas(block, schema=typed, preserve_index=False).cast(schema))
            rows += len(block)
    return rows


def _written_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _regrouped(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of this many; the last has what is left."""
    pending: list[pa.Table] = []
    for table in tables:
        pending.append(table)
        while sum(part.num_rows for part in pending) >= rows:
            whole = pa.concat_tables(pending)
            yield whole.slice(0, rows)
            pending = [whole.slice(rows)]
    if any(part.num_rows for part in pending):
        yield pa.concat_tables(pending)


PART_BLOCKS = 4
"""Blocks of a part: a second's work or less, and a few MB to send."""


def part_rows(recipe: Recipe) -> Iterator[int]:
    """The number of rows of each part, in order; a table without rows has one part, for its types."""
    most = PART_BLOCKS * BLOCK_ROWS
    return (min(most, recipe.rows - start) for start in range(0, max(1, recipe.rows), most))


def make_part(recipe: Recipe, number: int, group_rows: int, source: str) -> bytes:
    """A part as a Parquet file, made by a process whose code has the digest `source`.

    Raises:
        ClusterError: If this is other code, which might make other rows of the same seed.
    """
    if code_version().source != source:
        raise ClusterError("Expected workers with the same code as this process. Install the same version everywhere.")
    first = number * PART_BLOCKS
    blocks = map(recipe.block, range(first, min(first + PART_BLOCKS, recipe.blocks)))
    file = io.BytesIO()
    write_rows(blocks, recipe.no_rows(), file, group_rows)
    return file.getvalue()


def identity(recipe: Recipe) -> Recipe:
    """The recipe itself, for workers to have from each other."""
    return recipe


def read_rows(file: IO[bytes]) -> Iterator[pd.DataFrame]:
    """The rows of a synthetic table, a row group at a time.

    Raises:
        ValueError: If a row group is larger than `write_rows` makes one.
    """
    parquet = pq.ParquetFile(file)
    for group in range(parquet.num_row_groups):
        metadata = parquet.metadata.row_group(group)
        if metadata.num_rows > BLOCK_ROWS or metadata.total_byte_size > ARRAYS_BYTES:
            raise ValueError("a row group that is too large")
        yield parquet.read_row_group(group).to_pandas()


def count_rows(file: IO[bytes]) -> int:
    """How many rows a Parquet file holds."""
    return int(pq.ParquetFile(file).metadata.num_rows)


def pack_answers(spends: Sequence[Spend], answers: Sequence[Answer], measurements: Sequence[Measurement]) -> bytes:
    """All answers of a run, in order, with what they answer and how its cells were merged: a row each."""
    measured = iter(measurements)
    rows: list[dict[str, object]] = []
    for step, (spend, answer) in enumerate(zip(spends, answers, strict=True)):
        row: dict[str, object] = {"step": step, "kind": spend.kind, "clique": spend.clique, "rho": str(spend.rho)}
        match answer:
            case Measured():
                measurement = next(measured)
                if measurement.clique != spend.clique or measurement.partition.count != answer.noisy_counts.size:
                    raise InvariantError("An answer and its measurement are of different questions.")
                row |= {"group_of_cell": measurement.partition.groups, "grid": measurement.partition.axes}
                row |= {"sigma": answer.sigma, "noisy_counts": answer.noisy_counts}
            case Selected():
                row |= {"selected": answer.index}
            case Lost():
                pass
        rows.append(row | {"is_lost": isinstance(answer, Lost)})
    return _to_parquet(rows, _ANSWERS)


def unpack_answers(data: bytes) -> list[Answer]:
    """The answers, in order.

    Raises:
        ValueError: If the file holds something else.
    """
    return [_answer(row) for row in _from_parquet(data, _ANSWERS)]


def _answer(row: dict[str, object]) -> Answer:
    if row["is_lost"]:
        return Lost()
    counts, sigma, selected = row["noisy_counts"], row["sigma"], row["selected"]
    if row["kind"] == "select" and isinstance(selected, int) and selected >= 0:
        return Selected(selected)
    if row["kind"] == "measure" and isinstance(counts, list) and isinstance(sigma, float) and None not in counts:
        return Measured(np.array(counts, np.int64), sigma)
    raise ValueError(f"step {row['step']} has no answer of its kind")


def is_told_of(
    data: bytes, spends: Sequence[Spend], answers: Sequence[Answer], measurements: Sequence[Measurement]
) -> bool:
    """Whether a file says of these answers what `pack_answers` would."""
    return _from_parquet(data, _ANSWERS) == _from_parquet(pack_answers(spends, answers, measurements), _ANSWERS)


def pack_entries(entries: Sequence[bytes]) -> bytes:
    """Account entries, with their text as stored: a row each."""
    return _to_parquet([_entry_row(data) for data in entries], _ENTRIES)


def _entry_row(data: bytes) -> dict[str, object]:
    entry = from_bytes(data)
    row: dict[str, object] = {"kind": entry.kind, "hash": hash_of(data), "entry": data.decode()}
    names = ("number", "run", "step", "mechanism", "clique")
    row |= {name: getattr(entry, name) for name in names if hasattr(entry, name)}
    if hasattr(entry, "rho"):
        row["rho"] = float(getattr(entry, "rho"))  # noqa: B009  # of three of the kinds
    return row


def unpack_entries(data: bytes) -> list[bytes]:
    """The entries as stored.

    Raises:
        ValueError: If the file holds something else, or its columns do not say what its entries say.
    """
    rows = _from_parquet(data, _ENTRIES)
    entries = [str(row["entry"]).encode() for row in rows]
    if _from_parquet(pack_entries(entries), _ENTRIES) != rows:
        raise ValueError("columns and entries differ")
    return entries


def entries_to_json(entries: Sequence[bytes]) -> bytes:
    """Account entries as one JSON document, for whoever has no Parquet at hand."""
    parsed = [json.loads(data) for data in entries]
    version = 2 if parsed and parsed[0]["kind"] == "grant" else 1
    return json.dumps({"format": f"ppsyn-ledger-{version}", "entries": parsed}, indent=2).encode() + b"\n"


def charges_of(entries: Iterable[bytes], run: str) -> list[Charge]:
    """The charges of one run among the entries."""
    parsed = map(from_bytes, entries)
    return [entry for entry in parsed if isinstance(entry, Charge) and entry.run == run]


def _to_parquet(rows: list[dict[str, object]], schema: pa.Schema) -> bytes:
    columns = [pa.array([row.get(name) for row in rows], schema.field(name).type) for name in schema.names]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), buffer, compression="zstd")
    return buffer.getvalue()


def _from_parquet(data: bytes, schema: pa.Schema) -> list[dict[str, object]]:
    with translated((pa.ArrowException, OSError), to=ValueError, message=_not_parquet):
        file = pq.ParquetFile(io.BytesIO(data))
        groups = [file.metadata.row_group(at) for at in range(file.num_row_groups)]
        columns = [group.column(at) for group in groups for at in range(group.num_columns)]
        if sum(column.num_values for column in columns) > VALUES:
            raise ValueError("more values than a release has")
        if sum(column.total_uncompressed_size for column in columns) > ARRAYS_BYTES:
            raise ValueError("more bytes than a release has")
        table = file.read(use_threads=False)
    if not table.schema.equals(schema):
        raise ValueError("other columns than expected")
    return table.to_pylist()


def _not_parquet(error: Exception) -> str:
    return f"not a Parquet file ({type(error).__name__})"
