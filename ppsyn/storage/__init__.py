"""Objects by key, in a folder, a bucket or memory, with atomic create-if-absent."""

from ppsyn.storage.store import Store, open_store, prove

__all__ = ["Store", "open_store", "prove"]
