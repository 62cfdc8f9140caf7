"""A store proves that it honours create-if-absent; one that does not is refused."""

from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import pytest
from s3_proxy import Conditions, proxy
from servers import SeaweedFS

from ppsyn.errors import StoreError
from ppsyn.storage.store import Store, open_store, prove
from schemas.places import Place


def test_a_store_that_honours_conditions_passes_and_is_left_as_it_was(store: Store) -> None:
    store.put("kept", b"1")
    prove(store)
    assert store.keys() == ["kept"]


def test_many_may_prove_one_folder_at_once(tmp_path: Path) -> None:
    store = open_store(Place(url=str(tmp_path)))
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(prove, repeat(store, 100))) == [None] * 100
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("conditions", ["ignored", "kept one at a time"])
def test_a_server_that_ignores_conditions_is_refused(
    s3: Place, seaweedfs_server: SeaweedFS, conditions: Conditions
) -> None:
    with proxy(seaweedfs_server, conditions) as between:
        store = open_store(s3.model_copy(update={"endpoint": between.endpoint}))
        store.put("key", b"1")
        assert store.get("key") == b"1"  # all else works
        with pytest.raises(StoreError, match="lets an object be created twice"):
            prove(store)
        assert store.keys() == ["key"]


def test_a_server_behind_a_proxy_that_changes_nothing_passes(s3: Place, seaweedfs_server: SeaweedFS) -> None:
    with proxy(seaweedfs_server) as between:
        prove(open_store(s3.model_copy(update={"endpoint": between.endpoint})))
