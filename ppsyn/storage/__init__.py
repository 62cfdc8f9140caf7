"""Objects by key, in a folder, a bucket or memory, with atomic create-if-absent."""

from ppsyn.storage.store import Store, open_store, prove, try_out

__all__ = ["Store", "open_store", "prove", "try_out"]
