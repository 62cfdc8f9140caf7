import traceback
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url
from support.private_tables import CANARY, SCHEMA

from ppsyn.data.encoding import encode_marked
from ppsyn.data.sources import check_source, read_batches
from ppsyn.errors import SourceError
from ppsyn.schema_draft import draft_schema
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.files import parse_yaml
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource, SqlSource
from ppsyn.schemas.table import TableSchema

PERSON = PersonUnit(column="who", max_rows=1)

DAYS = {"lower": "2020-01-01", "upper": "2020-01-09", "unit": "day", "nullable": True}
TYPES = TableSchema.model_validate(
    {
        "name": "types",
        "columns": [
            {"name": "n", "kind": "integer", "lower": 0, "upper": 9, "nullable": True},
            {"name": "x", "kind": "real", "lower": 0, "upper": 10, "bins": 10, "nullable": True},
            {
                "name": "d",
                "kind": "date",
                "lower": "2020-01-01",
                "upper": "2020-01-09",
                "unit": "day",
                "nullable": True,
            },
            {
                "name": "m",
                "kind": "datetime",
                "lower": "2020-01-01",
                "upper": "2020-01-09",
                "unit": "day",
                "nullable": True,
            },
            {"name": "b", "kind": "boolean", "nullable": True},
        ],
    }
)


@pytest.fixture
def url(postgres: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty database, with its password in the environment."""
    address = make_url(postgres)
    monkeypatch.setenv("PPSYN_TEST_PASSWORD", address.password or "")
    template = address.set(password="HIDDEN").render_as_string(hide_password=False)
    return template.replace("HIDDEN", "${PPSYN_TEST_PASSWORD}")


def fill(postgres: str, *statements: str) -> None:
    with psycopg.connect(postgres) as connection:
        for statement in statements:
            connection.execute(statement)


def source_of(url: str, query: str, batch_rows: int = 2) -> SqlSource:
    return SqlSource(kind="sql", url=url, query=query, batch_rows=batch_rows)


def test_rows_come_as_the_databases_objects(url: str, postgres: str) -> None:
    fill(
        postgres,
        "CREATE TABLE t (n numeric, x double precision, d date, m timestamptz, b boolean)",
        "INSERT INTO t VALUES (3, 2.5, '2020-01-03', '2020-01-02T23:30:00-01:00', true), (9, 'NaN', null, null, false)",
        "INSERT INTO t VALUES (null, 'infinity', 'infinity', '-infinity', null)",
        "INSERT INTO t VALUES (10000, 1, '0044-03-15 BC', '2020-01-01 BC', true)",
    )
    source = source_of(url, "SELECT *, '%s :x' IS NULL AS extra, 7 % 4 AS more FROM t")
    schema = TYPES.model_copy(update={"excluded": ("extra", "more")})
    check_source(source, schema, None)
    found = [encode_marked(batch.frame, schema) for batch in read_batches(source, schema, None)]
    assert [codes["n"].tolist() for codes in found] == [[3, 9], [10, 9]]
    assert [codes["x"].tolist() for codes in found] == [[2, 10], [9, 1]]
    assert [codes["d"].tolist() for codes in found] == [[2, 9], [9, 9]]
    assert [codes["m"].tolist() for codes in found] == [[2, 9], [9, 9]]
    assert [codes["b"].tolist() for codes in found] == [[1, 0], [2, 1]]


def test_a_draft_has_the_types_that_are_declared_and_the_values_of_enumerated_ones(url: str, postgres: str) -> None:
    fill(
        postgres,
        "CREATE TYPE triage AS ENUM ('red', 'yellow', 'green', 'other')",
        "CREATE DOMAIN adult AS smallint CHECK (VALUE >= 18)",
        "CREATE TABLE t (age adult, fee numeric(8, 2), visits numeric(8), weight real, job varchar(20), code char(2), "
        "member boolean, joined date, seen timestamptz, level triage, note json)",
        f"INSERT INTO t (age, job) VALUES (20, '{CANARY}')",
    )
    text = draft_schema(source_of(url, "WITH x AS (SELECT t.*, 1 / (age - 20) AS fails FROM t) SELECT * FROM x"))
    columns = {column["name"]: column for column in parse_yaml(text)["columns"]}
    assert {name: str(column["kind"]) for name, column in columns.items()} == {
        "age": "integer", "fee": "real", "visits": "integer", "weight": "real", "job": "categorical",
        "code": "categorical", "member": "boolean", "joined": "date", "seen": "datetime", "level": "categorical",
        "note": "!fill", "fails": "integer",
    }  # fmt: skip
    assert columns["level"]["values"] == ["red", "yellow", "green", "other"]
    assert str(columns["job"]["values"]) == "!fill"
    assert CANARY not in text


def test_a_public_sample_fills_what_the_types_leave_open(url: str, postgres: str, tmp_path: Path) -> None:
    fill(postgres, "CREATE TYPE triage AS ENUM ('red', 'yellow')", "CREATE TABLE t (age int, level triage)")
    (tmp_path / "public.csv").write_text("age,level\n3,red\n9,red\n", encoding="utf-8")
    sample = CsvSource(kind="csv", path=Location(url=str(tmp_path / "public.csv")))
    age, level = parse_yaml(draft_schema(source_of(url, "SELECT * FROM t"), sample))["columns"]
    assert (age["lower"], age["upper"], level["values"]) == (3, 9, ["red", "yellow"])


PEOPLE = ('CREATE TABLE t (age integer, "job.title" text, who bigint)',)


def test_rows_are_streamed_in_batches(url: str, postgres: str) -> None:
    fill(postgres, *PEOPLE, "INSERT INTO t SELECT i % 100, 'cook', i FROM generate_series(1, 10000) AS i")
    source = source_of(url, "WITH x AS (SELECT * FROM t) SELECT * FROM x ORDER BY who -- all;", 999)
    check_source(source, SCHEMA, PERSON)
    batches = [batch.frame for batch in read_batches(source, SCHEMA, PERSON)]
    assert [len(frame) for frame in batches] == [999] * 10 + [10]
    assert [who for frame in batches for who in frame["who"]] == list(range(1, 10001))
    assert {str(dtype) for frame in batches for dtype in frame.dtypes} == {"object"}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM nowhere", 'relation "nowhere" does not exist'),
        ("SELECT age FROM t", "Expected a column 'job.title' in the query"),
        ("SELECT *, 1 AS age FROM t", "Expected the column 'age' once in the query"),
        ("DELETE FROM t RETURNING *", "syntax error"),
        ("SELECT * FROM t) AS q; DROP TABLE t; SELECT * FROM (SELECT 1", "read-only transaction"),
    ],
)
def test_what_the_database_says_about_a_query_is_told(url: str, postgres: str, query: str, said: str) -> None:
    fill(postgres, *PEOPLE)
    with pytest.raises(SourceError) as caught:
        check_source(source_of(url, query), SCHEMA, PERSON)
    assert said in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_function_that_writes_is_stopped(url: str, postgres: str) -> None:
    fill(
        postgres,
        *PEOPLE,
        "CREATE FUNCTION w() RETURNS int LANGUAGE sql AS $$ INSERT INTO t VALUES (1, 'x', 1) RETURNING 1 $$",
        "INSERT INTO t VALUES (1, 'cook', 1)",
    )
    source = source_of(url, 'SELECT w() AS age, "job.title", who FROM t')
    with pytest.raises(SourceError, match="the query"):
        list(read_batches(source, SCHEMA, PERSON))
    with psycopg.connect(postgres) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_a_row_that_stops_the_query_is_not_quoted(url: str, postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    fill(postgres, *PEOPLE, f"INSERT INTO t VALUES (1, 'cook', 1), (2, '{CANARY}', 2)")
    source = source_of(url, 'SELECT "job.title"::int AS age, "job.title", who FROM t')
    check_source(source, SCHEMA, PERSON)
    with pytest.raises(SourceError) as caught:
        list(read_batches(source, SCHEMA, PERSON))
    told = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert "cook" not in told
    assert CANARY not in told
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_database_that_goes_away_is_told_by_rule(url: str, postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    fill(postgres, *PEOPLE, f"INSERT INTO t SELECT 1, '{CANARY}', i FROM generate_series(1, 50000) AS i")
    batches = read_batches(source_of(url, "SELECT * FROM t"), SCHEMA, PERSON)
    next(batches)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )
    with pytest.raises(SourceError, match="the query to its end") as caught:
        list(batches)
    assert CANARY not in "".join(traceback.format_exception(caught.value)) + caplog.text
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_wrong_password_is_told_and_never_shown(
    url: str, postgres: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PPSYN_TEST_PASSWORD", "wr0ng/@:%")
    with pytest.raises(SourceError, match="password authentication failed") as caught:
        check_source(source_of(url, "SELECT 1"), SCHEMA, None)
    assert "wr0ng" not in "".join(traceback.format_exception(caught.value)) + caplog.text


def test_a_password_may_hold_any_character(url: str, postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    password = "p@ss:w/ör%d 40%"
    user = f"odd_{make_url(postgres).database}"
    fill(postgres, *PEOPLE, f"CREATE USER {user} PASSWORD '{password}'", f"GRANT SELECT ON t TO {user}")
    monkeypatch.setenv("PPSYN_TEST_PASSWORD", password)
    monkeypatch.setenv("PPSYN_TEST_USER", user)
    odd = url.replace("postgres:$", "${PPSYN_TEST_USER}:$")
    check_source(source_of(odd, "SELECT * FROM t"), SCHEMA, PERSON)


def test_a_row_that_goes_or_changes_moves_no_other(url: str, postgres: str) -> None:
    values = ["1, 'cook', 1", "null, null, null", "200, 'clown', 2", "7, '', 2", "-1, 'nurse', 3"]
    fill(postgres, 'CREATE TABLE t (n int, age integer, "job.title" text, who bigint)')
    fill(postgres, *(f"INSERT INTO t VALUES ({n}, {value})" for n, value in enumerate(values)))
    source = source_of(url, 'SELECT age, "job.title", who FROM t ORDER BY n')

    def rows() -> list[tuple[object, ...]]:
        frames = [batch.frame for batch in read_batches(source, SCHEMA, PERSON)]
        found = [zip(*encode_marked(frame, SCHEMA).values(), frame["who"], strict=True) for frame in frames]
        return [tuple(row) for each in found for row in each]

    before = rows()
    for n in range(len(values)):
        fill(postgres, f"UPDATE t SET age = 55, \"job.title\" = 'cook', who = 9 WHERE n = {n}")
        changed = rows()
        assert changed == [*before[:n], (55, 0, 9), *before[n + 1 :]]
        fill(postgres, f"DELETE FROM t WHERE n = {n}")
        assert rows() == [*before[:n], *before[n + 1 :]]
        fill(postgres, f"INSERT INTO t VALUES ({n}, {values[n]})")
