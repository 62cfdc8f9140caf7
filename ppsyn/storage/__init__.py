"""Objects by key, in a folder, a bucket or memory, with atomic create-if-absent."""

from ppsyn.storage.selftest import prove, try_out
from ppsyn.storage.store import Store, open_store

__all__ = ["Store", "open_store", "prove", "try_out"]
