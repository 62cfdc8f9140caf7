"""A store holds what was put into it, whatever it is made of."""

import secrets
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.s3_proxy import proxy
from support.servers import SeaweedFS

from ppsyn.errors import MissingError
from ppsyn.schemas.locations import Location
from ppsyn.storage.store import Store, open_store

NAMES = st.text("abcxyz019-_.", min_size=1, max_size=8).filter(lambda name: name.strip(".") != "")
FILES = st.dictionaries(st.tuples(NAMES, NAMES).map(lambda pair: f"{pair[0]}/f-{pair[1]}"), st.binary(max_size=64))
TABLE = pa.table({"number": list(range(1000)), "text": [str(number) for number in range(1000)]})


def write_and_fail(store: Store, data: bytes) -> None:
    with store.writer("object") as file:
        file.write(data)
        raise ZeroDivisionError


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=FILES, removed=st.integers(0, 10))
def test_a_store_is_a_mapping_of_keys_to_bytes(store: Store, files: dict[str, bytes], removed: int) -> None:
    root = secrets.token_hex(8)
    expected = {f"{root}/{key}": data for key, data in files.items()}
    for key, data in expected.items():
        store.put(key, data)
    for folder in store.folders(root)[:removed]:
        store.delete(f"{root}/{folder}")
        expected = {key: data for key, data in expected.items() if not key.startswith(f"{root}/{folder}/")}
    assert store.keys(root) == sorted(expected)
    held = [folder for folder in store.folders(root) if store.keys(f"{root}/{folder}")]  # SeaweedFS keeps empty ones
    assert held == sorted({key.split("/")[1] for key in expected})
    assert store.get_all(expected) == list(expected.values())
    assert {key: store.size(key) for key in expected} == {key: len(data) for key, data in expected.items()}


def test_put_writes_over_and_create_does_not(store: Store) -> None:
    store.put("key", b"first")
    store.put("key", b"second")
    assert not store.create("key", b"third")
    assert store.create("other", b"fourth")
    assert (store.get("key"), store.get("other")) == (b"second", b"fourth")


def test_an_object_that_is_not_there_has_no_size(store: Store) -> None:
    assert store.size("none") is None
    assert not store.has("none")
    store.put("some", b"")
    assert (store.size("some"), store.has("some")) == (0, True)


def test_a_folder_is_not_the_beginning_of_a_name(store: Store) -> None:
    for key in ("a/1", "ab/1", "a/b/1"):
        store.put(key, b"")
    assert store.keys("a") == store.keys("a/") == ["a/1", "a/b/1"]
    store.delete("a")
    assert store.keys() == ["ab/1"]


def test_a_folder_that_is_not_there_is_empty(store: Store) -> None:
    assert (store.keys("none"), store.folders("none")) == ([], [])
    store.delete("none")


def test_single_objects_are_discarded_and_those_beside_them_stay(store: Store) -> None:
    for key in ("a/b/1", "a/b/2", "a/b/c/3"):
        store.put(key, b"x")
    store.discard(["a/b/1", "a/b/none", "a/b/c/3"])
    assert store.keys() == ["a/b/2"]
    store.discard(["a/b/2"])
    store.discard([])
    assert store.keys() == []


def test_more_objects_than_a_listing_shows_at_once_are_listed_and_deleted() -> None:
    store = open_store(Location(url=f"memory://{secrets.token_hex(8)}"))
    for number in range(2500):
        store.put(f"many/{number:05}", b"")
    assert len(store.keys("many")) == 2500
    store.delete("many")
    assert store.keys() == []


@pytest.mark.slow
def test_more_objects_than_a_bucket_lists_at_once_are_listed_and_deleted(s3: Location) -> None:
    store = open_store(s3)
    for number in range(1005):
        store.put(f"many/{number:05}", b"")
    assert len(store.keys("many")) == 1005
    store.delete("many")
    assert store.keys() == []


def test_a_place_inside_a_place_sees_the_same_objects(store: Store) -> None:
    inside = open_store(store.location.child("folder"))
    inside.put("a/b", b"1")
    assert store.get("folder/a/b") == b"1"
    assert (inside.keys(), inside.folders()) == (["a/b"], ["a"])
    assert inside.url("a/b") == store.url("folder/a/b")
    inside.delete("a")
    assert store.keys() == []


def test_two_places_do_not_see_each_other(store: Store) -> None:
    one, other = open_store(store.location.child("one")), open_store(store.location.child("one-more"))
    one.put("key", b"1")
    assert other.keys() == []
    assert one.keys() == ["key"]


def test_a_deleted_folder_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    store = open_store(Location(url=str(tmp_path)))
    store.put("a/b/c/d", b"1")
    store.delete("a/b")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [0, 10, 25_000_000], ids=["empty", "small", "in parts"])
def test_a_written_object_appears_after_the_block_and_not_before(store: Store, size: int) -> None:
    data = secrets.token_bytes(size)
    with store.writer("folder/object") as file:
        for at in range(0, size, 1_000_000):
            file.write(data[at : at + 1_000_000])
        assert store.keys() == []
    assert store.get("folder/object") == data


@pytest.mark.parametrize("size", [10, 25_000_000], ids=["small", "in parts"])
def test_an_object_whose_writer_failed_does_not_appear(store: Store, size: int) -> None:
    with pytest.raises(ZeroDivisionError):
        write_and_fail(store, bytes(size))
    assert not store.has("object")
    assert store.keys() == []


def test_a_failed_writer_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        write_and_fail(open_store(Location(url=str(tmp_path))), bytes(25_000_000))
    assert list(tmp_path.rglob("*")) == []


def test_a_failed_writer_leaves_no_part_of_an_upload(s3: Location, seaweedfs_server: SeaweedFS) -> None:
    with proxy(seaweedfs_server) as between:
        store = open_store(s3.model_copy(update={"endpoint": between.endpoint}))
        with pytest.raises(ZeroDivisionError):
            write_and_fail(store, bytes(25_000_000))
        deadline = time.monotonic() + 10
        while not (given_up := [one for one in between.seen if one.startswith("DELETE") and "uploadId=" in one]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert len(given_up) == 1


def test_a_failed_writer_leaves_the_object_that_was_there(store: Store) -> None:
    store.put("object", b"old")
    with pytest.raises(ZeroDivisionError):
        write_and_fail(store, b"new")
    assert store.get("object") == b"old"


@pytest.mark.parametrize("open_file", [Store.writer, Store.reader], ids=["writer", "reader"])
def test_what_fails_in_the_block_is_not_said_of_the_object(
    store: Store, tmp_path: Path, open_file: Callable[..., object]
) -> None:
    store.put("object", b"1")
    with pytest.raises(FileNotFoundError, match="another file"), open_file(store, "object"):  # type: ignore[attr-defined]
        (tmp_path / "another file").read_bytes()


def test_a_reader_reads_and_seeks(store: Store) -> None:
    store.put("object", bytes(range(100)))
    with store.reader("object") as file:
        assert bytes(file.read(3)) == b"\x00\x01\x02"
        assert file.tell() == 3
        assert file.seek(-2, 2) == 98
        assert bytes(file.read()) == b"\x62\x63"
        assert bytes(file.read(1)) == b""
        assert file.seek(50) == 50
        assert bytes(file.read(1)) == b"\x32"
        assert file.readable()
        assert file.seekable()
        assert not file.closed
    assert file.closed


def test_a_parquet_file_goes_through_a_store(store: Store) -> None:
    with store.writer("table.parquet") as file:
        pq.write_table(TABLE, file, row_group_size=100)
    with store.reader("table.parquet") as file:
        parquet = pq.ParquetFile(file)
        assert parquet.read_row_group(3).equals(TABLE.slice(300, 100))
        assert parquet.read().equals(TABLE)


def test_a_parquet_file_written_in_batches_goes_through_a_store(store: Store) -> None:
    with store.writer("table.parquet") as file, pq.ParquetWriter(file, TABLE.schema) as parquet:
        for batch in TABLE.to_batches(max_chunksize=300):
            parquet.write_batch(batch)
    with store.reader("table.parquet") as file:
        assert pq.read_table(file).equals(TABLE)


def test_a_csv_file_is_read_from_a_store(store: Store) -> None:
    store.put("table.csv", b"a,b\n1,x\n2,y\n")
    with store.reader("table.csv") as file:
        assert pyarrow.csv.read_csv(file).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}


def test_a_reader_of_nothing_says_so(store: Store) -> None:
    with pytest.raises(MissingError), store.reader("none"):
        pass
