"""Claim C11: what the pipeline keeps outside the private store, and what it tells Prefect, is public or released."""

import errno
import importlib
import inspect
import json
import logging
import os
import pkgutil
import re
import signal
import stat
import string
import traceback
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, Never, get_type_hints
from uuid import uuid4

import obstore
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from obstore.exceptions import GenericError
from prefect import Flow, Task
from prefect.cache_policies import NO_CACHE
from prefect.exceptions import Abort, Pause, TerminationSignal
from pyarrow import parquet
from support import published
from support.canaries import files_below, sqlite_contents
from support.private_tables import csv_bytes
from support.published import make_release, people
from support.small_release import table_text, write_release

import ppsyn.errors
from ppsyn import flows, tasks
from ppsyn.data.encoding import refusal_of
from ppsyn.data.ingest import ingest
from ppsyn.data.sources.batches import guarded
from ppsyn.errors import InvariantError, MissingError, PPSynError, SourceError, StoreError
from ppsyn.releases.writer import publish
from ppsyn.runs.preflight import begin, snapshot
from ppsyn.runs.record import private_folder, ref_of
from ppsyn.runs.run import Run
from ppsyn.schemas.benchmark import BenchmarkRun, BenchmarkSettings
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource, ParquetSource, ReleaseConfig, Source, load_release
from ppsyn.schemas.run import RunRef
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store
from ppsyn.storage import store as local
from ppsyn.tasks.step import sealed

CANARY = "canary7f3a91"
PUBLIC = {RunRef, ReleaseConfig, TableSchema, BenchmarkRun, int, str}
"""What a task may be told: Prefect may show it to anyone."""


def modules(package: Any) -> Iterator[Any]:  # noqa: ANN401  a module
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


TASKS = {value.name: value for module in modules(tasks) for value in vars(module).values() if isinstance(value, Task)}
FLOWS = {value.name: value for module in modules(flows) for value in vars(module).values() if isinstance(value, Flow)}

each_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def memory() -> Location:
    return Location(url=f"memory://{uuid4().hex}")


def a_run() -> RunRef:
    return RunRef(run="20310203-040506-0a1b2c3d", dataset="people", root=memory(), private=memory(), releases=memory())


def test_c11_there_are_tasks_and_a_flow_to_look_at() -> None:
    assert {"check inputs", "ingest", "select", "measure", "fit", "checkpoint", "publish"} <= set(TASKS)
    assert set(FLOWS) == {"release", "benchmark"}


@each_task
def test_c11_prefect_keeps_and_repeats_nothing_of_a_task(task: Task[..., object]) -> None:
    assert task.persist_result is False
    assert task.cache_policy == NO_CACHE
    assert (task.cache_key_fn, task.result_storage, task.result_storage_key) == (None, None, None)
    assert (task.retries, task.retry_condition_fn) == (0, None)
    assert task.log_prints is False


@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
def test_c11_prefect_keeps_nothing_of_a_flow(flow: Flow[..., object]) -> None:
    assert flow.persist_result is False
    assert flow.log_prints is False
    assert flow.retries == 0
    assert {hint for name, hint in get_type_hints(flow.fn).items() if name != "return"} <= {
        str,
        str | None,
        tuple[str, ...],
        BenchmarkSettings,
        int,
        bool,
    }
    assert get_type_hints(flow.fn)["return"] is str


@each_task
def test_c11_a_task_is_told_what_is_public_and_returns_a_count_or_an_address(task: Task[..., object]) -> None:
    hints = get_type_hints(inspect.unwrap(task.fn))
    assert hints.pop("return") in {NoneType, int, str}
    assert set(hints) == set(inspect.signature(task.fn).parameters)
    assert set(hints.values()) <= PUBLIC


def test_c11_a_task_that_sees_the_table_returns_nothing() -> None:
    returns = {name: get_type_hints(inspect.unwrap(task.fn))["return"] for name, task in TASKS.items()}
    assert {name for name, hint in returns.items() if hint is not NoneType} == {"restore", "publish"}


@each_task
def test_c11_the_name_of_a_task_run_is_made_of_dataset_run_and_round(task: Task[..., object]) -> None:
    assert isinstance(task.task_run_name, str)
    fields = {field for _, field, _, _ in string.Formatter().parse(task.task_run_name) if field}
    assert {"ref.dataset", "ref.run"} <= fields <= {"ref.dataset", "ref.run", "number"}


@each_task
def test_c11_every_task_is_sealed(task: Task[..., object]) -> None:
    assert task.fn.__code__ is sealed(lambda ref: ref).__code__


def test_c11_what_a_task_is_told_is_json() -> None:
    ref = a_run()
    assert RunRef.model_validate(json.loads(ref.model_dump_json())) == ref


any_text = st.text(st.characters() | st.sampled_from("\ud800\udc80\udfff"), max_size=20)
"""With lone surrogates, which have no bytes in UTF-8."""


class Panic(BaseException):
    """As the panic of a library in Rust is raised: `pyo3_runtime.PanicException` is no Exception."""


FOREIGN: list[Callable[[str], BaseException]] = [
    *(ValueError, KeyError, OSError, RuntimeError, TypeError, MemoryError, AssertionError, StopIteration, LookupError),
    *(pa.ArrowInvalid, pa.ArrowKeyError),
    lambda text: ExceptionGroup(text, [ValueError(text)]),
    lambda text: UnicodeDecodeError("utf-8", text.encode("utf-8", "surrogatepass"), 0, 1, text),
    lambda text: FileNotFoundError(2, text, text),
]

texts = st.tuples(any_text, any_text).map(CANARY.join)
foreign = st.builds(lambda make, text: make(text), st.sampled_from(FOREIGN), texts)
panics = st.builds(Panic, texts)
own = st.sampled_from(
    [kind for kind in vars(ppsyn.errors).values() if inspect.isclass(kind) and issubclass(kind, PPSynError)]
).filter(lambda kind: kind.__init__ is Exception.__init__)


@st.composite
def chains(draw: st.DrawFn, first: st.SearchStrategy[BaseException]) -> BaseException:
    """An error with notes, raised from or while handling others."""
    error = draw(first)
    cause, context = draw(st.none() | foreign | panics), draw(st.none() | foreign | panics)
    if cause is not None:
        cause.__context__ = draw(st.none() | foreign)
    error.__cause__, error.__context__ = cause, context
    return error


def raised_by(error: BaseException, ref: RunRef) -> BaseException:
    """What comes out of a sealed function that raises `error`."""

    @sealed
    def encode(ref: RunRef) -> Never:
        raise error

    with pytest.raises(BaseException) as raised:  # noqa: PT011  that is what is tested
        encode(ref)
    return raised.value


def told(error: BaseException) -> str:
    """All that a logger, a state or a debugger could show of an error and of those behind it."""
    seen, met, todo = list[str](), set[int](), [error]
    while todo:
        each = todo.pop()
        met.add(id(each))
        seen += [*traceback.format_exception(each), repr(each), repr(each.args), repr(vars(each))]
        todo += [
            behind for behind in (each.__cause__, each.__context__) if behind is not None and id(behind) not in met
        ]
    return "".join(seen)


@given(chains(foreign), st.none() | texts)
@example(ValueError(f"{CANARY}\udc80"), None)  # text that has no bytes in UTF-8
def test_c11_no_text_of_a_foreign_error_gets_out(error: BaseException, note: str | None) -> None:
    if note is not None:
        error.add_note(note)
    found = raised_by(error, a_run())
    assert isinstance(found, InvariantError)
    assert CANARY not in told(found)
    assert type(error).__name__ in str(found)


@given(chains(panics))
def test_c11_no_text_of_a_panic_gets_out(error: BaseException) -> None:
    found = raised_by(error, a_run())
    assert isinstance(found, InvariantError)
    assert CANARY not in told(found)


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit])
def test_c11_no_text_of_an_exit_from_inside_gets_out(kind: type[BaseException]) -> None:
    found = raised_by(kind(CANARY), a_run())
    assert isinstance(found, InvariantError)
    assert CANARY not in told(found)


SIGNALS = [KeyboardInterrupt, CancelledError, Abort, Pause]


@given(st.sampled_from(SIGNALS), st.data())
def test_c11_an_interrupt_gets_out_and_carries_nothing_along(kind: type[BaseException], data: st.DataObject) -> None:
    found = raised_by(data.draw(chains(st.builds(kind))), a_run())
    assert type(found) is kind
    assert CANARY not in told(found)


@given(foreign)
def test_c11_an_interrupt_that_compiled_code_made_an_error_of_is_one_again(error: BaseException) -> None:
    error.__cause__ = TerminationSignal(15)
    found = raised_by(error, a_run())
    assert type(found) is TerminationSignal
    assert CANARY not in told(found)


@pytest.fixture
def five_seconds() -> Iterator[None]:
    """A test that goes on for longer is interrupted."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("It goes round for ever."))
    signal.alarm(5)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("five_seconds")
def test_c11_an_error_that_is_raised_again_from_its_own_consequence_is_sealed_too() -> None:
    """Each of the two is behind the other, so that whoever follows the chain goes round."""
    first, second = ValueError(CANARY), KeyError(CANARY)
    first.__cause__, second.__context__ = second, first
    found = raised_by(first, a_run())
    assert isinstance(found, InvariantError)
    assert CANARY not in told(found)


@given(chains(foreign))
def test_c11_the_details_of_a_foreign_error_are_in_the_private_store_alone(error: BaseException) -> None:
    ref = a_run()
    found = raised_by(error, ref)
    private = open_store(ref.private)
    (key,) = private.keys()
    assert key == f"{private_folder(ref.run)}/failure.txt"
    assert CANARY.encode() in private.get(key)
    assert private.url(key) in str(found)
    assert open_store(ref.root).keys() + open_store(ref.releases).keys() == []


@given(chains(foreign))
def test_c11_nothing_gets_out_if_the_private_store_fails_too(error: BaseException) -> None:
    nowhere = Location(url="s3://nobody/has-keys", credentials="PPSYN_TEST_NO_SUCH_KEYS")
    found = raised_by(error, a_run().model_copy(update={"private": nowhere}))
    assert isinstance(found, InvariantError)
    assert CANARY not in told(found)
    assert "the private store failed too" in str(found)


@given(own, st.data())
def test_c11_our_own_errors_pass_without_what_led_to_them(kind: type[PPSynError], data: st.DataObject) -> None:
    error = data.draw(chains(st.builds(kind, st.just("Expected something public."))))
    ref = a_run()
    found = raised_by(error, ref)
    assert found is error
    assert str(found) == "Expected something public."
    assert CANARY not in told(found)
    assert open_store(ref.private).keys() == []


SCHEMA = TableSchema.model_validate(
    {
        "name": "people",
        "columns": [
            {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "outside": "refuse"},
            {"name": "job", "kind": "categorical", "values": ["cook", "nurse"], "outside": "refuse"},
            {"name": "born", "kind": "date", "lower": "1950-01-01", "upper": "1999-12-31", "unit": "year"},
            {"name": "pay", "kind": "real", "lower": 0.0, "upper": 9.0, "bins": 3, "nullable": True},
        ],
        "excluded": ["who", "note"],
    }
)
NAMES = ("age", "job", "born", "pay", "who", "note")
NUMBER = "7193864205317"
"""A canary that is read as a number."""

PLAIN = (("31", "58"), ("cook", "nurse"), ("1961-02-03",), ("1.5", ""), ("a", "b"), ("",))
canaries = st.sampled_from(
    [
        CANARY,
        f"x{CANARY}y",
        NUMBER,
        f"-{NUMBER}.5",
        f"{CANARY},",
        f'{CANARY}"',
        f"{CANARY}\n",
        f"{CANARY}\x00",
        f"é{CANARY}",
    ]
)
fields = st.tuples(*(st.sampled_from(values) | canaries for values in PLAIN))
tables = st.lists(fields, min_size=1, max_size=4)
persons = st.sampled_from([None, None, PersonUnit(column="who", max_rows=1), PersonUnit(column="job", max_rows=1)])


def assert_ingest_tells_nothing(source: Source, person: PersonUnit | None) -> None:
    """Whatever happens is foreseen, what is said of it has no canary, and none is kept."""
    ref = a_run()
    error = _error_of(source, person, ref)
    event(type(error).__name__)
    assert error is None or (isinstance(error, PPSynError) and not isinstance(error, InvariantError))
    assert error is None or (CANARY not in told(error) and NUMBER not in told(error))
    kept = open_store(ref.private)
    assert [key for key in kept.keys("") if CANARY.encode() in kept.get(key) or NUMBER.encode() in kept.get(key)] == []


def _error_of(source: Source, person: PersonUnit | None, ref: RunRef) -> Exception | None:
    try:
        ingest(source, SCHEMA, person, open_store(ref.private), private_folder(ref.run))
    except Exception as error:  # noqa: BLE001  whichever it is
        return error
    return None


def csv_at(data: bytes) -> CsvSource:
    location = memory()
    open_store(location).put("table.csv", data)
    return CsvSource(kind="csv", path=location, batch_rows=2)


quick = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


damages = st.sampled_from([b"", b"", b"", None, b'"', b"\xff", b"\n", b",", b"\r"])
"""A byte too many, or None for a file without a header."""


@quick
@given(tables, persons, st.booleans(), st.integers(0, 400), damages)
def test_c11_an_error_about_a_csv_file_tells_nothing_of_it(
    table: list[tuple[str, ...]], person: PersonUnit | None, quoted: bool, at: int, damage: bytes | None
) -> None:
    """Canaries without quotes break rows."""
    rows = [dict(zip(NAMES, row, strict=True)) for row in table]
    data = csv_bytes(rows, NAMES) if quoted else "".join(f"{','.join(row)}\n" for row in [NAMES, *table]).encode()
    header, body = data.split(b"\n", 1)
    whole = body if damage is None else header + b"\n" + body[:at] + damage + body[at:]
    assert_ingest_tells_nothing(csv_at(whole), person)


def _array(values: list[str], kind: str) -> pa.Array:
    match kind:
        case "text":
            return pa.array(values)
        case "bytes":
            return pa.array([value.encode() for value in values])
        case "list":
            return pa.array([[value] for value in values])
        case "dictionary":
            return pa.array(values).dictionary_encode()
        case "number":
            return pa.array([int(NUMBER)] * len(values))
        case _:
            return pa.array([{CANARY: value} for value in values])


kinds = st.sampled_from(["text", "bytes", "list", "dictionary", "number", "struct"])


@quick
@given(tables, persons, st.tuples(*[kinds] * len(NAMES)), st.integers(0, 2000), st.binary(max_size=4))
def test_c11_an_error_about_a_parquet_file_tells_nothing_of_it(
    table: list[tuple[str, ...]], person: PersonUnit | None, types: tuple[str, ...], at: int, damage: bytes
) -> None:
    columns = {name: _array([row[i] for row in table], types[i]) for i, name in enumerate(NAMES)}
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), sink, compression="none")
    data = sink.getvalue().to_pybytes()
    location = memory()
    open_store(location).put("table.parquet", data[:at] + damage + data[at + len(damage) :])
    assert_ingest_tells_nothing(ParquetSource(kind="parquet", path=location, batch_rows=2), person)


def gone(path: Path) -> None:
    path.unlink()


def shortened(path: Path) -> None:
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")


def longer(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "47,smith,true,2013-03-13\n", encoding="utf-8")


@pytest.mark.parametrize("change", [gone, shortened, longer])
def test_c11_whether_the_table_has_changed_since_a_run_began_changes_nothing(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    file = write_release(tmp_path)
    config = load_release(file)
    table, ref = TableSchema.load(config.table), ref_of(config, "r1")
    begin(ref, config, table)
    snapshot(ref)
    kept = files_below(tmp_path / "out")
    change(tmp_path / "table.csv")
    begin(ref, config, table)
    snapshot(ref)
    assert files_below(tmp_path / "out") == kept


@given(st.lists(st.integers(0, 9), max_size=5), st.sampled_from([ValueError, OSError]))
def test_c11_the_error_of_a_source_is_the_same_however_much_of_it_was_read(
    sizes: list[int], kind: type[Exception]
) -> None:
    def frames() -> Iterator[pd.DataFrame]:
        for size in sizes:
            yield pd.DataFrame({"a": range(size)})
        raise kind(CANARY)

    with pytest.raises(SourceError) as raised:
        list(guarded(frames(), (ValueError, OSError), "Expected the rule."))
    assert str(raised.value) == "Expected the rule."
    assert CANARY not in told(raised.value)


@quick
@given(st.lists(st.booleans(), min_size=1, max_size=7).filter(any))
def test_c11_a_refusal_is_the_same_however_many_rows_are_refused_and_wherever_they_stand(refused: list[bool]) -> None:
    rows = [["200" if is_refused else "31", "cook", "1961-02-03", "1.5", "a", ""] for is_refused in refused]
    text = "".join(f"{','.join(row)}\n" for row in [NAMES, *rows])
    error = _error_of(csv_at(text.encode()), None, a_run())
    assert str(error) == str(refusal_of(SCHEMA.columns[0]))


@pytest.mark.parametrize("batch_rows", [7, 150, 400])
def test_c11_a_pass_has_as_many_parts_as_the_settings_say_however_many_rows_there_are(
    tmp_path: Path, batch_rows: int
) -> None:
    config = load_release(write_release(tmp_path, f"memory://{uuid4().hex}", source={"batch_rows": batch_rows}))
    ref, asked = ref_of(config, "r1"), list[int]()
    begin(ref, config, TableSchema.load(config.table))
    snapshot(ref)
    run = Run(ref)

    def work(_: str, parts: int) -> None:
        asked.append(parts)
        raise SourceError("Nobody counts.")

    run.count_with(work)
    with pytest.raises(SourceError):
        run.count()
    assert asked == [ref.runtime.part_count]


def test_c11_nothing_private_is_left_when_a_release_is_published(tmp_path: Path) -> None:
    release = make_release(tmp_path)
    private = open_store(release.ref.private)
    assert private.keys(private_folder(release.ref.run)) == []


# What fails below the private folder


FULL = "Generic LocalFileSystem error: Unable to copy data to file {path}#1: No space left on device (os error 28)"
FORBIDDEN = "Generic S3 error: Client error with status 403 in {path}: <?xml><Error><Code>AccessDenied</Code></Error>"
FAILURES: dict[str, Callable[[str], Exception]] = {
    "a full disk": lambda path: GenericError(FULL.format(path=path)),
    "a forbidden folder": lambda path: PermissionError(errno.EACCES, os.strerror(errno.EACCES), path),
    "a server that refuses": lambda path: GenericError(FORBIDDEN.format(path=path)),
    "no such operation": NotImplementedError,
}
CALLS = ("put", "get", "head", "list", "list_with_delimiter", "delete", "open_reader", "open_writer", "copy")


class Failing:
    """A private store that fails at one of the calls to it, and from then on or not."""

    def __init__(self, patch: pytest.MonkeyPatch, failure: str, at: int | None, is_lasting: bool = True) -> None:
        self._failure, self._at, self._is_lasting, self.calls = FAILURES[failure], at, is_lasting, 0
        for owner, names in ((obstore, CALLS), (local, ("remove", "make_folders"))):
            for name in names:
                patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, inner: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: Any, **kwargs: Any) -> object:  # noqa: ANN401  as the function that it stands before
            where = " ".join(str(arg) for arg in args if isinstance(arg, str | Path | list))
            if "private" in where:
                self.calls += 1
                if self._at is not None and (self.calls == self._at or (self._is_lasting and self.calls > self._at)):
                    raise self._failure(where)
            return inner(*args, **kwargs)

        return counted


def told_by_ingest(location: Location, rows: int, person: PersonUnit | None, failing: Callable[..., Failing]) -> str:
    """What an ingest of so many rows tells."""
    row = dict.fromkeys(NAMES, "") | {"age": "31", "job": "cook", "born": "1961-02-03", "pay": "1.5"}
    source, ref = csv_at(csv_bytes([row] * rows, NAMES)), a_run().model_copy(update={"private": location})

    @sealed
    def read(ref: RunRef) -> None:
        ingest(source, SCHEMA, person, open_store(ref.private), private_folder(ref.run))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ppsyn.data.validation.CodeRanges.check", lambda _: None)  # it takes most of the time
        failing(patch)
        try:
            read(ref)
        except PPSynError as error:
            return told(error)
    return ""


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("where", ["folder", "memory"])
def test_c11_a_store_that_fails_in_the_private_folder_tells_the_same_of_tables_of_all_sizes(
    tmp_path: Path, where: str, failure: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    location = memory() if where == "memory" else Location(url=str(tmp_path))
    seen, calls = set[str](), list[int]()
    for rows, person in ((1, None), (5, None), (3, PersonUnit(column="who", max_rows=2))):
        made: list[Failing] = []

        def whole(patch: pytest.MonkeyPatch, made: list[Failing] = made) -> Failing:
            made.append(Failing(patch, failure, None))
            return made[-1]

        assert told_by_ingest(location, rows, person, whole) == ""
        calls.append(made[0].calls)
        for at in range(1, calls[-1] + 1):
            for is_lasting in (True, False):
                failing = partial(Failing, failure=failure, at=at, is_lasting=is_lasting)
                seen.add(told_by_ingest(location, rows, person, failing))
    assert len(set(calls)) == 3  # so the number of a call tells how many rows there are
    (told_at_all,) = seen
    assert f"Cannot use the private folder {open_store(location).url(private_folder(a_run().run))}: " in told_at_all
    assert not re.search(r"fragments|os error|AccessDenied", caplog.text + "".join(capfd.readouterr()))


def test_c11_a_private_object_that_is_gone_is_not_named() -> None:
    for key in ("runs/r1/private/fragments/00123.parquet", "runs/r1/private/passes/ab/00007.bin"):
        with pytest.raises(MissingError) as caught:
            open_store(memory()).get(key)
        assert caught.value.url.endswith("runs/r1/private")
        assert not re.search("00123|00007", str(caught.value))


@pytest.mark.parametrize("call", ["get", "keys", "folders", "delete", "size", "put", "create", "reader", "writer"])
def test_c11_no_call_to_a_store_that_refuses_names_a_private_object(
    s3: Location, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setenv(f"{s3.credentials}_SECRET_ACCESS_KEY", "wrong")
    key, data = "runs/r1/private/fragments/00123.parquet", [b""] if call in ("put", "create") else []

    def act() -> None:
        result = getattr(open_store(s3), call)(key, *data)
        if call in ("reader", "writer"):
            with result as file:
                file.read(1) if call == "reader" else file.write(b"x")

    with pytest.raises(StoreError) as caught:
        act()
    cause = str(caught.value).removeprefix(f"Cannot use the private folder {s3.url}/runs/r1/private: ")
    assert re.fullmatch(r"\w+\.", cause)


# Modes


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o027])
def test_c11_runs_accounts_and_private_files_are_their_owners_alone_and_releases_follow_the_umask(
    tmp_path: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        parquet.write_table(pa.Table.from_pandas(people(40)), tmp_path / "people.parquet")
        root, hidden = Location(url=str(tmp_path / "out")), Location(url=str(tmp_path / "hidden"))
        stores = {"stores": {"root": root, "private": hidden}}
        run = published.begin(published.config_of(tmp_path / "people.parquet", root, stores))
        run.count()
        with open_store(hidden).writer("runs/r2/private/large.bin") as file:
            file.write(bytes(2**24))  # more than is written at once
        published.finish(run).checkpoint()
        modes = modes_below(tmp_path / "out/runs", tmp_path / "out/accounts", tmp_path / "hidden/runs")
        assert len(modes) > 20
        assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
        assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
        published.stage(run)
        publish(run)
        open_to = modes_below(tmp_path / "out/releases")
        assert {mode for path, mode in open_to.items() if path.is_dir()} == {0o777 & ~umask}
        assert {mode for path, mode in open_to.items() if path.is_file()} == {0o666 & ~umask}
    finally:
        os.umask(before)


def modes_below(*folders: Path) -> dict[Path, int]:
    """The modes of all that is in these folders, and of themselves."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return {path: stat.S_IMODE(path.stat().st_mode) for path in paths}


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_api")
def test_c11_prefect_is_told_the_same_of_tables_of_all_sizes_when_the_disk_is_full(
    tmp_path: Path, prefect_server_folder: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    release = FLOWS["release"]
    caplog.set_level(logging.DEBUG)
    seen = set[str]()
    for at in (3, 5):
        file = write_release(tmp_path / str(at))
        (tmp_path / str(at) / "table.csv").write_text(table_text(150 * at), encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:
            Failing(patch, "a full disk", 2 * at + 6)
            state = release(str(file), return_state=True)
        assert "No space left on device" in str(state.message)
        seen.add(re.sub(r"\d{8}-\d{6}-\w{8}", "RUN", str(state.message)).replace(str(tmp_path / str(at)), ""))
    assert len(seen) == 1
    written = caplog.text + "".join(capfd.readouterr())
    assert not re.search(r"\d{5}\.parquet", written)
    kept = [value for _, value in sqlite_contents(prefect_server_folder / "prefect.db")]
    assert [value for value in kept if re.search(rb"private/fragments|\d{5}\.parquet", value)] == []


def test_c11_ids_of_persons_are_not_kept_with_the_codes() -> None:
    rows = [["31", "cook", "1961-02-03", "1.5", f"{CANARY}{number // 2}", ""] for number in range(6)]
    text, ref = "".join(f"{','.join(row)}\n" for row in [NAMES, *rows]), a_run()
    assert _error_of(csv_at(text.encode()), PersonUnit(column="who", max_rows=1), ref) is None
    private = open_store(ref.private)
    kept = {key: private.get(key) for key in private.keys("")}
    assert kept
    assert [key for key, data in kept.items() if CANARY.encode() in data] == []
