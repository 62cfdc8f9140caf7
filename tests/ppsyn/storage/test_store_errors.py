"""A store that cannot be used says which, and why, and no secret; and does not take long."""

import contextlib
import socket
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from support.servers import HOST, free_ports

from ppsyn.errors import MissingError, StoreError
from ppsyn.schemas.locations import Location
from ppsyn.storage.selftest import prove
from ppsyn.storage.store import Store, open_store

SECRET = "a-secret-that-is-wrong"
CALLS: dict[str, Callable[[Store], object]] = {
    "create": lambda store: store.create("key", b""),
    "put": lambda store: store.put("key", b""),
    "get": lambda store: store.get("key"),
    "keys": lambda store: store.keys(),
    "folders": lambda store: store.folders(),
    "delete": lambda store: store.delete("folder"),
    "prove": lambda store: prove(store, "run/record", b""),
}


@contextlib.contextmanager
def within(seconds: float) -> Generator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds


def test_a_missing_object_is_named(store: Store) -> None:
    with pytest.raises(MissingError) as caught:
        store.get("folder/none")
    assert caught.value.url == store.url("folder/none")


@pytest.mark.parametrize("name", ["private/none", "folder/none"])
def test_an_error_keeps_nothing_of_the_one_behind_it(store: Store, name: str) -> None:
    for call in (store.get, lambda key: store.reader(key).__enter__()):
        with pytest.raises(MissingError) as caught:
            call(f"runs/r/{name}")
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=str(tmp_path / "file" / "store")):
        open_store(Location(url=str(tmp_path / "file" / "store")))


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=str(tmp_path / "file")):
        open_store(Location(url=str(tmp_path / "file"))).put("key", b"")


def test_an_object_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    store = open_store(Location(url=str(tmp_path)))
    store.put("folder", b"")
    for call in (store.create, store.put):
        with pytest.raises(StoreError, match=str(tmp_path / "folder" / "key")):
            call("folder/key", b"")


@pytest.mark.parametrize("part", ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY"])
def test_a_variable_that_is_missing_is_named(s3: Location, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.delenv(f"{s3.credentials}_{part}")
    with pytest.raises(StoreError, match=f"{s3.credentials}_{part} for {s3.url}"):
        open_store(s3)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_wrong_secret_is_refused_at_once_and_not_said(
    s3: Location, monkeypatch: pytest.MonkeyPatch, call: Callable[[Store], object]
) -> None:
    monkeypatch.setenv(f"{s3.credentials}_SECRET_ACCESS_KEY", SECRET)
    with within(5), pytest.raises(StoreError, match="SignatureDoesNotMatch") as caught:
        call(open_store(s3))
    assert s3.url in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert SECRET not in repr(open_store(s3))


@pytest.mark.parametrize("call", ["create", "put", "keys", "folders", "prove"])
def test_a_bucket_that_does_not_exist_is_refused_at_once(s3: Location, call: str) -> None:
    location = s3.model_copy(update={"url": "s3://no-such-bucket/folder"})
    with within(5), pytest.raises(StoreError, match="s3://no-such-bucket/folder"):
        CALLS[call](open_store(location))


@pytest.mark.parametrize("variable", ["AWS_SESSION_TOKEN", "AWS_SKIP_SIGNATURE", "AWS_CONDITIONAL_PUT", "AWS_REGION"])
def test_variables_meant_for_another_account_have_no_part(
    s3: Location, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    values = {"AWS_SKIP_SIGNATURE": "true", "AWS_CONDITIONAL_PUT": "disabled"}
    monkeypatch.setenv(variable, values.get(variable, "another"))
    store = open_store(s3)
    assert store.create("key", b"1")
    assert not store.create("key", b"2")


@pytest.mark.parametrize("call", ["create", pytest.param("get", marks=pytest.mark.slow), "keys"])
@pytest.mark.parametrize("scheme", ["http", pytest.param("https", marks=pytest.mark.slow)])
def test_a_server_that_is_not_there_is_given_up_soon(s3: Location, call: str, scheme: str) -> None:
    location = s3.model_copy(update={"endpoint": f"{scheme}://{HOST}:{free_ports(1)[0]}"})
    with within(30), pytest.raises(StoreError, match=s3.url):
        CALLS[call](open_store(location))


@pytest.mark.slow
def test_a_server_that_takes_no_connection_is_given_up_soon(s3: Location) -> None:
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind((HOST, 0))
        full.listen(0)
        for _ in range(3):  # no more are let in
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        location = s3.model_copy(update={"endpoint": f"http://{HOST}:{full.getsockname()[1]}"})
        with within(20), pytest.raises(StoreError, match=s3.url):
            open_store(location).get("key")


def test_an_address_shows_no_secret(s3: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{s3.credentials}_SECRET_ACCESS_KEY", SECRET)
    assert repr(open_store(s3)) == f"Store({s3.url})"
