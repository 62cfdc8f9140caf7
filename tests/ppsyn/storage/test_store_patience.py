"""A store that restarts is waited for; one that refuses, or was never there, is not."""

import contextlib
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from uuid import uuid4

import pytest
from support.servers import BUCKET, HOST, Weed, free_ports, new_weed, seaweedfs

from ppsyn.errors import StoreError
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.budget import rho_of
from ppsyn.schemas.config import Budget
from ppsyn.schemas.locations import Location
from ppsyn.storage.store import Store, open_store

AWAY_SECONDS = 6
"""Longer than obstore's own few tries take; a start takes some more."""


def _read(store: Store) -> bytes:
    with store.reader("kept") as file:
        return file.read()


def _write(store: Store) -> None:
    with store.writer("written") as file:
        file.write(b"x" * 2**20)


CALLS: dict[str, Callable[[Store], object]] = {
    "create": lambda store: store.create("new", b"1"),
    "put": lambda store: store.put("kept", b"1"),
    "get": lambda store: store.get("kept"),
    "has": lambda store: store.has("kept"),
    "keys": lambda store: store.keys(),
    "delete": lambda store: store.delete("folder"),
    "move": lambda store: store.move_folder("from", "to", "last"),
    "read": _read,
    "write": _write,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Weed]:
    return tmp_path_factory.mktemp("weed"), new_weed()


@pytest.fixture
def location(home: tuple[Path, Weed], monkeypatch: pytest.MonkeyPatch) -> Location:
    """A folder of the bucket of a server that may be away."""
    _, weed = home
    access, secret = weed.keys[1]
    monkeypatch.setenv("AWAY_ACCESS_KEY_ID", access)
    monkeypatch.setenv("AWAY_SECRET_ACCESS_KEY", secret)
    endpoint = f"http://{HOST}:{weed.ports[6]}"
    return Location(url=f"s3://{BUCKET}/{uuid4().hex}", endpoint=endpoint, credentials="AWAY")


@contextlib.contextmanager
def back_after(home: tuple[Path, Weed], seconds: float) -> Generator[None]:
    """Have the server, which is away, come back after a while, and go again at the end."""
    done = threading.Event()
    problems: list[BaseException] = []

    def serve() -> None:
        time.sleep(seconds)
        try:
            with seaweedfs(*home):
                done.wait(120)
        except RuntimeError as error:
            problems.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    assert not problems


@pytest.mark.slow
def test_a_store_that_is_killed_and_comes_back_is_waited_for(home: tuple[Path, Weed], location: Location) -> None:
    with seaweedfs(*home):
        open_store(location).put("kept", b"0")
        for key in ("folder/a", "from/a", "from/last"):
            open_store(location).put(key, b"0")
    found: dict[str, object] = {}
    stores = {name: open_store(location) for name in CALLS}  # as a run has them, whose store has answered before

    def ask(name: str) -> None:
        try:
            found[name] = CALLS[name](stores[name])
        except StoreError as error:
            found[name] = error

    asking = [threading.Thread(target=ask, args=(name,)) for name in CALLS]
    began = time.monotonic()
    for thread in asking:
        thread.start()  # the server is gone
    with back_after(home, AWAY_SECONDS):
        for thread in asking:
            thread.join()
        assert time.monotonic() - began > AWAY_SECONDS
        assert [name for name, result in found.items() if isinstance(result, StoreError)] == [], found
        assert found["create"] is True
        assert open_store(location).keys("to") == ["to/a", "to/last"]


@pytest.mark.slow
def test_entries_of_an_account_are_written_once_while_the_store_is_killed_again_and_again(
    home: tuple[Path, Weed], location: Location
) -> None:
    cap = rho_of(Budget(rho=1.0))
    with seaweedfs(*home):
        account = StoredAccount(open_store(location), "people")
        account.open(cap, None, "a row")
        account = StoredAccount(open_store(location), "people")
        account.reserve("r", cap, 64 * "0")
    stop, written, problems = threading.Event(), list[int](), list[Exception]()

    def write() -> None:
        try:
            for number in range(2, 100_000):
                if stop.is_set():
                    return
                account.set_cap(cap + number)
                written.append(number)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is looked at
            problems.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(3):
        with back_after(home, 1):
            before, give_up = len(written), time.monotonic() + 60
            while len(written) < before + 20 and not problems and time.monotonic() < give_up:
                time.sleep(0.05)
            assert not problems
            assert len(written) >= before + 20
    stop.set()
    with back_after(home, 0):
        writer.join()
        assert problems == []
        assert StoredAccount(open_store(location), "people").state.cap == cap + written[-1]
        assert len(StoredAccount(open_store(location), "people").entries()) == 2 + len(written)


def test_a_store_that_has_answered_and_refuses_now_is_not_waited_for(
    s3: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(s3).put("key", b"1")
    monkeypatch.setenv(f"{s3.credentials}_SECRET_ACCESS_KEY", "wrong")
    other = s3.model_copy(update={"url": "s3://no-such-bucket/folder"})
    for store, call in [(open_store(s3), "get"), (open_store(s3), "create"), (open_store(other), "create")]:
        began = time.monotonic()
        with pytest.raises(StoreError):
            CALLS[call](store)
        assert time.monotonic() - began < 5


def test_a_bucket_that_is_not_there_is_no_missing_object(s3: Location) -> None:
    with pytest.raises(StoreError, match=r"no such bucket|NoSuchBucket|AccessDenied"):
        open_store(s3.model_copy(update={"url": "s3://no-such-bucket/folder"})).get("key")


def test_an_endpoint_of_ones_own_without_keys_asks_no_machine_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    location = Location(url=f"s3://{BUCKET}/x", endpoint=f"http://{HOST}:{free_ports(1)[0]}")
    began = time.monotonic()
    with pytest.raises(StoreError, match="Expected the environment to hold AWS_ACCESS_KEY_ID"):
        open_store(location)
    assert time.monotonic() - began < 1
