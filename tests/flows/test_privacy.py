"""Canaries: private values of every kind, looked for in everything that a release tells or leaves behind.

Counts. The number of rows and the exact one-way counts have six or seven digits and are looked for as whole numbers.
Outside the files with noisy counts, whole numbers of that length are constants of the release file and of Prefect, as
`test_no_number_can_be_mistaken_for_a_count` finds; so there are no false alarms. Noisy counts are near the exact ones
by design, and one may equal its exact count by chance. They are not searched but held against the exact counts: with
a standard deviation above 30,000 a cell is equal with a probability below 1 / 75,000, so that of fewer than 300 cells
three or more are with one below (300 / 75,000)^3 / 6 < 1.1e-8, while noise that was left out makes all of them equal.
How many rows are published is set by the release file, because by default it is the noisy total.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet
from support.canaries import (
    Canary,
    count_canary,
    files_below,
    number_canary,
    search,
    search_all,
    search_server,
    sqlite_contents,
    text_canary,
)
from support.servers import PrefectServer, prefect_server

from ppsyn.data.encoding import encode
from ppsyn.data.marginals import TableCounter
from ppsyn.privacy.partition import Partition
from ppsyn.schemas.table import TableSchema

PPSYN = str(Path(sys.executable).parent / "ppsyn")
LAUNCHER = [sys.executable, str(Path(__file__).parents[1] / "support" / "canaries.py")]

ROWS = 1_299_709
COLUMNS = [
    {"name": "sex", "kind": "categorical", "values": ["f", "m"], "nullable": True},
    {"name": "city", "kind": "categorical", "values": ["rome", "oslo", "elsewhere"], "other": "elsewhere"},
    {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "edges": [0, 30, 60, 99]},
    {"name": "pay", "kind": "real", "lower": 0.0, "upper": 1000.0, "bins": 3},
    {"name": "born", "kind": "date", "edges": ["1950-01-01", "1970-01-01", "1990-01-01", "1999-12-31"]},
]
SCHEMA = {"name": "people", "columns": COLUMNS, "excluded": ["who", "note"]}
RELEASE = {
    "dataset": "people",
    "schema": "schema.yaml",
    "privacy": {"rho": 1e-9},
    "account": {"cap": {"rho": 1.0}},
    "algorithm": {"workload": {"degree": 2}, "rounds": 4, "max_fit_steps": 40},
    "generation": {"rows": 5000},
    "stores": {"root": "out", "private": "private"},
}


@dataclass(frozen=True)
class Private:
    """The private values of one scene, which no other scene has."""

    sex: str
    city: str
    who: str
    note: str
    age: int
    pay: float
    far: float
    born: date

    @property
    def canaries(self) -> list[Canary]:
        texts = [self.sex, self.city, self.who, self.note, self.born.isoformat()]
        return [*map(text_canary, texts), *map(number_canary, (self.age, self.pay, self.far))]


def private_values(scene: str) -> Private:
    seed = hashlib.sha256(scene.encode()).hexdigest()
    number = int(seed[:12], 16)
    return Private(
        sex=f"canary-sex-{seed[:10]}",
        city=f"canary-city-{seed[10:20]}",
        who=f"canary-who-{seed[20:30]}",
        note=f'canary "note", {seed[30:40]} é\u4e2d',
        age=10**17 + number,
        pay=500 + (number % 10**9) / 10**9 * 400 + 1e-7 / 3,
        far=1e12 + number / 7,
        born=date(1700 + number % 150, 1 + number % 12, 1 + number % 28),
    )


def table_of(private: Private, rows: int) -> pa.Table:
    """Every canary in a row of its own, among rows that differ in all else."""
    rng = np.random.Generator(np.random.PCG64(1))
    drawn = rng.permutation(np.arange(rows) % 997)
    sex = np.where(drawn < 610, "f", "m").astype(object)
    city = np.where(drawn < 380, "rome", np.where(drawn < 700, "oslo", "paris")).astype(object)
    age = np.where(drawn % 10 < 3, 20, np.where(drawn % 10 < 7, 45, 70)).astype(np.int64)
    pay = np.where(drawn % 7 < 3, 100.5, np.where(drawn % 7 < 5, 500.5, 900.5))
    born = np.where(drawn % 5 < 2, -3000, np.where(drawn % 5 < 4, 3000, 9000))
    note, who = np.full(rows, "plain", dtype=object), np.full(rows, "somebody", dtype=object)
    sex[5], city[6], note[7], who[8] = private.sex, private.city, private.note, private.who
    age[9], pay[10], pay[11] = private.age, private.pay, private.far
    born[12] = (private.born - date(1970, 1, 1)).days
    days = pa.array(born.astype(np.int32)).cast(pa.date32())
    return pa.table({"sex": sex, "city": city, "age": age, "pay": pay, "born": days, "who": who, "note": note})


def exact_counts(table: pa.Table) -> TableCounter:
    schema = TableSchema.model_validate(SCHEMA)
    columns = [str(column["name"]) for column in COLUMNS]
    return TableCounter(encode(table.select(columns).to_pandas(types_mapper=pd.ArrowDtype), schema))


NOISY = ("measurements.parquet", "model.npz", "report.html", "/answers/", "/checkpoints/")
"""Files with noisy counts, which are held against the exact ones instead."""


def settle(server: PrefectServer, seconds: float = 4.0) -> None:
    """Wait until nothing more arrives in the database, where events are written some time after they are told."""
    before, since = -1, time.monotonic()
    while time.monotonic() < since + seconds:
        with closing(sqlite3.connect(server.folder / "prefect.db")) as connection:
            tables = ("events", "log", "flow_run_state", "task_run_state", "artifact")
            now = sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(0.2)


@dataclass(frozen=True)
class Scene:
    """A command that has ended, and all that it left behind."""

    folder: Path
    server: PrefectServer
    private: Private
    code: int
    stdout: str
    stderr: str

    def kept(self) -> dict[str, bytes]:
        """Everything that it wrote, but for the table itself and the private store."""
        written = [files_below(self.folder / name) for name in ("out", "home", "temporary", "here")]
        said = {"stdout": self.stdout.encode(), "stderr": self.stderr.encode()}
        return {name: data for part in (*written, said) for name, data in part.items()}

    def leaks(self) -> list[str]:
        """Private values in what was kept, and in what the server has once all has arrived."""
        settle(self.server)
        known = self.private.canaries
        return search_all(self.kept(), known) + search_server(self.server.folder, known)

    def told_counts(self, counts: Sequence[Canary]) -> list[str]:
        """Exact counts in the same places, but for the files with noisy ones."""
        settle(self.server)
        kept = {name: data for name, data in self.kept().items() if not any(part in name for part in NOISY)}
        return search_all(kept, counts) + search_server(self.server.folder, counts)

    def private_leaks(self) -> list[str]:
        """What the private store holds beside codes; the text of an unforeseen error is there on purpose."""
        files = files_below(self.folder / "private") if (self.folder / "private").is_dir() else {}
        kept = {name: data for name, data in files.items() if not name.endswith("/failure.txt")}
        return search_all(kept, self.private.canaries)

    @property
    def failure(self) -> str:
        (path,) = (self.folder / "private").rglob("failure.txt")
        return path.read_text(encoding="utf-8", errors="surrogateescape")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[PrefectServer]:
    """A server of our own, whose whole database can be searched."""
    settings = {"PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "0.5"}
    with prefect_server(tmp_path_factory.mktemp("server") / "prefect", settings=settings) as running:
        yield running


def prepare(folder: Path, scene: str, **changes: object) -> tuple[Path, Private]:
    private = private_values(scene)
    for name in ("home", "temporary", "here"):
        (folder / name).mkdir(parents=True)
    (folder / "schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False), encoding="utf-8")
    document = {**RELEASE, "source": {"kind": "parquet", "path": "table.parquet"}, **changes}
    (folder / "release.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return folder / "release.yaml", private


def start(folder: Path, server: PrefectServer, command: Sequence[str]) -> subprocess.Popen[str]:
    """The command, in an environment that is as careless as can be."""
    environment = {
        **os.environ,
        "PREFECT_API_URL": server.api_url,
        "PREFECT_HOME": str(folder / "home"),
        "PREFECT_LOGGING_LEVEL": "DEBUG",
        "PREFECT_LOGGING_LOG_PRINTS": "true",
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
        "TMPDIR": str(folder / "temporary"),
    }
    return subprocess.Popen(
        [*command, "release", str(folder / "release.yaml")],
        env=environment,
        cwd=folder / "here",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(folder: Path, server: PrefectServer, private: Private, command: Sequence[str] = (PPSYN,)) -> Scene:
    process = start(folder, server, command)
    stdout, stderr = process.communicate(timeout=400)
    return Scene(folder, server, private, process.returncode, stdout, stderr)


@pytest.fixture(scope="module")
def success(server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A release of the large table."""
    folder = tmp_path_factory.mktemp("success")
    _, private = prepare(folder, "success")
    parquet.write_table(table_of(private, ROWS), folder / "table.parquet")
    scene = ended(folder, server, private)
    assert scene.code == 0, scene.stderr
    return scene


def one_way(counter: TableCounter) -> list[int]:
    return [count for column in COLUMNS for count in counter.counts((str(column["name"]),)).tolist()]


@pytest.mark.slow
def test_a_release_tells_no_private_value(success: Scene) -> None:
    assert success.leaks() == []


@pytest.mark.slow
def test_the_private_store_is_empty_after_a_release(success: Scene) -> None:
    assert files_below(success.folder / "private") == {}


@pytest.mark.slow
def test_a_release_tells_no_exact_count(success: Scene) -> None:
    counts = [ROWS, *one_way(exact_counts(table_of(success.private, ROWS)))]
    told = [count_canary(count) for count in counts if count >= 100_000]
    assert len(told) >= 12
    assert success.told_counts(told) == []


@pytest.mark.slow
def test_what_is_searched_ends_with_the_last_that_the_server_was_told(success: Scene) -> None:
    settle(success.server)
    run = next((success.folder / "out" / "releases" / "people").glob("*-*")).name
    with closing(sqlite3.connect(success.server.folder / "prefect.db")) as connection:
        events = connection.execute("SELECT event, resource FROM events").fetchall()
    completed = {kind for kind, resource in events if run in resource and kind.endswith(".Completed")}
    assert completed == {"prefect.task-run.Completed", "prefect.flow-run.Completed"}


@pytest.mark.slow
def test_no_number_can_be_mistaken_for_a_count(success: Scene) -> None:
    """Rows of a batch by default, and a number in a description of Prefect's."""
    kept = [data for name, data in success.kept().items() if not any(part in name for part in NOISY)]
    texts = [*kept, *(value for _, value in sqlite_contents(success.server.folder / "prefect.db"))]
    words = {word for text in texts for word in re.findall(rb"(?<![\w.,-])\d{6,7}(?![\w]|[.,]\d)", text)}
    assert len(words - {b"131072", b"185833"}) <= 1


@pytest.mark.slow
def test_noisy_counts_are_not_the_exact_ones(success: Scene) -> None:
    counter = exact_counts(table_of(success.private, ROWS))
    (path,) = (success.folder / "out").rglob("measurements.parquet")
    answers = [answer for answer in parquet.read_table(path).to_pylist() if answer["kind"] == "measure"]
    equal = cells = 0
    for answer in answers:
        groups = np.array(answer["group_of_cell"], np.int32)
        exact = Partition(groups, len(answer["noisy_counts"])).sum_counts(counter.counts(tuple(answer["clique"])))
        equal += int((exact == np.array(answer["noisy_counts"])).sum())
        cells += len(exact)
        assert answer["sigma"] > 30_000
    assert 10 < cells < 300
    assert equal < 3


def small_csv(private: Private) -> str:
    """Some rows with canaries, whose note has quotes."""
    table = table_of(private, 60).to_pylist()
    lines = [",".join(table[0])]
    for row in table:
        fields = [str(value) for value in row.values()]
        lines.append(",".join(f'"{field}"'.replace('"note"', '""note""') for field in fields))
    return "\n".join(lines) + "\n"


CSV = {"source": {"kind": "csv", "path": "table.csv"}}


@pytest.mark.slow
def test_a_refused_value_is_not_told(server: PrefectServer, tmp_path: Path) -> None:
    _, private = prepare(tmp_path, "refused", **CSV)
    refusing = [{**COLUMNS[0], "outside": "refuse"}, *COLUMNS[1:]]
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump({**SCHEMA, "columns": refusing}), encoding="utf-8")
    (tmp_path / "table.csv").write_text(small_csv(private), encoding="utf-8")
    scene = ended(tmp_path, server, private)
    assert scene.code == 2
    assert "Column 'sex' holds a value outside its domain" in scene.stderr
    assert scene.leaks() + scene.private_leaks() == []


@pytest.mark.slow
def test_a_line_that_cannot_be_read_is_not_told(server: PrefectServer, tmp_path: Path) -> None:
    _, private = prepare(tmp_path, "malformed", **CSV)
    broken = f"{private.sex},{private.city},{private.age},{private.note}\n"
    (tmp_path / "table.csv").write_text(small_csv(private) + broken, encoding="utf-8")
    scene = ended(tmp_path, server, private)
    assert scene.code == 0  # one bad row: its values go where the schema sends bad values
    assert scene.leaks() + scene.private_leaks() == []


POINTS = [("encode", ""), ("encode", "\udc80"), ("count", ""), ("panic", "")]


@pytest.mark.slow
@pytest.mark.parametrize(("point", "more"), POINTS, ids=["encode", "encode-no-utf-8", "count", "panic"])
def test_an_error_that_nobody_foresaw_is_told_to_the_private_store_alone(
    server: PrefectServer, tmp_path: Path, point: str, more: str
) -> None:
    _, private = prepare(tmp_path, f"unforeseen {point} {more!r}", **CSV)
    (tmp_path / "table.csv").write_text(small_csv(private), encoding="utf-8")
    text = f"{private.sex} {private.age} {private.note}{more}"
    scene = ended(tmp_path, server, private, [*LAUNCHER, point, json.dumps(text)])
    assert scene.code != 0
    assert scene.leaks() + scene.private_leaks() == []
    assert private.sex in scene.failure
    assert "its text may be private and is in" in scene.stderr


@pytest.mark.slow
def test_a_private_store_that_fails_tells_no_private_value(server: PrefectServer, tmp_path: Path) -> None:
    _, private = prepare(tmp_path, "store", **CSV)
    (tmp_path / "table.csv").write_text(small_csv(private), encoding="utf-8")
    scene = ended(tmp_path, server, private, [*LAUNCHER, "store", '""'])
    assert scene.code == 6
    assert scene.stderr.rstrip().endswith("/private: Not a directory.")  # and no object in it
    assert scene.leaks() == []


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_codes_in_the_private_store_and_no_private_value_elsewhere(
    server: PrefectServer, tmp_path: Path
) -> None:
    _, private = prepare(tmp_path, "killed")
    parquet.write_table(table_of(private, ROWS), tmp_path / "table.parquet")
    process = start(tmp_path, server, [PPSYN])
    assert process.stderr is not None
    told = ""
    while not told.endswith("\n") or "one-way marginals" not in told:
        told += process.stderr.readline()
        assert process.poll() is None, told
    process.send_signal(signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=60)
    scene = Scene(tmp_path, server, private, process.returncode, stdout, told + stderr)
    assert any("/private/fragments/" in name for name in files_below(tmp_path / "private"))
    assert scene.leaks() + scene.private_leaks() + scene.told_counts([count_canary(ROWS)]) == []


TEXT = text_canary('canary "7f3a91c2" é')
NUMBER = number_canary(734_918_273_645_546_372)
REAL = number_canary(734.9182736455463)
COUNT = count_canary(1_299_709)
text = TEXT.name

WAYS: dict[str, bytes] = {
    "utf-8": text.encode(),
    "utf-16": text.encode("utf-16"),
    "utf-16 of the other order": text.encode("utf-16-be"),
    "base64": base64.b64encode(text.encode()),
    "base64, a byte later": base64.b64encode(b"x" + text.encode() + b"y"),
    "base64, two bytes later": base64.b64encode(b"xy" + text.encode() + b"zzz"),
    "hex": text.encode().hex().encode(),
    "upper hex": text.encode().hex().upper().encode(),
    "json": json.dumps({"a": text}).encode(),
    "json within json": json.dumps({"a": json.dumps([{text: 1}])}).encode(),
    "repr": repr({"a": text}).encode(),
    "ascii": ascii(ValueError(text)).encode(),
    "gzip": gzip.compress(text.encode()),
}
NUMBERS: dict[str, bytes] = {
    "digits": f"x{NUMBER.name}y".encode(),
    "groups of digits": f"{NUMBER.number:,}".encode(),
    "eight bytes": b"abc" + struct.pack("<q", NUMBER.number) + b"d",
    "eight bytes of the other order": struct.pack(">q", NUMBER.number),
    "a double": struct.pack("<d", NUMBER.number),
}


def as_parquet(**columns: list[object]) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink, compression="zstd")
    return sink.getvalue()


def as_npz(**arrays: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.savez_compressed(sink, **arrays)
    return sink.getvalue()


def as_sqlite(folder: Path, value: object) -> bytes:
    path = folder / "some.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a, b)")
    connection.execute("INSERT INTO t VALUES (1, ?)", (value,))
    connection.commit()
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize("data", WAYS.values(), ids=WAYS)
def test_the_search_finds_a_text_however_it_is_written(data: bytes) -> None:
    assert search("here", b"before " + data if data[:1] not in b"{\x1f" else data, [TEXT])
    assert search("here", data, [text_canary("canary-of-another-kind")]) == []


@pytest.mark.parametrize("data", NUMBERS.values(), ids=NUMBERS)
def test_the_search_finds_a_number_however_it_is_written(data: bytes) -> None:
    assert search("here", data, [NUMBER])
    assert search("here", data, [REAL]) == []


def test_the_search_looks_into_parquet() -> None:
    assert search("a", as_parquet(a=["x", text]), [TEXT]) != []
    assert search("a", as_parquet(a=[["x"], [text]]), [TEXT]) != []
    assert search("a", as_parquet(**{text: [1]}), [TEXT]) != []
    assert search("a", as_parquet(a=[1.5, REAL.number]), [REAL]) != []
    assert search("a", as_parquet(a=[[1], [COUNT.number, 7]]), [COUNT]) != []
    assert search("a", as_parquet(a=[None] * 1_299_709), [COUNT]) != []
    assert search("a", as_parquet(a=["x", "y"], b=[1, 2]), [TEXT, NUMBER, REAL, COUNT]) == []


def test_the_search_looks_into_npz() -> None:
    assert search("a", as_npz(a=np.array([1.0, 1_299_709.0])), [COUNT]) != []
    assert search("a", as_npz(a=np.array([1.5, REAL.number])), [REAL]) != []
    assert search("a", as_npz(document=np.frombuffer(text.encode(), np.uint8)), [TEXT]) != []
    assert search("a", as_npz(document=np.array(text)), [TEXT]) != []
    assert search("a", as_npz(a=np.arange(10.0)), [TEXT, NUMBER, REAL, COUNT]) == []


@pytest.mark.parametrize("size", [10, 100_000])
def test_the_search_looks_into_sqlite(tmp_path: Path, size: int) -> None:
    """Of a long value the pages lie apart."""
    assert search("a", as_sqlite(tmp_path, "x" * size + text + "y" * size), [TEXT]) != []


def test_the_search_of_a_server_finds_rows_pages_and_logs(tmp_path: Path) -> None:
    as_sqlite(tmp_path, json.dumps({"message": f"there are 1299709 of {text}"}))
    (tmp_path / "some.db").rename(tmp_path / "prefect.db")
    (tmp_path / "server.log").write_text(f"age {NUMBER.name}", encoding="utf-8")
    found = search_server(tmp_path, [TEXT, NUMBER, COUNT, REAL])
    assert {place.split(" in ")[1] for place in found} >= {"t.b", "server.log"}
    assert {place.split(" in ")[0] for place in found} == {repr(c.name) for c in (TEXT, NUMBER, COUNT)}


TOLD = ["1299709", "n=1299709.", "[1299709, 3]", "1,299,709 rows", '{"n":1299709}', "in 1_299_709"]
NOT_TOLD = [
    "21299709",
    "0.1299709",
    "a1299709",
    "1299709.25",
    "1299709.0",
    str(UUID("1299709a-1299-4709-8129-971299709709")),
]


@pytest.mark.parametrize("words", TOLD)
def test_the_search_finds_a_count_that_stands_by_itself(words: str) -> None:
    assert search("here", words.encode(), [COUNT]) != []


@pytest.mark.parametrize("words", NOT_TOLD)
def test_the_search_does_not_mistake_a_part_of_something_for_a_count(words: str) -> None:
    assert search("here", words.encode(), [COUNT]) == []


def test_every_private_value_is_in_the_private_table() -> None:
    private = private_values("any")
    found = search("the table", as_parquet(**table_of(private, 60).to_pydict()), private.canaries)
    assert {place.split(" in ")[0] for place in found} == {repr(canary.name) for canary in private.canaries}
