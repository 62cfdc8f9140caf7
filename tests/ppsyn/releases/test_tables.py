import io
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.published import Published, make_release
from support.strategies import columns, every_code

from ppsyn.arrays import Codes
from ppsyn.data.encoding import encode
from ppsyn.data.sources import read_batches
from ppsyn.generation.decoding import decode
from ppsyn.generation.sampling import BLOCK_ROWS
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.ledger import Spend
from ppsyn.privacy.partition import Partition
from ppsyn.privacy.requests import Answer, Lost, Measured, Selected
from ppsyn.releases.layout import ANSWERS, LEDGER, SYNTHETIC
from ppsyn.releases.tables import (
    charges_of,
    count_rows,
    entries_to_json,
    pack_answers,
    pack_entries,
    read_rows,
    unpack_answers,
    unpack_entries,
    write_csv,
    write_rows,
)
from ppsyn.releases.validation import validate
from ppsyn.schemas.account import FIRST, Charge, Close, Reservation, from_bytes, hash_of, to_bytes
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource
from ppsyn.schemas.table import TableSchema

_YEAR = {"lower": "2020-01-01", "upper": "2020-12-31", "unit": "quarter"}
_AT = datetime(2031, 2, 3, tzinfo=UTC)

COLUMNS: list[dict[str, object]] = [
    {"name": "text", "kind": "categorical", "values": ["a", "b's", "ü €", ""], "other": "a"},
    {"name": "text or null", "kind": "categorical", "values": ["a", "b"], "nullable": True},
    {"name": "category", "kind": "categorical", "values": ["low", "high"], "ordered": True, "nullable": True},
    {"name": "digit", "kind": "categorical", "values": [3, 1, 2], "outside": "refuse"},
    {"name": "digit or null", "kind": "categorical", "values": [3, 1, 2], "nullable": True},
    {"name": "flag", "kind": "boolean", "other": False},
    {"name": "flag or null", "kind": "boolean", "nullable": True},
    {"name": "whole", "kind": "integer", "lower": -5, "upper": 2**62, "bins": 4},
    {"name": "small.whole", "kind": "integer", "lower": 0, "upper": 9},
    {"name": "whole or null", "kind": "integer", "lower": 0, "upper": 9, "nullable": True},
    {"name": "real", "kind": "real", "lower": 0.0, "upper": 1.0, "bins": 3},
    {"name": "real or null", "kind": "real", "lower": 0.0, "upper": 1.0, "bins": 3, "nullable": True},
    {"name": "day", "kind": "date", "nullable": True, **_YEAR},
    {"name": "day as moment", "kind": "date", **_YEAR},
    {"name": "moment", "kind": "datetime", "nullable": True, **_YEAR},
    {"name": "moment in ns", "kind": "datetime", **_YEAR},
    {"name": "zoned", "kind": "datetime", "nullable": True, "timezone": "America/New_York", **_YEAR},
    {"name": "zoned in ms", "kind": "datetime", "timezone": "UTC", **_YEAR},
]
"""A column of every kind."""

TYPES: dict[str, tuple[str, str, pl.DataType]] = {
    "text": ("str", "VARCHAR", pl.String()),
    "text or null": ("str", "VARCHAR", pl.String()),
    "category": ("category", "VARCHAR", pl.Categorical()),
    "digit": ("int8", "TINYINT", pl.Int8()),
    "digit or null": ("UInt8", "UTINYINT", pl.UInt8()),
    "flag": ("bool", "BOOLEAN", pl.Boolean()),
    "flag or null": ("boolean", "BOOLEAN", pl.Boolean()),
    "whole": ("int64", "BIGINT", pl.Int64()),
    "small.whole": ("uint16", "USMALLINT", pl.UInt16()),
    "whole or null": ("Int64", "BIGINT", pl.Int64()),
    "real": ("float64", "DOUBLE", pl.Float64()),
    "real or null": ("float32", "FLOAT", pl.Float32()),
    "day": ("date32[day][pyarrow]", "DATE", pl.Date()),
    "day as moment": ("datetime64[ms]", "TIMESTAMP", pl.Datetime("ms")),
    "moment": ("datetime64[us]", "TIMESTAMP", pl.Datetime("us")),
    "moment in ns": ("datetime64[ns]", "TIMESTAMP_NS", pl.Datetime("ns")),
    "zoned": (
        "datetime64[us, America/New_York]",
        "TIMESTAMP WITH TIME ZONE",
        pl.Datetime("us", "America/New_York"),
    ),
    "zoned in ms": ("datetime64[ms, UTC]", "TIMESTAMP WITH TIME ZONE", pl.Datetime("ms", "UTC")),
}
"""What each is in pandas, as its schema asks, in DuckDB and in Polars."""

SCHEMA = TableSchema.model_validate(
    {"name": "every", "columns": [{**column, "dtype": TYPES[str(column["name"])][0]} for column in COLUMNS]}
)


def drawn(schema: TableSchema, rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.Generator(np.random.PCG64(seed))
    codes = {column.name: rng.integers(0, column.size, rows).astype(np.int32) for column in schema.columns}
    return decode(codes, schema, rng)


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A release of a table with every kind of column."""
    changes = {"algorithm": {"workload": {"degree": 1}, "rounds": 3, "max_fit_steps": 10}}
    return make_release(tmp_path_factory.mktemp("every"), drawn(SCHEMA, 300), SCHEMA, changes=changes)


def plain(value: object) -> object:
    """A value as Python has it: moments as microseconds, whatever the reader makes of them."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, datetime):
        return round((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1_000_000)
    if isinstance(value, np.generic | np.ndarray | list | tuple):
        found = value if isinstance(value, list | tuple) else value.tolist()
        return [plain(item) for item in found] if isinstance(found, list | tuple) else found
    return value


def by_pandas(path: Path) -> dict[str, list[object]]:
    frame = pd.read_parquet(path)
    return {name: [plain(value) for value in frame[name]] for name in frame.columns}


def by_polars(path: Path) -> dict[str, list[object]]:
    frame = pl.read_parquet(path)
    return {name: [plain(value) for value in frame[name].to_list()] for name in frame.columns}


def by_duckdb(path: Path) -> dict[str, list[object]]:
    types = duckdb_types(path)
    with duckdb.connect() as database:
        # DuckDB needs pytz to hand out moments with a zone.
        named = [f'epoch_us("{name}")' if "ZONE" in kind else f'"{name}"' for name, kind in types.items()]
        rows = database.execute(f"SELECT {', '.join(named)} FROM read_parquet('{path}')").fetchall()
    return {
        name: [plain(value) for value in column] for name, column in zip(types, zip(*rows, strict=True), strict=True)
    }


def duckdb_types(path: Path) -> dict[str, str]:
    with duckdb.connect() as database:
        return {row[0]: row[1] for row in database.execute(f"DESCRIBE FROM read_parquet('{path}')").fetchall()}


# What others read


def test_pandas_finds_the_types_of_the_schema(release: Published) -> None:
    found = pd.read_parquet(release.folder / SYNTHETIC).dtypes.astype(str).to_dict()
    assert found == {name: dtype for name, (dtype, _, _) in TYPES.items()}


def test_duckdb_finds_the_types_of_the_schema(release: Published) -> None:
    assert duckdb_types(release.folder / SYNTHETIC) == {name: kind for name, (_, kind, _) in TYPES.items()}


def test_polars_finds_the_types_of_the_schema(release: Published) -> None:
    found = pl.read_parquet_schema(release.folder / SYNTHETIC)
    assert found == {name: kind for name, (_, _, kind) in TYPES.items()}


@pytest.mark.parametrize("file", [SYNTHETIC, LEDGER, ANSWERS])
def test_pandas_duckdb_and_polars_read_the_same_values(release: Published, file: str) -> None:
    found = by_pandas(release.folder / file)
    assert by_duckdb(release.folder / file) == found
    assert by_polars(release.folder / file) == found


def test_nulls_are_where_the_schema_allows_them_and_nowhere_else(release: Published) -> None:
    found = by_duckdb(release.folder / SYNTHETIC)
    assert {name for name, column in found.items() if None in column} == {c.name for c in SCHEMA.columns if c.nullable}


def test_the_categories_are_those_of_the_schema_in_order(release: Published) -> None:
    dtype = pd.read_parquet(release.folder / SYNTHETIC)["category"].dtype
    assert (dtype.categories.tolist(), dtype.ordered) == (["low", "high"], True)


def test_duckdb_adds_the_charges_up_to_what_was_spent(release: Published) -> None:
    with duckdb.connect() as database:
        query = f"SELECT sum(rho) FROM read_parquet('{release.folder / LEDGER}') WHERE kind = 'charge'"
        (spent,) = database.execute(query).fetchall()[0]
    assert spent == pytest.approx(float(release.account.state.budgets[release.ref.run].spent), rel=1e-12)


def test_measurements_tell_the_groups_of_every_cell(release: Published) -> None:
    for row in pl.read_parquet(release.folder / ANSWERS).filter(pl.col("kind") == "measure").iter_rows(named=True):
        sizes = [next(c.size for c in SCHEMA.columns if c.name == name) for name in row["clique"]]
        assert len(row["group_of_cell"]) == math.prod(sizes)
        assert set(row["group_of_cell"]) == set(range(len(row["noisy_counts"])))


# Rows there and back


def written(blocks: Sequence[pd.DataFrame], empty: pd.DataFrame, group_rows: int = BLOCK_ROWS) -> bytes:
    file = io.BytesIO()
    assert write_rows(blocks, empty, file, group_rows) == sum(map(len, blocks))
    return file.getvalue()


def group_sizes(data: bytes) -> list[int]:
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


def there_and_back(column: ColumnSchema, codes: Codes) -> bytes:
    schema = TableSchema(name="t", columns=(column,))
    rng = np.random.Generator(np.random.PCG64(0))
    block, empty = decode({column.name: codes}, schema, rng), decode({column.name: codes[:0]}, schema, rng)
    blocks = [block, block.iloc[:1].reset_index(drop=True)]
    data = written(blocks, empty, len(block))
    for made, found in zip(blocks, read_rows(io.BytesIO(data)), strict=True):
        pd.testing.assert_frame_equal(made, found, check_exact=True)
    return data


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_rows_come_back_as_they_were(data: st.DataObject) -> None:
    column = data.draw(columns())
    there_and_back(column, data.draw(every_code(column)))


def test_a_csv_file_reads_back_as_the_same_table(tmp_path: Path) -> None:
    blocks, empty = [drawn(SCHEMA, 300, seed) for seed in (1, 2)], drawn(SCHEMA, 0)
    with (tmp_path / "rows.csv").open("wb") as file:
        assert write_csv(blocks, empty, file) == 600
    source = CsvSource(kind="csv", path=Location(url=str(tmp_path / "rows.csv")))
    (batch,) = read_batches(source, SCHEMA, None)
    read, meant = (encode(frame, SCHEMA).columns for frame in (batch.frame, pd.concat(blocks, ignore_index=True)))
    assert {name: codes.tolist() for name, codes in read.items()} == {
        name: codes.tolist() for name, codes in meant.items()
    }


_COLUMNS = {
    "text": {"kind": "categorical", "values": ["a", "b", "c"], "outside": "refuse"},
    "text or null": {"kind": "categorical", "values": ["a", "b", "c"], "nullable": True},
    "digits": {"kind": "categorical", "values": [3, 1, 2], "outside": "refuse"},
    "digits or null": {"kind": "categorical", "values": [3, 1, 2], "nullable": True},
    "boolean": {"kind": "boolean", "outside": "refuse"},
    "boolean or null": {"kind": "boolean", "nullable": True},
    "integer": {"kind": "integer", "lower": 0, "upper": 9},
    "integer or null": {"kind": "integer", "lower": 0, "upper": 9, "nullable": True},
    "real": {"kind": "real", "lower": 0, "upper": 1, "bins": 3},
    "real or null": {"kind": "real", "lower": 0, "upper": 1, "bins": 3, "nullable": True},
    "date": {"kind": "date", **_YEAR},
    "date or null": {"kind": "date", "nullable": True, **_YEAR},
    "datetime": {"kind": "datetime", **_YEAR},
    "datetime or null": {"kind": "datetime", "nullable": True, **_YEAR},
    "zoned": {"kind": "datetime", "timezone": "America/New_York", **_YEAR},
    "zoned or null": {"kind": "datetime", "timezone": "UTC", "nullable": True, **_YEAR},
}


def _column(name: str, dtype: str | None = None) -> ColumnSchema:
    document = {"name": "t", "columns": [{"name": name, "dtype": dtype, **_COLUMNS[name]}]}
    return TableSchema.model_validate(document).columns[0]


_DTYPES = [(name, dtype) for name in _COLUMNS for dtype in _column(name).dtypes]


@pytest.mark.parametrize(("name", "dtype"), _DTYPES)
def test_rows_of_every_dtype_that_a_schema_may_ask_for_come_back(name: str, dtype: str) -> None:
    column = _column(name, dtype)
    data = there_and_back(column, np.tile(np.arange(column.size, dtype=np.int32), 2))
    assert validate(read_rows(io.BytesIO(data)), TableSchema(name="t", columns=(column,))).success


def test_a_table_without_rows_keeps_its_types() -> None:
    empty = drawn(SCHEMA, 0)
    data = written([], empty)
    found = pq.read_table(io.BytesIO(data)).to_pandas()
    assert found.dtypes.astype(str).to_dict() == empty.dtypes.astype(str).to_dict()
    assert (count_rows(io.BytesIO(data)), list(read_rows(io.BytesIO(data)))) == (0, [])


def test_a_block_of_nulls_alone_has_the_types_of_the_others() -> None:
    schema = TableSchema(name="t", columns=tuple(column for column in SCHEMA.columns if column.nullable))
    nulls = {column.name: np.full(3, column.value_count, np.int32) for column in schema.columns}
    block = decode(nulls, schema, np.random.Generator(np.random.PCG64(0)))
    (found,) = read_rows(io.BytesIO(written([block], drawn(schema, 0))))
    assert found.isna().all(axis=None)
    assert found.dtypes.to_dict() == block.dtypes.to_dict()


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(0, 9), max_size=6), group_rows=st.integers(1, 12))
def test_rows_are_the_same_whatever_the_blocks_and_the_row_groups(sizes: list[int], group_rows: int) -> None:
    rows = drawn(SCHEMA, sum(sizes), 5)
    ends = np.cumsum(sizes).tolist()
    blocks = [rows.iloc[end - size : end].reset_index(drop=True) for end, size in zip(ends, sizes, strict=True)]
    data = written(blocks, rows.iloc[:0], group_rows)
    whole, left = divmod(len(rows), group_rows)
    assert group_sizes(data) == [group_rows] * whole + [left] * (left > 0)
    assert pq.read_table(io.BytesIO(data)).equals(pq.read_table(io.BytesIO(written([rows], rows.iloc[:0]))))


def test_equal_rows_are_equal_bytes() -> None:
    blocks = [drawn(SCHEMA, 50)]
    assert written(blocks, blocks[0].iloc[:0]) == written([drawn(SCHEMA, 50)], drawn(SCHEMA, 0))


_MANY_BLOCKS = """
import sys
import numpy as np, pandas as pd
from performance.resources import peak_mb
from ppsyn.releases.tables import write_rows

def blocks(count):
    for number in range(count):
        rng = np.random.Generator(np.random.PCG64(number))
        yield pd.DataFrame({"a": rng.integers(0, 2**62, 131072), "b": rng.random(131072)})

empty = next(blocks(1)).iloc[:0]
with open(sys.argv[1], "wb") as file:
    write_rows(blocks(3), empty, file)
before = peak_mb()
with open(sys.argv[1], "wb") as file:
    rows = write_rows(blocks(40), empty, file)
print(rows, round(peak_mb() - before))
"""


@pytest.mark.slow
def test_many_blocks_are_written_in_the_memory_of_a_few(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _MANY_BLOCKS, str(tmp_path / "rows.parquet")]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    rows, grown_mb = map(int, told.split())
    assert rows == 40 * 131072
    assert grown_mb < 30  # of 80 MB


# Answers there and back

_spends = st.builds(
    Spend,
    st.sampled_from(["measure", "select"]),
    st.fractions(Fraction(1, 10**30), 10, max_denominator=10**40).filter(bool),
    st.just("5e" * 32),
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=3).map(tuple),
)


@st.composite
def _answered(draw: st.DrawFn) -> tuple[Spend, Answer, Measurement | None]:
    spend = draw(_spends)
    if draw(st.booleans()):
        return spend, Lost(), None
    if spend.kind == "select":
        return spend, Selected(draw(st.integers(0, 2**31 - 1))), None
    counts = np.array(draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5)), np.int64)
    sigma = draw(st.floats(1e-300, 1e300))
    groups = Partition(np.arange(counts.size, dtype=np.int32), counts.size)
    return spend, Measured(counts, sigma), Measurement(spend.clique, groups, counts, sigma)


@given(steps=st.lists(_answered(), max_size=6))
def test_answers_come_back_bit_for_bit(steps: list[tuple[Spend, Answer, Measurement | None]]) -> None:
    spends, answers = [spend for spend, _, _ in steps], [answer for _, answer, _ in steps]
    found = unpack_answers(pack_answers(spends, answers, [m for _, _, m in steps if m is not None]))
    assert list(map(_told, found)) == list(map(_told, answers))


def _told(answer: Answer) -> object:
    return (answer.noisy_counts.tolist(), answer.sigma) if isinstance(answer, Measured) else answer


@pytest.mark.parametrize("missing", ["noisy_counts", "sigma", "selected"])
def test_an_answer_without_its_value_is_refused(missing: str) -> None:
    spends = [Spend("select" if missing == "selected" else "measure", Fraction(1), "", ("a",))]
    rows = pq.read_table(io.BytesIO(pack_answers(spends, [Lost()], []))).to_pylist()
    rows[0].update(is_lost=False, sigma=1.0, noisy_counts=[1], selected=1)
    rows[0][missing] = None
    schema = pq.read_schema(io.BytesIO(pack_answers(spends, [Lost()], [])))
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), file)
    with pytest.raises(ValueError, match=r"."):
        unpack_answers(file.getvalue())


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"\0" * 100])
def test_what_is_not_parquet_is_neither_answers_nor_entries(data: bytes) -> None:
    for unpack in (unpack_answers, unpack_entries):
        with pytest.raises(ValueError, match="Parquet"):
            unpack(data)


def test_answers_are_not_taken_for_entries() -> None:
    with pytest.raises(ValueError, match="columns"):
        unpack_entries(pack_answers([], [], []))


# Entries there and back

_names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@st.composite
def _entries(draw: st.DrawFn) -> list[bytes]:
    data, previous = list[bytes](), FIRST
    for number in range(draw(st.integers(0, 5))):
        common = {"number": number, "previous": previous, "nonce": draw(_names), "run": draw(_names)}
        rho = draw(st.fractions(-2, 2, max_denominator=10**50))
        entry = draw(
            st.sampled_from(
                [
                    Reservation(**common, rho=rho, inputs=FIRST, at=_AT),
                    Charge(**common, step=number, mechanism="measure", clique=(draw(_names),), rho=rho, request=FIRST),
                    Close(**common, manifest=draw(st.none() | st.just(FIRST)), at=_AT),
                ]
            )
        )
        data.append(to_bytes(entry))
        previous = hash_of(data[-1])
    return data


@given(entries=_entries())
def test_entries_come_back_byte_for_byte(entries: list[bytes]) -> None:
    assert unpack_entries(pack_entries(entries)) == entries


@given(entries=_entries())
def test_the_json_of_entries_holds_them_with_their_digests(entries: list[bytes]) -> None:
    found = json.loads(entries_to_json(entries))["entries"]
    assert [item["digest"] for item in found] == [item[-67:-3].decode() for item in entries]


def _changed(data: bytes, **changes: object) -> bytes:
    table = pq.read_table(io.BytesIO(data))
    rows = [{**table.to_pylist()[0], **changes}, *table.to_pylist()[1:]]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, table.schema), file)
    return file.getvalue()


def _charge() -> bytes:
    common = {"number": 0, "previous": FIRST, "nonce": "n", "run": "r"}
    return to_bytes(Charge(**common, step=0, mechanism="measure", clique=("a",), rho=Fraction(1, 3), request=FIRST))


@pytest.mark.parametrize("change", [{"rho": 0.1}, {"run": "other"}, {"clique": ["b"]}, {"hash": FIRST}, {"step": 7}])
def test_columns_that_do_not_say_what_the_entry_says_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="columns and entries differ"):
        unpack_entries(_changed(pack_entries([_charge()]), **change))


def test_the_same_entries_in_a_file_of_another_writer_are_the_same_entries() -> None:
    entries = [_charge()]
    file = io.BytesIO()
    table = pq.read_table(io.BytesIO(pack_entries(entries)))
    pq.write_table(table, file, compression="none")  # as another version of pyarrow would write other bytes
    assert unpack_entries(file.getvalue()) == entries


def test_the_charges_of_a_run_are_its_own_in_order(release: Published) -> None:
    entries = unpack_entries((release.folder / LEDGER).read_bytes())
    found = charges_of(entries, release.ref.run)
    assert found == [entry for entry in map(from_bytes, entries) if isinstance(entry, Charge)]
    assert charges_of(entries, "another") == []
