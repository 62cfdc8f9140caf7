"""The rows of a benchmark: one small Parquet file a run, put together in `runs.parquet`. As private as the tables.

A run's file appears whole or not at all, so that a benchmark that is killed goes on with the next run.
"""
# pyarrow is annotated in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownParameterType=false

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ppsyn.errors import ConfigError, translated
from ppsyn.schemas.benchmark import BenchmarkRun

ERRORS: Mapping[str, str] = {
    "workload_error": "workload error",
    "range_3_error": "3-way range error",
    "range_5_error": "5-way range error",
    "classification_error": "classification error",
    "one_way_error": "1-way error",
    "two_way_error": "2-way error",
    "three_way_error": "3-way error",
}
"""The columns that measure utility, and how they are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run, flat: what was asked, what was found, what it took.

    Attributes:
        seconds: For one synthetic table; none, like rounds and size, where nothing was made.
        model_size_mb: Of the fitted model; `model_mb` is what it was allowed.
        classification_errors: By target, as JSON.
        table: Digest of the table.
        code: Digest of the code.
    """

    dataset: str
    mechanism: str
    epsilon: float
    seed: int
    workload_error: float | None
    range_3_error: float | None
    range_5_error: float | None
    classification_error: float | None
    one_way_error: float | None
    two_way_error: float | None
    three_way_error: float | None
    seconds: float | None
    rounds: float | None
    model_size_mb: float | None
    is_private: bool
    degree: int
    workload_seed: int
    model_mb: float
    delta: float
    metrics: str
    classification_errors: str
    table: str
    code: str


_TYPES: Mapping[object, pa.DataType] = {
    str: pa.string(),
    float: pa.float64(),
    float | None: pa.float64(),
    int: pa.int64(),
    bool: pa.bool_(),
}
_SCHEMA = pa.schema([(column.name, _TYPES[column.type]) for column in fields(Row)])
_ORDER = ("dataset", "degree", "epsilon", "mechanism", "seed", "workload_seed", "model_mb", "metrics", "code")


@dataclass(frozen=True, slots=True)
class Result:
    """What a table or a plot shows of a run, ours or another tool's.

    Attributes:
        errors: By column; only those that were measured.
        seconds: If known.
        rounds: If known; those of ours that have none, and of other tools, are not.
    """

    dataset: str
    mechanism: str
    epsilon: float
    degree: int
    errors: Mapping[str, float]
    seconds: float | None
    rounds: float | None = None


def write_row(out: Path, run: BenchmarkRun, row: Row) -> None:
    """Keep a run's row."""
    path = _path(out, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, pa.Table.from_pylist([asdict(row)], _SCHEMA))


def _path(out: Path, run: BenchmarkRun) -> Path:
    return out / "runs" / run.name / "row.parquet"


def _replace(path: Path, table: pa.Table) -> None:
    """Write the file under another name first, so that there is never a part of it under its own."""
    written = path.with_suffix(f".{os.getpid()}.part")
    pq.write_table(table, written)
    written.replace(path)


def read_row(out: Path, run: BenchmarkRun, table_digest: str) -> Row | None:
    """The row of a run with these settings and this code, on this very table; nothing if there is none."""
    path = _path(out, run)
    try:
        (found,) = _rows(pq.read_table(path))
    except (FileNotFoundError, pa.ArrowInvalid, KeyError, ValueError):
        return None
    return found if found.table == table_digest else None


def _rows(table: pa.Table) -> Iterator[Row]:
    names = [column.name for column in fields(Row)]
    for line in table.to_pylist():
        yield Row(**{name: line[name] for name in names})


def merge(out: Path) -> Path:
    """Put all rows that `out` holds together; returns the file."""
    found: list[Row] = []
    for path in sorted((out / "runs").glob("*/row.parquet")):
        try:
            found.extend(_rows(pq.read_table(path)))
        except (pa.ArrowInvalid, KeyError):
            continue  # of another version
    table = pa.Table.from_pylist([asdict(row) for row in found], _SCHEMA)
    _replace(out / "runs.parquet", table.sort_by([(name, "ascending") for name in _ORDER]))
    return out / "runs.parquet"


def results(rows: Iterable[Row]) -> list[Result]:
    """What is shown of our own runs."""
    return [
        Result(
            row.dataset,
            row.mechanism,
            row.epsilon,
            row.degree,
            {name: value for name in ERRORS if (value := getattr(row, name)) is not None},
            row.seconds,
            row.rounds,
        )
        for row in rows
    ]


_PEER_COLUMNS = ("dataset", "mechanism", "epsilon", "seed")


def read_peers(file: Path, mechanisms: Sequence[str], degree: int) -> list[Result]:
    """Other tools' results: a CSV file with the columns of `runs.parquet`, as many of the errors as there are.

    Args:
        file: The file.
        mechanisms: Those that are run here, whose names nobody else may have.
        degree: Of the workload, where the file does not say.

    Raises:
        ConfigError: If the file does not hold results.
    """
    broken, rule = (OSError, ValueError), f"Expected a readable file {file}"
    with translated(broken, to=ConfigError, message=lambda error: f"{rule}: {type(error).__name__}."):
        frame = pd.read_csv(file, dtype={"dataset": str, "mechanism": str})
    measured = [name for name in ERRORS if name in frame]
    for name in _PEER_COLUMNS:
        if name not in frame:
            raise ConfigError(f"Expected a column {name!r} in {file}.")
    if not measured:
        raise ConfigError(f"Expected a column of errors in {file}: {', '.join(ERRORS)}.")
    return [
        _peer(
            f"{file}, line {number}", {str(name): value for name, value in line.items()}, measured, mechanisms, degree
        )
        for number, line in enumerate(frame.to_dict("records"), 2)
    ]


def _peer(
    place: str, line: Mapping[str, object], measured: Sequence[str], mechanisms: Sequence[str], degree: int
) -> Result:
    if line["mechanism"] in mechanisms:
        raise ConfigError(f"{place}: Expected another name than {line['mechanism']!r}, which is run here.")
    if not isinstance(line["dataset"], str) or not isinstance(line["mechanism"], str):
        raise ConfigError(f"{place}: Expected a dataset and a mechanism.")
    errors = {name: _number(place, line, name) for name in measured if not _is_empty(line[name])}
    seconds = None if _is_empty(line.get("seconds")) else _number(place, line, "seconds")
    given = degree if _is_empty(line.get("degree")) else int(_number(place, line, "degree"))
    return Result(line["dataset"], line["mechanism"], _number(place, line, "epsilon"), given, errors, seconds)


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _number(place: str, line: Mapping[str, object], name: str) -> float:
    value = line[name]
    if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ConfigError(f"{place}: Expected {name}={value!r} to be a number, not negative.")
    return float(value)
