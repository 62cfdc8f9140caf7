"""Drafts of schemas: from names and types alone, and from a sample that is public."""

import io
import sqlite3
from contextlib import closing
from datetime import date, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from support.private_tables import CANARY, sqlite_source

from ppsyn.data.encoding import encode
from ppsyn.errors import ConfigError, SourceError
from ppsyn.schema_draft import draft_schema
from ppsyn.schemas.files import SchemaFileError, parse_yaml
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource, ParquetSource, SqlSource
from ppsyn.schemas.table import TableSchema


def csv_at(path: Path, text: str | bytes) -> CsvSource:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return CsvSource(kind="csv", path=Location(url=str(path)))


def parquet_at(path: Path, table: pa.Table) -> ParquetSource:
    parquet.write_table(table, path)
    return ParquetSource(kind="parquet", path=Location(url=str(path)))


def problems(text: str, folder: Path) -> tuple[str, ...]:
    """What loading a draft finds at fault."""
    (folder / "draft.yaml").write_text(text, encoding="utf-8")
    try:
        TableSchema.load(folder / "draft.yaml")
    except SchemaFileError as error:
        return error.problems
    return ()


EVERY_TYPE = pa.table(
    {
        "whole": pa.array([1], pa.int16()),
        "price": pa.array([1.5]),
        "exact": pa.array([1], pa.decimal128(5, 2)),
        "text": pa.array([CANARY]),
        "label": pa.array([CANARY]).dictionary_encode(),
        "flag": pa.array([True]),
        "day": pa.array([date(2020, 2, 3)]),
        "seen": pa.array([datetime(2020, 2, 3)], pa.timestamp("us", "Europe/Berlin")),
        "unknown": pa.array([None], pa.null()),
        "list": pa.array([[CANARY]]),
    }
)


def test_types_say_the_kind_and_a_person_the_rest(tmp_path: Path) -> None:
    text = draft_schema(parquet_at(tmp_path / "People 2020.parquet", EVERY_TYPE))
    document = parse_yaml(text)
    assert document["name"] == "people-2020"
    kinds = {column["name"]: str(column["kind"]) for column in document["columns"]}
    assert kinds == {
        "whole": "integer", "price": "real", "exact": "real", "text": "categorical", "label": "categorical",
        "flag": "boolean", "day": "date", "seen": "datetime", "unknown": "!fill",
    }  # fmt: skip
    assert document["columns"][7]["timezone"] == "Europe/Berlin"
    assert document["excluded"] == ["list"]
    told = problems(text, tmp_path)
    assert [problem.split(":")[0] for problem in told] == [f"column {name!r}" for name in kinds]
    assert told[0].startswith("column 'whole': Expected nullable, lower, upper to be filled in")


def test_a_required_field_is_not_nullable(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    source = parquet_at(tmp_path / "t.parquet", pa.table({"a": [1]}, schema=schema))
    assert parse_yaml(draft_schema(source))["columns"][0]["nullable"] is False


def test_no_value_of_the_table_gets_into_a_draft(tmp_path: Path) -> None:
    """Not even from where a Parquet file repeats values: statistics, dictionaries and the metadata of pandas."""
    frame = EVERY_TYPE.to_pandas().assign(code=[77123])
    frame.to_parquet(tmp_path / "t.parquet")
    assert CANARY.encode() in (tmp_path / "t.parquet").read_bytes()
    text = draft_schema(ParquetSource(kind="parquet", path=Location(url=str(tmp_path / "t.parquet"))))
    assert "77123" not in text
    assert "canary" not in text


def test_a_table_whose_rows_cannot_be_read_is_drafted_all_the_same(tmp_path: Path) -> None:
    whole = io.BytesIO()
    parquet.write_table(EVERY_TYPE, whole, compression="none")
    data = bytearray(whole.getvalue())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:footer] = b"\xff" * (footer - 4)
    (tmp_path / "t.parquet").write_bytes(bytes(data))
    assert "whole" in draft_schema(ParquetSource(kind="parquet", path=Location(url=str(tmp_path / "t.parquet"))))
    assert "  - name: age\n" in draft_schema(csv_at(tmp_path / "t.csv", b'age,sex\n\xff\xfe,"\xff\n'))


def test_names_that_yaml_would_take_for_something_else_stay_names(tmp_path: Path) -> None:
    names = ["yes", "a: b", "#x", "- y", "null", "a,b", "1st", "é", "!fill", "[z", "'", '"q"']
    table = pa.table({name: pa.array([1]) for name in names})
    document = parse_yaml(draft_schema(parquet_at(tmp_path / "t.parquet", table)))
    assert [column["name"] for column in document["columns"]] == names


@pytest.mark.parametrize("header", ["31,cook", "age,", "age,age", "2020-01-02,job", "1.5e3,x", "3/4/2021,x"])
def test_a_first_line_that_is_rather_a_row_is_refused_and_not_told(tmp_path: Path, header: str) -> None:
    with pytest.raises(SourceError, match="to begin with the names of its columns") as caught:
        draft_schema(csv_at(tmp_path / "t.csv", f"{header}\n1,2\n"))
    assert header not in str(caught.value)


def test_a_query_is_drafted_by_its_names(tmp_path: Path) -> None:
    source = sqlite_source(tmp_path, [{"age": 1, "job.title": CANARY, "who": 2}])
    text = draft_schema(source)
    assert [column["name"] for column in parse_yaml(text)["columns"]] == ["age", "job.title", "who"]
    assert CANARY not in text


def test_a_query_of_sqlite_is_drafted_by_declared_types_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE t (age INTEGER, size bigint, fee DECIMAL(8, 2), visits NUMERIC(8), weight DOUBLE PRECISION, "
            "job VARCHAR(20), member BOOLEAN, joined DATE, seen DATETIME, more, raw BLOB);"
            f"INSERT INTO t VALUES (1, 2, 3, 4, 5, '{CANARY}', 1, '2020-01-01', '2020-01-01', '{CANARY}', x'00');"
            "CREATE VIEW v AS SELECT * FROM t;"
        )
    before = path.read_bytes()
    query = "WITH x AS (SELECT * FROM v WHERE age > 0) SELECT abs(-9223372036854775807 - age) AS fails, x.* FROM x;"
    text = draft_schema(SqlSource(kind="sql", url=f"sqlite:///{path}", query=query))
    assert {column["name"]: str(column["kind"]) for column in parse_yaml(text)["columns"]} == {
        "fails": "!fill", "age": "integer", "size": "integer", "fee": "real", "visits": "integer", "weight": "real",
        "job": "categorical", "member": "boolean", "joined": "date", "seen": "datetime", "more": "!fill",
        "raw": "!fill",
    }  # fmt: skip
    assert CANARY not in text
    assert (path.read_bytes(), sorted(tmp_path.iterdir())) == (before, [path])


def test_a_field_that_says_more_than_its_type_is_not_listened_to(tmp_path: Path) -> None:
    field = pa.field("a", pa.string(), metadata={"values": f'["{CANARY}"'})
    source = parquet_at(tmp_path / "t.parquet", pa.table({"a": ["x"]}, schema=pa.schema([field])))
    assert CANARY not in draft_schema(source)


SAMPLE = """age,price,flag,day,seen,zip,job,note,empty,far
17,1.25,true,2020-01-05,2020-01-05T10:00,01234,cook,{0},,-5
,99.5,FALSE,2024-11-30,2021-01-05T11:00,01235,nurse,{0}b,,100000
64,40,true,2022-01-01,2020-07-05T10:00,,cook,{0}c,,7
"""


def test_a_public_sample_fills_the_draft(tmp_path: Path) -> None:
    rows = SAMPLE.splitlines()
    many = "\n".join([*rows, *(rows[1].replace("{0}", f"note {n}") for n in range(150))])
    table = csv_at(tmp_path / "t.csv", f"{rows[0]},more\n\xff")
    text = draft_schema(table, csv_at(tmp_path / "sample.csv", many))
    assert problems(text, tmp_path) == (
        "column 'empty': Expected kind, nullable to be filled in: put what is publicly known in the place of !fill.",
        "column 'more': Expected kind, nullable to be filled in: put what is publicly known in the place of !fill.",
    )
    document = parse_yaml(text)
    found = {column.pop("name"): column for column in document["columns"]}
    assert found["age"] == {"kind": "integer", "nullable": True, "lower": 17, "upper": 64}
    assert found["price"] == {"kind": "real", "nullable": False, "lower": 0.0, "upper": 100.0, "bins": 20}
    assert found["flag"] == {"kind": "boolean", "nullable": True}
    assert found["day"]["unit"] == "quarter"
    assert (found["day"]["lower"], found["day"]["upper"]) == (date(2020, 1, 1), date(2024, 12, 31))
    assert (found["seen"]["kind"], found["seen"]["unit"]) == ("datetime", "month")
    assert found["zip"] == {"kind": "categorical", "nullable": True, "values": ["01234", "01235"], "other": "other"}
    assert found["far"]["step"] == 5000
    assert document["excluded"] == ["note"]


def test_a_filled_draft_loads_and_encodes_the_sample_without_loss(tmp_path: Path) -> None:
    sample = csv_at(tmp_path / "sample.csv", "age,job\n31,cook\n,nurse\n250,cook\n")
    (tmp_path / "s.yaml").write_text(draft_schema(csv_at(tmp_path / "t.csv", "age,job\n"), sample), encoding="utf-8")
    schema = TableSchema.load(tmp_path / "s.yaml")
    frame = pd.read_csv(tmp_path / "sample.csv", dtype=str)
    codes = encode(frame, schema)
    assert codes.columns["job"].tolist() == [0, 1, 0]
    assert codes.columns["age"][1] == schema.columns[0].size - 1


@pytest.mark.parametrize("sample", ["t.csv", "./t.csv", "link.csv", "."])
def test_the_private_table_is_not_taken_for_a_public_sample(tmp_path: Path, sample: str) -> None:
    table = csv_at(tmp_path / "t.csv", f"age,job\n3,{CANARY}\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    public = CsvSource(kind="csv", path=Location(url=str(tmp_path / sample)))
    with pytest.raises(ConfigError, match="apart from the private table"):
        draft_schema(table, public)


@pytest.mark.parametrize(("text", "rule"), [("x,y\n1,2\n", "to have a column of the table"), ("a,b\n", "to have rows")])
def test_a_sample_that_says_nothing_is_refused(tmp_path: Path, text: str, rule: str) -> None:
    with pytest.raises(SourceError, match=rule):
        draft_schema(csv_at(tmp_path / "t.csv", "a,b\n1,2\n"), csv_at(tmp_path / "s.csv", text))


VALUES = st.one_of(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1).map(lambda v: pa.array(v, pa.int64())),
    st.lists(st.none() | st.floats(), min_size=1).map(lambda v: pa.array(v, pa.float64())),
    st.lists(st.none() | st.text(max_size=5), min_size=1).map(lambda v: pa.array(v, pa.string())),
    st.lists(st.none() | st.dates(), min_size=1).map(lambda v: pa.array(v, pa.date32())),
    st.lists(st.none() | st.datetimes(), min_size=1).map(lambda v: pa.array(v, pa.timestamp("us"))),
    st.lists(st.none() | st.booleans(), min_size=1).map(lambda v: pa.array(v, pa.bool_())),
)


@settings(deadline=None, max_examples=60)
@given(VALUES, st.booleans())
def test_a_draft_from_any_sample_loads_or_says_what_is_left(
    tmp_path_factory: pytest.TempPathFactory, values: pa.Array, is_typed: bool
) -> None:
    """Whether or not the private table has types that say more."""
    folder = tmp_path_factory.mktemp("draft")
    sample = parquet_at(folder / "sample.parquet", pa.table({"a": values}))
    table = parquet_at(folder / "t.parquet", pa.table({"a": values[:0]})) if is_typed else csv_at(folder / "t.csv", "a")
    text = draft_schema(table, sample)
    told = problems(text, folder)
    is_left_out = "excluded" in yaml.safe_load(text.replace("!fill", ""))
    assert is_left_out or not told or all("to be filled in" in problem for problem in told)
