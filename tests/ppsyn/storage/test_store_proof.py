"""A store proves that it honours create-if-absent; one that does not is refused."""

from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import pytest
from support.s3_proxy import Conditions, proxy
from support.servers import SeaweedFS

from ppsyn.errors import StoreError
from ppsyn.schemas.locations import Location
from ppsyn.storage.selftest import prove
from ppsyn.storage.store import Store, open_store


def test_a_store_that_honours_conditions_passes_and_is_left_as_it_was(store: Store) -> None:
    store.put("kept", b"1")
    assert prove(store, "run/record", b"2")
    assert not prove(store, "run/record", b"2")
    assert store.keys() == ["kept", "run/record"]
    assert store.get("run/record") == b"2"


def test_many_may_prove_one_folder_at_once(tmp_path: Path) -> None:
    store = open_store(Location(url=str(tmp_path)))
    with ThreadPoolExecutor(8) as pool:
        keys = [f"run-{number % 10}/record" for number in range(100)]
        new = list(pool.map(prove, repeat(store), keys, repeat(b"1")))
    assert new.count(True) == 10
    assert store.keys() == [f"run-{number}/record" for number in range(10)]


@pytest.mark.parametrize("conditions", ["ignored", "kept one at a time"])
def test_a_server_that_ignores_conditions_is_refused(
    s3: Location, seaweedfs_server: SeaweedFS, conditions: Conditions
) -> None:
    with proxy(seaweedfs_server, conditions) as between:
        store = open_store(s3.model_copy(update={"endpoint": between.endpoint}))
        store.put("key", b"1")
        assert store.get("key") == b"1"  # all else works
        with pytest.raises(StoreError, match="lets an object be created twice"):
            prove(store, "run/record", b"1")
        assert store.keys() == ["key", "run/record"]


def test_a_server_that_ignores_conditions_is_refused_though_the_object_was_there_before(
    s3: Location, seaweedfs_server: SeaweedFS
) -> None:
    assert prove(open_store(s3), "run/record", b"1")
    with proxy(seaweedfs_server, "ignored") as between:
        store = open_store(s3.model_copy(update={"endpoint": between.endpoint}))
        with pytest.raises(StoreError, match="lets an object be created twice"):
            prove(store, "run/record", b"1")
    assert open_store(s3).get("run/record") == b"1"


def test_a_server_behind_a_proxy_that_changes_nothing_passes(s3: Location, seaweedfs_server: SeaweedFS) -> None:
    with proxy(seaweedfs_server) as between:
        assert prove(open_store(s3.model_copy(update={"endpoint": between.endpoint})), "run/record", b"1")
