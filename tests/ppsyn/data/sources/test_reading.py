import itertools
from collections.abc import Callable
from datetime import timedelta, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from pyarrow import parquet
from support.private_tables import (
    ROWS,
    SCHEMA,
    csv_bytes,
    csv_source,
    parquet_bytes,
    parquet_source,
    put,
    sqlite_source,
)
from support.strategies import columns, days, moments, reals, wholes

from ppsyn.data.encoding import encode_marked
from ppsyn.data.sources import Batch, check_source, read_batches
from ppsyn.errors import SourceError
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource, ParquetSource, Source
from ppsyn.schemas.table import TableSchema

ONE = TableSchema.model_validate({"name": "t", "columns": [{"name": "a", "kind": "integer", "lower": 0, "upper": 1}]})
PERSON = PersonUnit(column="who", max_rows=1)
Make = Callable[..., Source]

_numbers = itertools.count()


def memory() -> Location:
    return Location(url=f"memory://reading-{next(_numbers)}")


def rows_of(
    source: Source, schema: TableSchema = SCHEMA, person: PersonUnit | None = PERSON
) -> list[tuple[object, ...]]:
    """All rows, with null as None."""
    frames = [batch.frame.astype(object) for batch in read_batches(source, schema, person)]
    return [tuple(None if pd.isna(v) else v for v in row) for frame in frames for row in frame.to_numpy().tolist()]


def codes_of(source: Source, schema: TableSchema) -> list[int]:
    return [
        code
        for batch in read_batches(source, schema, None)
        for code in encode_marked(batch.frame, schema)["a"].tolist()
    ]


def code_of(value: object, schema: TableSchema) -> int:
    """The code of one value by itself."""
    return int(encode_marked(pd.DataFrame({"a": pd.Series([value], dtype=object)}), schema)["a"][0])


def parquet_of(array: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"a": array}), sink)
    return sink.getvalue().to_pybytes()


# The same value is the same, wherever it is kept


_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
_offsets = st.integers(-720, 720).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_aware = st.builds(lambda moment, zone: moment.replace(tzinfo=zone), moments, _offsets)

VALUES: list[tuple[tuple[str, ...], st.SearchStrategy[object], list[pa.DataType]]] = [
    (
        ("categorical",),
        _texts,
        [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ),
    (("integer", "real"), wholes, [pa.int64(), pa.decimal128(30, 2), pa.dictionary(pa.int16(), pa.int64())]),
    (("integer", "categorical", "boolean"), st.integers(0, 9), [pa.int8(), pa.uint16(), pa.uint64()]),
    (("boolean",), st.booleans(), [pa.bool_()]),
    (("real",), reals | st.sampled_from([float("inf"), float("-inf")]), [pa.float64()]),
    (("date", "datetime", "integer"), days, [pa.date32(), pa.date64()]),
    (("date", "datetime"), moments, [pa.timestamp("us"), pa.timestamp("ns")]),
    (("date", "datetime"), _aware, [pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Tokyo")]),
]


@st.composite
def kept_columns(draw: st.DrawFn) -> tuple[ColumnSchema, list[object], pa.DataType]:
    kinds, values, types = draw(st.sampled_from(VALUES))
    column = draw(columns(kinds=kinds))
    inside = [label for label in getattr(column, "labels", ()) if isinstance(label, str)]
    if kinds == ("categorical",) and inside:
        values = values | st.sampled_from(inside)
    return column, draw(st.lists(st.none() | values, max_size=7)), draw(st.sampled_from(types))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept_columns(), st.integers(1, 8))
def test_files_and_databases_in_batches_give_the_codes_of_single_values(
    tmp_path: Path, drawn: tuple[ColumnSchema, list[object], pa.DataType], batch_rows: int
) -> None:
    column, values, kind = drawn
    schema, rows = TableSchema(name="t", columns=(column,)), [{"a": value} for value in values]
    try:
        pa.array(values, kind)
    except (pa.ArrowInvalid, OverflowError):
        reject()
    expected = [code_of(value, schema) for value in values]
    shape = {"batch_rows": batch_rows, "names": ["a"]}
    assert codes_of(csv_source(memory(), rows, **shape), schema) == expected
    assert codes_of(parquet_source(memory(), rows, types={"a": kind}, **shape), schema) == expected
    assert codes_of(sqlite_source(tmp_path, rows, **shape), schema) == expected


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 100])
@pytest.mark.parametrize("make", [csv_source, parquet_source, sqlite_source])
def test_batches_hold_all_rows_once_and_no_more_than_asked_for(make: Make, batch_rows: int, tmp_path: Path) -> None:
    location = tmp_path if make is sqlite_source else memory()
    source = make(location, ROWS, batch_rows=batch_rows)
    check_source(source, SCHEMA, PERSON)
    lengths = [len(batch.frame) for batch in read_batches(source, SCHEMA, PERSON)]
    assert sum(lengths) == len(ROWS)
    assert max(lengths) <= batch_rows
    assert {tuple(b.frame.columns) for b in read_batches(source, SCHEMA, PERSON)} == {("age", "job.title", "who")}
    assert {tuple(b.frame.columns) for b in read_batches(source, SCHEMA, None)} == {("age", "job.title")}


def test_blocks_of_a_large_csv_file_are_put_together_to_batches() -> None:
    location, count = memory(), 600_000
    data = b"age,job.title,who\n" + b"".join(b"%d,cook,%d\n" % (i % 100, i) for i in range(count))
    put(location, {"big.csv": data})
    source = CsvSource(kind="csv", path=location, batch_rows=250_000)
    batches = list(read_batches(source, SCHEMA, PERSON))
    assert [len(batch.frame) for batch in batches] == [250_000, 250_000, 100_000]
    np.testing.assert_array_equal(pd.concat(batch.frame["who"] for batch in batches).astype(int), np.arange(count))


def test_a_csv_field_is_text_and_null_only_unquoted() -> None:
    location = memory()
    put(location, {"a.csv": b'\xef\xbb\xbfage;job.title;who\r\n1;"NA";"a\r""b"\r\n"";NA;\r\n007;?;x\r\n'})
    source = CsvSource(kind="csv", path=location, delimiter=";", nulls=("", "NA"))
    assert rows_of(source) == [("1", "NA", 'a\r"b'), ("", None, None), ("007", "?", "x")]


@pytest.mark.parametrize("data", [b"a", b"a\n", b"a\r\n", b"\xef\xbb\xbfa\n"])
def test_a_csv_file_may_hold_a_header_alone(data: bytes) -> None:
    location = memory()
    put(location, {"a.csv": data})
    source = CsvSource(kind="csv", path=location)
    check_source(source, ONE, None)
    assert list(read_batches(source, ONE, None)) == []


def test_an_empty_line_is_a_row_if_there_is_one_column_and_none_if_there_are_more() -> None:
    one, more = memory(), memory()
    put(one, {"a.csv": b"a\n1\n\n2\n"})
    put(more, {"a.csv": b"age,job.title,who\n1,cook,2\n\n3,cook,4\n"})
    assert rows_of(CsvSource(kind="csv", path=one), ONE, None) == [("1",), (None,), ("2",)]
    assert rows_of(CsvSource(kind="csv", path=more)) == [("1", "cook", "2"), ("3", "cook", "4")]


def test_parquet_columns_keep_their_type_whatever_is_null() -> None:
    location, big = memory(), 2**53 + 1
    rows = [{"age": big, "job.title": "cook", "who": None}, {"age": None, "job.title": None, "who": big}]
    put(location, {"a.parquet": parquet_bytes(rows, ["who", "age", "job.title"])})
    assert rows_of(ParquetSource(kind="parquet", path=location)) == [(big, "cook", None), (None, None, big)]


ODD = {
    "list": (pa.array([[1], None]), [False, True]),
    "struct": (pa.array([{"x": 1}, None]), [False, True]),
    "binary": (pa.array([b"\xff", None]), [False, True]),
    "time": (pa.array([2**62, None], pa.int64()).view(pa.time64("us")), [False, True]),
    "duration": (pa.array([2**62, None], pa.int64()).view(pa.duration("s")), [False, True]),
    "date": (pa.array([2**31 - 1, None], pa.int32()).cast(pa.date32()), [False, True]),
    "moment": (pa.array([2**62, None], pa.int64()).view(pa.timestamp("ms", "Europe/Dublin")), [False, True]),
    "nowhere": (pa.array([2**62, None], pa.int64()).view(pa.timestamp("us", "Nowhere/Land")), [False, True]),
    "uuid": (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16))), [False, True]),
    "null": (pa.nulls(2), [True, True]),
    "decimal": (pa.array([Decimal(10) ** 50, None]), [False, True]),
    "half": (pa.array([np.inf, None], pa.float16()), [False, True]),
}


@pytest.mark.parametrize("name", ODD)
@settings(max_examples=12, deadline=None)
@given(column=columns(may_refuse=False))
def test_no_value_of_a_parquet_file_stops_the_reading(name: str, column: ColumnSchema) -> None:
    array, nulls = ODD[name]
    location, schema = memory(), TableSchema(name="t", columns=(column,))
    put(location, {"a.parquet": parquet_of(array)})
    (batch,) = read_batches(ParquetSource(kind="parquet", path=location), schema, None)
    assert batch.frame["a"].isna().tolist() == nulls
    codes = encode_marked(batch.frame, schema)["a"]
    assert ((codes >= 0) & (codes < column.size)).all()


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo", "Nowhere/Land"])
def test_moments_of_any_year_are_clipped_on_their_own_side(zone: str | None) -> None:
    fields = {"name": "a", "kind": "datetime", "lower": "2020-01-01", "upper": "2020-01-09", "unit": "day"}
    schema = TableSchema.model_validate({"name": "t", "columns": [fields]})
    for unit in ("ms", "us", "ns"):
        location = memory()
        array = pa.array([-(2**62), 2**62], pa.int64()).view(pa.timestamp(unit, zone))
        put(location, {"a.parquet": parquet_of(array)})
        assert codes_of(ParquetSource(kind="parquet", path=location), schema) == [0, 8]


# Where fragments are

PLAIN = SCHEMA.model_copy(update={"excluded": ()})


def test_folders_are_searched_and_hidden_files_passed_over(tmp_path: Path) -> None:
    data = csv_bytes(ROWS[:1], ["age", "job.title", "who"])
    names = ["b.csv", "a b#.csv", "deep/er/é.CSV", ".hidden.csv", "_SUCCESS.csv", "_tmp/x.csv", ".git/x.csv", "x.txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    source = CsvSource(kind="csv", path=Location(url=str(tmp_path)))
    check_source(source, SCHEMA, PERSON)
    found = [Path(batch.fragment).relative_to(tmp_path) for batch in read_batches(source, SCHEMA, PERSON)]
    assert sorted(map(str, found)) == ["a b#.csv", "b.csv", "deep/er/é.CSV"]


@pytest.mark.parametrize("make", [CsvSource, ParquetSource])
def test_a_column_that_files_lack_is_in_the_names_of_their_folders(make: type[CsvSource | ParquetSource]) -> None:
    kind = "csv" if make is CsvSource else "parquet"
    folders = {
        "who=7/age=31": 31,
        "who=7/age=105": 99,
        "who=8/age=__HIVE_DEFAULT_PARTITION__": 100,
        "who=a%20b/age=x": 100,
    }
    data = {"csv": csv_bytes, "parquet": parquet_bytes}[kind](ROWS[:3], ["job.title"])
    location = Location(url=f"memory://partitioned-{kind}")
    put(location, {f"{folder}/part.{kind}": data for folder in folders})
    source = make(kind=kind, path=location, batch_rows=2)  # type: ignore[arg-type]
    check_source(source, SCHEMA, PERSON)
    batches = list(read_batches(source, SCHEMA, PERSON))
    assert [list(batch.frame.columns) for batch in batches] == [["age", "job.title", "who"]] * 8
    whole = pd.concat([batch.frame for batch in batches])
    found = dict(zip((batch.fragment for batch in batches), batches, strict=True))
    for folder, code in folders.items():
        codes = encode_marked(found[f"{location.url}/{folder}/part.{kind}"].frame.drop(columns="who"), PLAIN)
        assert set(codes["age"].tolist()) == {code}
    assert sorted(set(whole["who"])) == ["7", "8", "a b"]
    assert len(whole) == 12


def test_a_column_of_the_file_goes_before_the_name_of_its_folder() -> None:
    location = Location(url="memory://partitioned-both")
    put(location, {"age=99/other=1/a.csv": csv_bytes(ROWS[:1], ["age", "job.title", "who"])})
    (batch,) = read_batches(CsvSource(kind="csv", path=location), SCHEMA, PERSON)
    assert batch.frame["age"].tolist() == ["31"]


def test_a_file_has_a_column_of_its_own() -> None:
    location = Location(url="memory://partitioned-empty")
    put(location, {"age=1/job.title=cook/a.csv": b"who\n1\n"})
    with pytest.raises(SourceError, match="itself"):
        check_source(CsvSource(kind="csv", path=location), SCHEMA, PERSON)


def test_a_single_file_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_export.dat").write_bytes(csv_bytes(ROWS, ["age", "job.title", "who"]))
    monkeypatch.chdir(tmp_path)
    for url in (str(tmp_path / "_export.dat"), "_export.dat", "./_export.dat"):
        source = CsvSource(kind="csv", path=Location(url=url))
        check_source(source, SCHEMA, PERSON)
        assert len(rows_of(source)) == len(ROWS)


def test_a_file_in_memory_is_found_by_its_address() -> None:
    location = memory()
    put(location, {"x": csv_bytes(ROWS, ["age", "job.title", "who"])})
    assert len(rows_of(CsvSource(kind="csv", path=location.child("x")))) == len(ROWS)


@pytest.mark.parametrize("make", [csv_source, parquet_source])
def test_files_are_read_from_a_bucket(make: Make, s3: Location) -> None:
    source, same = make(s3, ROWS), make(memory(), ROWS)
    check_source(source, SCHEMA, PERSON)
    assert rows_of(source) == rows_of(same)
    (path,) = {Path(batch.fragment).name for batch in read_batches(source, SCHEMA, None)} - {f"b.{source.kind}"}
    single = source.model_copy(update={"path": s3.child(path)})
    assert len(rows_of(single)) == len(ROWS) // 2


def test_looking_for_a_folder_does_not_make_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"at least one \.csv or \.csv\.gz file"):
        check_source(CsvSource(kind="csv", path=Location(url=str(tmp_path / "no"))), SCHEMA, None)
    assert list(tmp_path.iterdir()) == []


def test_a_batch_shows_no_row() -> None:
    assert repr(Batch("the query", pd.DataFrame({"a": ["canary"]}))) == "Batch(the query)"
