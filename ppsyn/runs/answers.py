"""Released answers, one object each, created only if absent: of a step there is one answer for ever."""

import numpy as np

from ppsyn.errors import MissingError, RunError
from ppsyn.packing import pack_arrays, unpack_arrays
from ppsyn.requests import Answer, Lost, Measured, Selected
from ppsyn.storage import Store


class Answers:
    """The answers of one run, in order."""

    def __init__(self, store: Store, run: str) -> None:
        """Keep them under `runs/<run>/answers`."""
        self._store, self._folder = store, f"runs/{run}/answers"

    def keep(self, step: int, answer: Answer) -> bool:
        """Store the answer to a step, unless it has another; whether it has this one now.

        A store that repeats a request whose answer was lost may report our own object as another's.
        """
        data = to_bytes(answer)
        return self._store.create(self._key(step), data) or self._store.get(self._key(step)) == data

    def find(self, step: int) -> Answer | None:
        """The answer to a step, if there is one."""
        try:
            return from_bytes(self._store.get(self._key(step)))
        except MissingError:
            return None

    def count(self) -> int:
        """How many steps have an answer."""
        return len(self._store.keys(self._folder))

    def _key(self, step: int) -> str:
        return f"{self._folder}/{step:06d}.npz"


def to_bytes(answer: Answer) -> bytes:
    """An answer as it is stored."""
    match answer:
        case Measured():
            return pack_arrays({"noisy_counts": answer.noisy_counts, "sigma": np.array(answer.sigma)})
        case Selected():
            return pack_arrays({"index": np.array(answer.index, np.int64)})
        case Lost():
            return pack_arrays({"lost": np.array(True)})


def from_bytes(data: bytes) -> Answer:
    """A stored answer.

    Raises:
        RunError: If it is not one.
    """
    try:
        arrays = unpack_arrays(data)
    except ValueError:
        arrays = {}
    match sorted(arrays):
        case ["noisy_counts", "sigma"]:
            return Measured(arrays["noisy_counts"].astype(np.int64), float(arrays["sigma"].astype(np.float64)))
        case ["index"]:
            return Selected(int(arrays["index"].astype(np.int64)))
        case ["lost"]:
            return Lost()
        case _:
            raise RunError("A stored answer is damaged.")
