"""What a broken source tells: the fragment or the query, and the rule; never a row."""

import logging
import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from support.private_tables import (
    CANARY,
    ROWS,
    SCHEMA,
    csv_bytes,
    csv_source,
    parquet_bytes,
    parquet_source,
    put,
    sqlite_source,
)

from ppsyn.data.ingest import encoded_batches
from ppsyn.data.sources import check_source, read_batches
from ppsyn.errors import PPSynError, SchemaError
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource, ParquetSource, Source, SqlSource
from ppsyn.schemas.table import TableSchema

NAMES = ["age", "job.title", "who"]
PERSON = PersonUnit(column="who", max_rows=1)
SECRET = "s3cr3t/:@%"

CANARIES = [{"age": 7, "job.title": CANARY, "who": CANARY} for _ in range(613)]


SOURCES: dict[str, Callable[[Location], Source]] = {
    "csv": lambda location: CsvSource(kind="csv", path=location),
    "parquet": lambda location: ParquetSource(kind="parquet", path=location),
}


def memory(name: str, files: dict[str, bytes]) -> Location:
    location = Location(url=f"memory://errors-{name}")
    put(location, files)
    return location


def drain(source: Source) -> None:
    for _ in read_batches(source, SCHEMA, PERSON):
        pass


@pytest.fixture(autouse=True)
def compiler_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    """What Numba logs of compiling, in whichever test reads such a line first, is about the program and no row."""
    caplog.set_level(logging.WARNING, "numba")


def told_by(act: Callable[[], object], caplog: pytest.LogCaptureFixture) -> str:
    """All that an error, its traceback and the logs tell; it must be one of ours, and stand alone."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(PPSynError) as caught:
        act()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value) + "".join(traceback.format_exception(caught.value)) + caplog.text


def assert_quiet(told: str) -> None:
    for secret in (CANARY, "613", "612", "Row #", "invalid UTF8", "0xff"):
        assert secret not in told


# While rows are read

GOOD_CSV, GOOD_PARQUET = csv_bytes(CANARIES, NAMES), parquet_bytes(CANARIES, NAMES)

BROKEN_ROWS: dict[str, bytes] = {
    "few.csv": GOOD_CSV + f"{CANARY}\n".encode(),
    "many.csv": GOOD_CSV + f"1,2,{CANARY},4\n".encode(),
    "first.csv": f"age,job.title,who\n{CANARY}\n".encode(),
    "latin.csv": GOOD_CSV + f"1,{CANARY},".encode() + b"\xff\n",
    "unclosed.csv": GOOD_CSV + f'1,"{CANARY},2\n'.encode(),
    "endless.csv": GOOD_CSV + f"1,2,{CANARY}".encode() * 3_000_000,
}
TORN = GOOD_PARQUET[:4] + bytes(50) + GOOD_PARQUET[54:]


@pytest.mark.parametrize("name", BROKEN_ROWS)
def test_a_broken_row_of_a_csv_file_tells_nothing(
    name: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    source = SOURCES["csv"](memory(name, {name: BROKEN_ROWS[name]}))
    check_source(source, SCHEMA, PERSON)
    drain(source)
    assert caplog.text + "".join(capfd.readouterr()) == ""


@pytest.mark.parametrize("name", BROKEN_ROWS)
def test_a_broken_row_of_a_csv_file_is_refused_by_a_column_that_refuses(
    name: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    columns = [column.model_dump(mode="json") | {"outside": "refuse"} for column in SCHEMA.columns]
    schema = TableSchema.model_validate(SCHEMA.model_dump(mode="json") | {"columns": columns})
    body = BROKEN_ROWS[name].replace(GOOD_CSV, b"age,job.title,who\n")
    source = SOURCES["csv"](memory(f"refused-{name}", {name: body}))
    told = told_by(lambda: list(encoded_batches(source, schema, PERSON)), caplog)
    assert "'age'" in told
    assert_quiet(told + "".join(capfd.readouterr()))


def test_a_torn_page_of_a_parquet_file_is_told_by_fragment_and_rule(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    location = memory("torn", {"torn.parquet": TORN})
    source = SOURCES["parquet"](location)
    check_source(source, SCHEMA, PERSON)
    told = told_by(lambda: drain(source), caplog)
    assert f"Expected {location.url}/torn.parquet" in told
    assert_quiet(told + "".join(capfd.readouterr()))


def test_text_of_a_parquet_file_that_is_not_utf8_is_told_by_rule(caplog: pytest.LogCaptureFixture) -> None:
    data = parquet_bytes([{"age": 1, "job.title": "Zq" * 20, "who": CANARY}], NAMES, compression="none")
    data = data.replace(b"Zq" * 20, b"\xff" * 40)
    location = memory("utf8", {"a.parquet": data})
    told = told_by(lambda: drain(ParquetSource(kind="parquet", path=location)), caplog)
    assert "text in UTF-8" in told
    assert_quiet(told)


def test_a_fragment_that_changes_or_goes_after_the_check_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(csv_bytes(ROWS, NAMES))
    source = CsvSource(kind="csv", path=Location(url=str(tmp_path)))
    check_source(source, SCHEMA, PERSON)
    batches = read_batches(source, SCHEMA, PERSON)
    next(batches)
    (tmp_path / "b.csv").write_bytes(f"{CANARY},x\n1,2\n".encode())
    told = told_by(lambda: list(batches), caplog)
    assert f"Expected a column 'age' in {tmp_path}/b.csv" in told
    assert_quiet(told)
    batches = read_batches(source, SCHEMA, PERSON)
    next(batches)
    (tmp_path / "b.csv").unlink()
    assert f"Expected {tmp_path}/b.csv to be readable" in told_by(lambda: list(batches), caplog)


def test_a_database_that_stumbles_over_a_row_is_told_by_rule(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = sqlite_source(tmp_path, [*ROWS, {"age": 1, "job.title": CANARY, "who": 2}])
    query = (
        f'SELECT age, CASE "job.title" WHEN \'{CANARY}\' THEN abs(-9223372036854775808) END AS "job.title", who FROM t'
    )
    failing = source.model_copy(update={"query": query})
    check_source(failing, SCHEMA, PERSON)
    told = told_by(lambda: drain(failing), caplog)
    assert "the query" in told
    assert "overflow" not in told
    assert_quiet(told)


def test_sqlite_text_that_is_not_utf8_is_told_by_rule(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = sqlite_source(tmp_path, ROWS)
    query = f"SELECT age, CAST(x'{CANARY.encode().hex()}ff' AS TEXT) AS \"job.title\", who FROM t"
    assert_quiet(told_by(lambda: drain(source.model_copy(update={"query": query})), caplog))


def test_a_bucket_that_refuses_is_told_by_address(
    s3: Location, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = csv_source(s3, ROWS)
    monkeypatch.setenv(f"{s3.credentials}_SECRET_ACCESS_KEY", "wrong")
    for act in (lambda: check_source(source, SCHEMA, PERSON), lambda: drain(source)):
        told = told_by(act, caplog)
        assert s3.url in told
        assert "wrong" not in told


def test_an_object_that_goes_from_a_bucket_is_told_by_address(s3: Location, caplog: pytest.LogCaptureFixture) -> None:
    source = parquet_source(s3, ROWS)
    batches = read_batches(source, SCHEMA, PERSON)
    next(batches)
    put(s3, {"deep/b.parquet": b"gone"})
    assert f"{s3.url}/deep/b.parquet" in told_by(lambda: list(batches), caplog)


# Before a row is read


def test_nothing_where_the_source_should_be_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for kind, url in (("csv", tmp_path), ("parquet", tmp_path / "no"), ("csv", "memory://errors-nothing")):
        source = SOURCES[kind](Location(url=str(url)))
        told = told_by(lambda source=source: check_source(source, SCHEMA, None), caplog)
        endings = {"csv": ".csv or .csv.gz", "parquet": ".parquet"}[kind]
        assert f"at least one {endings} file, at {url}" in told


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (["age", "who"], "Expected a column 'job.title' in"),
        (["age", "job.title"], "Expected a column 'who' in"),
        (["age", "job.title", "who", "extra"], "Expected no column 'extra' in"),
        (["age", "job.title", "who", "age"], "Expected the column 'age' once in"),
    ],
)
def test_columns_that_are_not_the_schemas_are_told_by_name(
    names: list[str], rule: str, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [dict.fromkeys(names, 1)]
    good = csv_bytes(ROWS, NAMES)
    csv = CsvSource(kind="csv", path=memory("-".join(names), {"a.csv": good, "b.csv": csv_bytes(rows, names)}))
    told = told_by(lambda: check_source(csv, SCHEMA, PERSON), caplog)
    assert f"{rule} {csv.path.url}/b.csv" in told
    if len(set(names)) == len(names):
        parquet = ParquetSource(kind="parquet", path=memory("-".join(names), {"b.parquet": parquet_bytes(rows, names)}))
        assert rule in told_by(lambda: check_source(parquet, SCHEMA, PERSON), caplog)


@pytest.mark.parametrize("first", [f"{CANARY},{CANARY},3", f'"{CANARY}', f"{CANARY}" * 200_000, f"age,{CANARY}", ""])
def test_a_file_without_a_header_does_not_have_its_first_row_told(first: str, caplog: pytest.LogCaptureFixture) -> None:
    location = memory("no-header", {"a.csv": f"{first}\n{CANARY},1,2\n".encode()})
    told = told_by(lambda: check_source(CsvSource(kind="csv", path=location), SCHEMA, PERSON), caplog)
    assert f"{location.url}/a.csv" in told
    assert_quiet(told)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"\xff\xfe", GOOD_PARQUET[:-10], GOOD_PARQUET[:40]])
def test_a_file_that_is_not_of_its_format_is_told(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    location = memory("format", {"a.parquet": data, "a.csv": data})
    for source in (ParquetSource(kind="parquet", path=location), CsvSource(kind="csv", path=location)):
        told = told_by(lambda source=source: check_source(source, SCHEMA, None), caplog)
        assert f"{location.url}/a.{source.kind}" in told
        assert_quiet(told)


@pytest.mark.parametrize("column", ["age", "nobody"])
def test_a_person_column_that_is_not_excluded_is_told(column: str, caplog: pytest.LogCaptureFixture) -> None:
    source = csv_source(Location(url="memory://errors-person"), ROWS)
    told = told_by(lambda: check_source(source, SCHEMA, PersonUnit(column=column, max_rows=1)), caplog)
    assert f"Expected the person column {column!r} in `excluded`" in told


def test_persons_that_cannot_be_told_apart_are_refused_by_their_type(caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"age": 1, "job.title": "cook", "who": [CANARY]}]
    source = ParquetSource(kind="parquet", path=memory("lists", {"a.parquet": parquet_bytes(rows, NAMES)}))
    told = told_by(lambda: check_source(source, SCHEMA, PERSON), caplog)
    assert "'who'" in told
    assert_quiet(told)
    check_source(source, SCHEMA, None)


@pytest.mark.parametrize("delimiter", ["é", '"', "\n"])
def test_a_delimiter_that_cannot_be_one_is_refused(delimiter: str, caplog: pytest.LogCaptureFixture) -> None:
    source = CsvSource(kind="csv", path=memory("delimiter", {"a.csv": GOOD_CSV}), delimiter=delimiter)
    assert "Expected delimiter=" in told_by(lambda: check_source(source, SCHEMA, None), caplog)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELECT nobody FROM t", "no such column: nobody"),
        ("SELECT age FROM t", "Expected a column 'job.title' in the query"),
        ("SELECT *, 1 AS extra FROM t", "Expected no column 'extra' in the query"),
        ("SELECT * FROM t; DELETE FROM t", "syntax error"),
        ("DELETE FROM t", "syntax error"),
    ],
)
def test_what_a_database_says_about_a_query_is_told(
    query: str, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = sqlite_source(tmp_path, ROWS).model_copy(update={"query": query})
    assert said in told_by(lambda: check_source(source, SCHEMA, None), caplog)


def test_a_row_cannot_speak_while_a_query_is_checked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = sqlite_source(tmp_path, [{"age": f"{{{CANARY}", "job.title": CANARY, "who": 1}])
    query = 'SELECT json_extract(age, \'$.x\') AS age, max("job.title") AS "job.title", who FROM t GROUP BY 1'
    grouped = source.model_copy(update={"query": query})
    told = told_by(lambda: (check_source(grouped, SCHEMA, PERSON), drain(grouped)), caplog)
    assert "JSON" not in told
    assert_quiet(told)


def test_a_missing_database_is_told_and_not_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = SqlSource(kind="sql", url=f"sqlite:///{tmp_path}/no.db", query="SELECT 1")
    assert f"Expected a database at {source.url}" in told_by(lambda: check_source(source, SCHEMA, None), caplog)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "x.db").write_bytes(b"canary" * 1000)
    source = SqlSource(kind="sql", url=f"sqlite:///{tmp_path}/x.db", query="SELECT 1")
    assert "not a database" in told_by(lambda: check_source(source, SCHEMA, None), caplog)


def test_a_query_can_only_read(tmp_path: Path) -> None:
    source = sqlite_source(tmp_path, ROWS)
    before = (tmp_path / "table.db").read_bytes()
    drain(source)
    assert (tmp_path / "table.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["table.db"]
    with sqlite3.connect(tmp_path / "table.db") as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (len(ROWS),)


def test_a_variable_that_the_environment_does_not_hold_is_told(caplog: pytest.LogCaptureFixture) -> None:
    source = SqlSource(kind="sql", url="postgresql://me:${PPSYN_NO_SUCH}@localhost/x", query="SELECT 1")
    assert "Expected the environment to hold PPSYN_NO_SUCH" in told_by(
        lambda: check_source(source, SCHEMA, None), caplog
    )


def test_a_database_that_nobody_serves_is_told_without_the_password(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPSYN_TEST_SECRET", SECRET)
    source = SqlSource(kind="sql", url="postgresql://me:${PPSYN_TEST_SECRET}@127.0.0.1:1/x", query="SELECT 1")
    told = told_by(lambda: check_source(source, SCHEMA, None), caplog)
    assert "127.0.0.1" in told
    assert SECRET not in told + repr(source)
    monkeypatch.setenv("PPSYN_TEST_PORT", SECRET)
    source = source.model_copy(update={"url": source.url.replace(":1/", ":${PPSYN_TEST_PORT}/")})
    assert SECRET not in told_by(lambda: check_source(source, SCHEMA, None), caplog)


def test_schema_faults_are_schema_errors() -> None:
    schema = TableSchema.model_validate(SCHEMA.model_dump() | {"excluded": []})
    with pytest.raises(SchemaError):
        check_source(csv_source(Location(url="memory://errors-schema"), ROWS), schema, PERSON)
