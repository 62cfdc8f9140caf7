"""Whether a store does what runs and accounts need of it, tried before anything depends on it."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import uuid4

from ppsyn.errors import StoreError
from ppsyn.storage.store import Store

_RACERS = 4


def prove(store: Store, key: str, data: bytes) -> bool:
    """Create an object as several at once, and see that the store lets one at most: accounts depend on it (claim C9).

    Nothing is left of it but the object, which was to be created or was there already. Returns whether it is new.

    Raises:
        StoreError: If the store lets it be created twice, one after the other or at once.
    """
    with ThreadPoolExecutor(_RACERS) as pool:
        made = list(pool.map(partial(store.create, key), [data] * _RACERS))
    if made.count(True) > 1 or store.create(key, data):
        raise StoreError(
            f"{store.location.url} lets an object be created twice, so an account kept there could lose entries. "
            "Use a store that honours conditional writes (If-None-Match): Amazon S3, SeaweedFS, or a folder."
        )
    return True in made


def try_out(store: Store, folder: str) -> None:
    """See that the store can be written, read and cleared below a folder of a run, before anything depends on it.

    Raises:
        StoreError: If it cannot.
    """
    tried = f"{folder}/{uuid4().hex}"
    store.put(f"{tried}/object", b"tried")
    store.get(f"{tried}/object")
    store.delete(tried)
