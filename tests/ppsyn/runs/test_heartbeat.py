"""A run shows whether a process goes on with it, by no clock but that of who looks."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ppsyn.errors import StoreError
from ppsyn.runs import heartbeat as pulse
from ppsyn.runs.heartbeat import beating, is_beating
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store

RUN = "20310203-040506-0a1b2c3d"
LAST = f"runs/{RUN}/pulse/last"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty times as fast."""
    for name in ("_BEAT_SECONDS", "_SILENCE_SECONDS", "_LOOK_SECONDS"):
        monkeypatch.setattr(pulse, name, getattr(pulse, name) / 20)


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(Location(url=str(tmp_path)) if request.param == "folder" else request.getfixturevalue("s3"))


def test_a_silence_is_longer_than_ten_beats() -> None:
    assert pulse._SILENCE_SECONDS > 10 * pulse._BEAT_SECONDS


def test_a_run_that_nobody_began_does_not_beat(store: Store) -> None:
    assert not is_beating(store, RUN)


def test_a_run_beats_while_a_process_works_on_it_and_leaves_nothing(store: Store) -> None:
    with beating(store, RUN):
        until(lambda: store.has(LAST))
        assert is_beating(store, RUN)
        assert is_beating(store, RUN)
    assert store.keys("runs") == []
    assert not is_beating(store, RUN)


def test_a_run_whose_process_was_killed_does_not_beat(store: Store) -> None:
    store.put(LAST, b"0a1b 7\n")
    assert not is_beating(store, RUN)
    assert store.get(LAST) == b"0a1b 7\n"


def test_who_ends_after_another_has_begun_leaves_the_beats_of_the_other(store: Store) -> None:
    first = beating(store, RUN)
    first.__enter__()
    until(lambda: store.has(LAST))
    before = store.get(LAST).split()[0]
    with beating(store, RUN):
        until(lambda: store.get(LAST).split()[0] != before)
        first.__exit__(None, None, None)
        assert is_beating(store, RUN)
    assert store.keys("runs") == []


def test_a_store_that_fails_ends_neither_the_run_nor_the_beats(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    failures, put = iter([True, True]), store.put

    def failing(key: str, data: bytes) -> None:
        if next(failures, False):
            raise StoreError("The store is away.")
        put(key, data)

    monkeypatch.setattr(store, "put", failing)
    with beating(store, RUN):
        until(lambda: store.has(LAST))
        assert is_beating(store, RUN)


def until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < give_up, "It took too long."
        time.sleep(0.01)
