"""Whole releases, in this process, against real servers: every source, every store, and input that is at fault."""

import csv
import gzip
import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner
from conftest import CREDENTIALS
from prefect.client.orchestration import SyncPrefectClient
from pyarrow import parquet
from support.servers import PostgreSQL, SeaweedFS, free_ports
from support.small_release import BATCH_ROWS, DATASET, JOBS, SCHEMA, table_text, write_release

from ppsyn.errors import CapExceededError, DomainRefusedError, SourceError, StoreError
from ppsyn.flows.cli.main import main
from ppsyn.flows.release import release
from ppsyn.mechanisms.base import State
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.budget import rho_of
from ppsyn.releases.audit import audit
from ppsyn.releases.reader import read_manifest
from ppsyn.schemas.config import Budget
from ppsyn.schemas.locations import Location
from ppsyn.schemas.run import RunRef
from ppsyn.storage import Store, open_store
from ppsyn.tasks.run_registry import watched_by

pytestmark = pytest.mark.usefixtures("prefect_api")

NAMES = ("age", "job", "member", "joined")
Table = list[dict[str, str | None]]


def rows_of(text: str) -> Table:
    return [{name: value or None for name, value in row.items()} for row in csv.DictReader(text.splitlines())]


def arrow(rows: Table) -> pa.Table:
    columns = {name: pa.array([row[name] for row in rows]) for name in NAMES}
    return pa.table(
        {
            "age": columns["age"].cast(pa.int16()),
            "job": columns["job"].dictionary_encode(),
            "member": columns["member"].cast(pa.bool_()),
            "joined": columns["joined"].cast(pa.date32()),
        }
    )


def parquet_bytes(rows: Table) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(arrow(rows), sink, row_group_size=100)
    return sink.getvalue().to_pybytes()


def given(location: Location) -> dict[str, Any]:
    """A place as a release file has it; only a bucket has an endpoint."""
    return location.model_dump(mode="json", exclude_none=True)


def files_at(kind: str, location: Location, files: Mapping[str, bytes]) -> dict[str, Any]:
    """A source of files, written to a folder or a bucket."""
    store = open_store(location)
    for key, data in files.items():
        store.put(key, data)
    return {"kind": kind, "path": given(location), "batch_rows": BATCH_ROWS}


def fragments(rows: Table) -> dict[str, bytes]:
    return {"part-0.parquet": parquet_bytes(rows[:250]), "more/part-1.parquet": parquet_bytes(rows[250:])}


def in_postgresql(url: str, rows: Table) -> dict[str, Any]:
    """A table `club` of the database, and a query for all of it; the password is left to the environment."""
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE club (age smallint, job text, member boolean, joined date)")
        cursor.executemany("INSERT INTO club VALUES (%(age)s, %(job)s, %(member)s, %(joined)s)", rows)
    password = urlsplit(url).password or ""
    address = url.replace(password, "${CLUB_PASSWORD}")
    return {"kind": "sql", "url": address, "query": "SELECT * FROM club", "batch_rows": BATCH_ROWS}


def in_sqlite(path: Path, rows: Table) -> dict[str, Any]:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE club (age INTEGER, job TEXT, member TEXT, joined TEXT)")
    connection.executemany("INSERT INTO club VALUES (:age, :job, :member, :joined)", rows)
    connection.commit()
    connection.close()
    return {"kind": "sql", "url": f"sqlite:///{path}", "query": "SELECT * FROM club", "batch_rows": BATCH_ROWS}


def change(name: str, value: object) -> str:
    """A setting, as the command line takes it."""
    return f"{name}={json.dumps(value)}"


def released(file: Path, *settings: str) -> Store:
    """The release that the flow makes of a file; it audits cleanly, with its account."""
    url = release(str(file), settings=settings)
    stores = _stores(file, settings)
    folder = open_store((stores.get("releases") or stores["root"]).model_copy(update={"url": url}))
    found = list(audit(folder, StoredAccount(open_store(stores["root"]), DATASET)))
    assert len(found) > 10
    assert [finding for finding in found if finding.problem] == []
    return folder


def _stores(file: Path, settings: tuple[str, ...]) -> dict[str, Location]:
    stores = yaml.safe_load(file.read_text(encoding="utf-8"))["stores"]
    for setting in settings:
        name, _, value = setting.partition("=")
        if name.startswith("stores."):
            stores[name.removeprefix("stores.")] = json.loads(value)
    return {name: Location.model_validate(location).resolved_against(file.parent) for name, location in stores.items()}


def account_of(file: Path) -> StoredAccount:
    return StoredAccount(open_store(_stores(file, ())["root"]), DATASET)


@pytest.fixture
def keys(postgresql_server: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database's password, in the environment."""
    monkeypatch.setenv("CLUB_PASSWORD", urlsplit(postgresql_server.url).password or "")


@pytest.fixture
def rows() -> Table:
    return rows_of(table_text())


NOISELESS = (change("privacy", {"rho": 1e6}), change("account.cap", {"rho": 1e6}))
"""A budget so large that there is no noise, to compare sources by their counts."""


def assert_released(file: Path, source: Mapping[str, Any]) -> None:
    """The release of a source audits cleanly, and every row of the table was counted."""
    folder = released(file, change("source", source), *NOISELESS)
    answers = parquet.read_table(pa.BufferReader(folder.get("measurements.parquet"))).to_pylist()
    counts = next(answer["noisy_counts"] for answer in answers if answer["clique"] == ["job"])
    jobs = [row["job"] for row in rows_of(table_text())]
    assert counts == [jobs.count(job) for job in (*JOBS, None)]


def test_one_csv_file_is_released(tmp_path: Path) -> None:
    assert_released(write_release(tmp_path), {"kind": "csv", "path": "table.csv", "batch_rows": BATCH_ROWS})


def test_a_folder_of_parquet_fragments_is_released(tmp_path: Path, rows: Table) -> None:
    source = files_at("parquet", Location(url=str(tmp_path / "fragments")), fragments(rows))
    assert_released(write_release(tmp_path), source)


def test_a_csv_file_in_a_bucket_is_released(tmp_path: Path, s3: Location) -> None:
    source = files_at("csv", s3, {"tables/club.csv": table_text().encode()})
    assert_released(write_release(tmp_path), {**source, "path": given(s3.child("tables/club.csv"))})


def test_parquet_fragments_in_a_bucket_are_released(tmp_path: Path, s3: Location, rows: Table) -> None:
    assert_released(write_release(tmp_path), files_at("parquet", s3.child("fragments"), fragments(rows)))


def test_a_query_of_sqlite_is_released(tmp_path: Path, rows: Table) -> None:
    assert_released(write_release(tmp_path), in_sqlite(tmp_path / "club.db", rows))


def test_a_query_of_postgresql_is_released(tmp_path: Path, postgres: str, keys: None, rows: Table) -> None:
    assert_released(write_release(tmp_path), in_postgresql(postgres, rows))


def test_a_person_is_protected_by_all_rows_that_count(tmp_path: Path, rows: Table) -> None:
    """Each of 80 persons has five rows, of which two count: the total is near 160 and not near 400."""
    lines = [f"{line},{number // 5}" for number, line in enumerate(table_text().splitlines()[1:])]
    file = write_release(tmp_path, privacy={"epsilon": 60.0, "person": {"column": "who", "max_rows": 2}})
    (tmp_path / "table.csv").write_text("\n".join(["age,job,member,joined,who", *lines]) + "\n", encoding="utf-8")
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump({**SCHEMA, "excluded": ["who"]}), encoding="utf-8")
    folder = released(file, change("account.cap", {"epsilon": 60.0, "delta": 1e-6}))
    manifest = read_manifest(folder)[0]
    assert 120 < manifest.rows < 200
    assert manifest.guarantee.unit == "a person, by at most 2 rows ('who')"
    assert account_of(file).state.opening.unit == "the person in 'who'"
    assert "who" not in parquet.read_schema(pa.BufferReader(folder.get("synthetic.parquet"))).names


@dataclass
class Looking:
    """Looks at the stores each time the run has advanced."""

    locations: Mapping[str, Location]
    seen: list[dict[str, list[str]]] = field(default_factory=list)

    def opened(self, ref: RunRef) -> None:
        pass

    def entered(self, stage: str) -> None:
        pass

    def advanced(self, state: State) -> None:
        self.seen.append({name: open_store(location).keys() for name, location in self.locations.items()})


def folders(keys: list[str]) -> set[str]:
    return {key.split("/", 1)[0] for key in keys}


def private_keys(keys: list[str]) -> list[str]:
    return [key for key in keys if "/private/" in key]


def test_a_folder_holds_everything(tmp_path: Path) -> None:
    released(write_release(tmp_path))
    kept = open_store(Location(url=str(tmp_path / "out"))).keys()
    assert folders(kept) == {"accounts", "runs", "releases"}
    assert private_keys(kept) == []


def test_a_bucket_holds_everything(tmp_path: Path, s3: Location) -> None:
    released(write_release(tmp_path, root=s3))
    kept = open_store(s3).keys()
    assert folders(kept) == {"accounts", "runs", "releases"}
    assert private_keys(kept) == []
    assert not (tmp_path / "out").exists()


@pytest.fixture
def locations(s3: Location, seaweedfs_server: SeaweedFS, monkeypatch: pytest.MonkeyPatch) -> dict[str, Location]:
    """Three places, each with credentials of its own name and no others."""
    for variable in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.delenv(f"{CREDENTIALS}_{variable}")
    for name in ("ROOT", "PRIVATE", "RELEASES"):
        monkeypatch.setenv(f"CLUB_{name}_ACCESS_KEY_ID", seaweedfs_server.access_key)
        monkeypatch.setenv(f"CLUB_{name}_SECRET_ACCESS_KEY", seaweedfs_server.secret_key)
    names = ("root", "private", "releases")
    return {name: s3.child(name).model_copy(update={"credentials": f"CLUB_{name.upper()}"}) for name in names}


def separated(locations: Mapping[str, Location]) -> list[str]:
    return [change(f"stores.{name}", given(location)) for name, location in locations.items()]


def test_separate_places_hold_what_they_are_for(tmp_path: Path, locations: dict[str, Location]) -> None:
    with watched_by(looking := Looking(locations)):
        released(write_release(tmp_path), *separated(locations))
    assert looking.seen
    for during in looking.seen:
        assert folders(during["root"]) == {"accounts", "runs"}
        assert private_keys(during["root"]) == []
        assert private_keys(during["private"]) == during["private"] != []
        assert during["releases"] == []
    assert folders(open_store(locations["root"]).keys()) == {"accounts", "runs"}
    assert open_store(locations["private"]).keys() == []
    assert folders(open_store(locations["releases"]).keys()) == {"releases"}


@pytest.mark.parametrize("name", ["root", "private", "releases"])
def test_a_place_without_keys_of_its_own_is_refused_before_the_account_is_opened(
    tmp_path: Path, locations: dict[str, Location], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    missing = f"CLUB_{name.upper()}_SECRET_ACCESS_KEY"
    with monkeypatch.context() as changed:
        changed.delenv(missing)
        with pytest.raises(StoreError, match=missing):
            release(str(write_release(tmp_path)), settings=tuple(separated(locations)))
    assert [key for location in locations.values() for key in open_store(location).keys("")] == []


def test_a_place_with_wrong_keys_is_refused_by_its_address(
    tmp_path: Path, locations: dict[str, Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUB_PRIVATE_SECRET_ACCESS_KEY", "0" * 32)
    with pytest.raises(StoreError, match=re.escape(locations["private"].url)):
        release(str(write_release(tmp_path)), settings=tuple(separated(locations)))
    assert open_store(locations["root"]).keys() == []


@dataclass(frozen=True)
class Failure:
    """A flow run that failed, as this process and as the server know it."""

    error: BaseException
    state: str
    message: str
    run: str


def failed(api: str, file: Path, *settings: str) -> Failure:
    ended = release(str(file), settings=settings, return_state=True)
    with SyncPrefectClient(api) as client:
        flow_run = client.read_flow_run(ended.state_details.flow_run_id)
    assert flow_run.state is not None
    error = ended.result(raise_on_failure=False)
    assert isinstance(error, BaseException)
    return Failure(error, flow_run.state.name, flow_run.state.message or "", flow_run.name.split()[-1])


def ppsyn(*arguments: str) -> str:
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def budget(file: Path) -> dict[str, Any]:
    return json.loads(ppsyn("budget", DATASET, "--store", str(file.parent / "out"), "--json"))


def assert_reserved_and_freed(file: Path, run: str) -> None:
    """The run has reserved its budget and has spent nothing; once it is abandoned all of it is free."""
    asked = str(rho_of(Budget(epsilon=4.0, delta=1e-6)))
    before = budget(file)
    assert [budget | {"opened_at": ""} for budget in before["releases"]] == [
        {
            "run": run,
            "quality_of": None,
            "state": "open",
            "reserved": before["reserved"],
            "spent": before["spent"],
            "charges": 0,
            "opened_at": "",
            "closed_at": None,
        }
    ]
    assert before["reserved"]["rho"] == asked
    assert before["spent"]["rho"] == "0"
    ppsyn("abandon", run, "--yes", "--store", str(file.parent / "out"))
    after = budget(file)
    assert (after["reserved"]["rho"], after["spent"]["rho"], after["left"]) == ("0", "0", after["cap"])
    assert [budget["state"] for budget in after["releases"]] == ["abandoned"]


def broken_rows(text: str, value: str) -> bytes:
    """The table with one more row, in the middle."""
    lines = text.splitlines()
    return ("\n".join([*lines[:200], value, *lines[200:]]) + "\n").encode()


def test_a_value_that_is_refused_names_the_column_and_keeps_the_budget_reserved(
    tmp_path: Path, prefect_api: str
) -> None:
    file = write_release(tmp_path)
    (tmp_path / "table.csv").write_bytes(broken_rows(table_text(), "30,cook,canary,2015-01-01"))
    failure = failed(prefect_api, file)
    assert isinstance(failure.error, DomainRefusedError)
    assert failure.error.column == "member"
    assert failure.state == "Refused"
    assert "Column 'member' holds a value outside its domain" in failure.message
    assert "canary" not in failure.message
    assert_reserved_and_freed(file, failure.run)


def test_a_csv_row_with_too_few_fields_is_refused_where_a_column_refuses(tmp_path: Path, prefect_api: str) -> None:
    file = write_release(tmp_path)
    (tmp_path / "table.csv").write_bytes(broken_rows(table_text(), "30,canary"))
    failure = failed(prefect_api, file)
    assert isinstance(failure.error, DomainRefusedError)
    assert failure.error.column == "member"
    assert failure.state == "Refused"
    assert "canary" not in failure.message
    assert_reserved_and_freed(file, failure.run)


def test_a_csv_file_that_is_cut_is_named_and_keeps_the_budget_reserved(tmp_path: Path, prefect_api: str) -> None:
    file = write_release(tmp_path)
    failure = failed(prefect_api, file, change("source", csv_that_cannot_be_read(tmp_path, "")))
    assert isinstance(failure.error, SourceError)
    assert failure.state == "Failed"
    assert f"Expected {tmp_path / 'bad' / 'a.csv.gz'} to be readable to its end" in failure.message
    assert_reserved_and_freed(file, failure.run)


def test_a_damaged_parquet_fragment_is_named_and_keeps_the_budget_reserved(
    tmp_path: Path, prefect_api: str, rows: Table
) -> None:
    """Its footer is whole, so that only whoever reads its rows finds out."""
    whole = fragments(rows)
    whole["more/part-1.parquet"] = b"PAR1" + bytes(200) + whole["more/part-1.parquet"][204:]
    source = files_at("parquet", Location(url=str(tmp_path / "fragments")), whole)
    file = write_release(tmp_path)
    failure = failed(prefect_api, file, change("source", source))
    assert isinstance(failure.error, SourceError)
    assert failure.state == "Failed"
    assert str(tmp_path / "fragments" / "more" / "part-1.parquet") in failure.message
    assert_reserved_and_freed(file, failure.run)


def test_a_run_whose_damaged_fragment_was_mended_is_resumed(tmp_path: Path, prefect_api: str, rows: Table) -> None:
    whole, location = fragments(rows), Location(url=str(tmp_path / "fragments"))
    damaged = {**whole, "part-0.parquet": b"PAR1" + bytes(200) + whole["part-0.parquet"][204:]}
    file = write_release(tmp_path)
    settings = change("source", files_at("parquet", location, damaged))
    failure = failed(prefect_api, file, settings)
    files_at("parquet", location, whole)
    url = release(str(file), settings=(settings,), resume=failure.run)
    assert url.endswith(failure.run)
    assert [finding for finding in audit(open_store(Location(url=url))) if finding.problem] == []


def test_a_database_that_goes_away_amid_the_rows_keeps_the_budget_reserved(
    tmp_path: Path, prefect_api: str, postgres: str, keys: None, rows: Table
) -> None:
    source = in_postgresql(postgres, rows)
    with psycopg.connect(postgres) as connection:
        connection.execute("INSERT INTO club VALUES (-1)")
    source["query"] = (
        "SELECT age + CASE WHEN age < 0 THEN pg_terminate_backend(pg_backend_pid())::int ELSE 0 END AS age, "
        "job, member, joined FROM club"
    )
    file = write_release(tmp_path)
    failure = failed(prefect_api, file, change("source", source))
    assert isinstance(failure.error, SourceError)
    assert failure.state == "Failed"
    assert "Expected the database to answer the query to its end" in failure.message
    assert_reserved_and_freed(file, failure.run)


def test_a_failed_run_leaves_no_codes_behind(tmp_path: Path, prefect_api: str) -> None:
    file = write_release(tmp_path)
    (tmp_path / "table.csv").write_bytes(table_text().encode() + b"30,cook,canary,2015-01-01\n")
    failed(prefect_api, file)
    assert private_keys(open_store(Location(url=str(tmp_path / "out"))).keys()) == []


def test_a_missing_column_is_named_before_anything_is_held(tmp_path: Path, prefect_api: str) -> None:
    file = write_release(tmp_path)
    (tmp_path / "table.csv").write_text(table_text().replace("joined", "left", 1), encoding="utf-8")
    failure = failed(prefect_api, file)
    assert isinstance(failure.error, SourceError)
    assert failure.state == "Failed"
    assert f"Expected a column 'joined' in {tmp_path / 'table.csv'}" in failure.message
    assert open_store(Location(url=str(tmp_path / "out"))).keys() == []


def test_a_truncated_parquet_fragment_is_named_before_anything_is_held(
    tmp_path: Path, prefect_api: str, rows: Table
) -> None:
    cut = fragments(rows)
    cut["more/part-1.parquet"] = cut["more/part-1.parquet"][:-100]
    source = files_at("parquet", Location(url=str(tmp_path / "fragments")), cut)
    failure = failed(prefect_api, write_release(tmp_path), change("source", source))
    assert isinstance(failure.error, SourceError)
    assert failure.state == "Failed"
    assert str(tmp_path / "fragments" / "more" / "part-1.parquet") in failure.message
    assert open_store(Location(url=str(tmp_path / "out"))).keys() == []


def test_a_database_that_is_not_there_is_named_before_anything_is_held(
    tmp_path: Path, prefect_api: str, keys: None
) -> None:
    (port,) = free_ports(1)
    url = f"postgresql://postgres:${{CLUB_PASSWORD}}@127.0.0.1:{port}/club"
    source = {"kind": "sql", "url": url, "query": "SELECT * FROM club"}
    failure = failed(prefect_api, write_release(tmp_path), change("source", source))
    assert isinstance(failure.error, SourceError)
    assert failure.state == "Failed"
    assert f"Expected the database at {url} to take the query" in failure.message
    assert open_store(Location(url=str(tmp_path / "out"))).keys() == []


def csv_that_cannot_be_read(folder: Path, _: str) -> dict[str, Any]:
    return files_at("csv", Location(url=str(folder / "bad")), {"a.csv.gz": gzip.compress(table_text().encode())[:-9]})


def parquet_that_cannot_be_read(folder: Path, _: str) -> dict[str, Any]:
    whole = parquet_bytes(rows_of(table_text()))
    return files_at("parquet", Location(url=str(folder / "bad")), {"a.parquet": b"PAR1" + bytes(200) + whole[204:]})


def query_that_fails_at_its_first_row(_: Path, url: str) -> dict[str, Any]:
    source = in_postgresql(url, rows_of(table_text()))
    return {**source, "query": "SELECT age / (age - age) AS age, job, member, joined FROM club"}


def file_that_is_not_there(folder: Path, _: str) -> dict[str, Any]:
    return {"kind": "csv", "path": str(folder / "nowhere.csv")}


UNREADABLE = [
    csv_that_cannot_be_read,
    parquet_that_cannot_be_read,
    query_that_fails_at_its_first_row,
    file_that_is_not_there,
]


@pytest.mark.parametrize("make", UNREADABLE, ids=lambda make: make.__name__)
def test_a_cap_that_is_too_small_is_refused_before_a_row_is_read(
    tmp_path: Path, postgres: str, keys: None, make: Callable[[Path, str], dict[str, Any]]
) -> None:
    """Reading a row fails, as the same release with a large enough cap finds out."""
    file, source = write_release(tmp_path), change("source", make(tmp_path, postgres))
    with pytest.raises(CapExceededError) as refused:
        release(str(file), settings=(source, change("account.cap", {"epsilon": 3.9, "delta": 1e-6})))
    asked, cap = rho_of(Budget(epsilon=4.0, delta=1e-6)), rho_of(Budget(epsilon=3.9, delta=1e-6))
    assert (refused.value.requested, refused.value.left, refused.value.cap) == (asked, cap, cap)
    assert f"{float(asked):.6g}" in str(refused.value)
    assert f"{float(cap):.6g}" in str(refused.value)
    assert open_store(Location(url=str(tmp_path / "out"))).keys() == []
    with pytest.raises(SourceError):
        release(str(file), settings=(source,))


def test_a_release_that_the_account_cannot_pay_changes_nothing_of_it(tmp_path: Path, prefect_api: str) -> None:
    file = write_release(tmp_path)
    released(file)
    store = open_store(Location(url=str(tmp_path / "out")))
    before = {key: store.get(key) for key in store.keys("")}
    left = account_of(file).state.left
    failure = failed(prefect_api, file, change("privacy.epsilon", 9.0))
    assert isinstance(failure.error, CapExceededError)
    assert (failure.error.left, failure.error.cap) == (left, rho_of(Budget(epsilon=10.0, delta=1e-6)))
    assert f"remaining {float(left):.6g} (cap" in failure.message
    assert {key: store.get(key) for key in store.keys("")} == before
