"""Released answers, one object each, created only if absent: of a step there is one answer for ever."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ppsyn.errors import MissingError, RunError
from ppsyn.privacy.requests import Answer, Lost, Measured, Selected
from ppsyn.runs.checksums import digest_of, sealed, unsealed
from ppsyn.serialization import pack_arrays, unpack_arrays
from ppsyn.storage import Store

_READERS = 16


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer as it is stored.

    Attributes:
        step: What it is the answer to: the step,
        request: and the digest of the question.
        digest: Of the object that holds it.
    """

    answer: Answer
    step: int
    request: str
    digest: str


class Answers:
    """The answers of one run, in order."""

    def __init__(self, store: Store, run: str) -> None:
        """Keep them under `runs/<run>/answers`."""
        self._store, self._run, self._folder = store, run, f"runs/{run}/answers"

    def keep(self, step: int, request: str, answer: Answer) -> Kept | None:
        """Store the answer to a step, unless it has another; returns it if the step has this one now.

        A store that repeats a request whose answer was lost may report our own object as another's.

        Args:
            step: The step.
            request: The digest of its question.
            answer: The answer.
        """
        data = to_bytes(step, request, answer)
        is_kept = self._store.create(self._key(step), data) or self._store.get(self._key(step)) == data
        return Kept(answer, step, request, digest_of(data)) if is_kept else None

    def find(self, step: int) -> Kept | None:
        """The answer to a step, if there is one.

        Raises:
            RunError: If what is there is not that.
        """
        try:
            data = self._store.get(self._key(step))
        except MissingError:
            return None
        try:
            kept = from_bytes(data)
        except ValueError:
            kept = None
        if kept is None or kept.step != step:
            raise RunError(f"The answer to step {step} of run {self._run} is damaged, or is that to another step.")
        return kept

    def first(self, count: int) -> list[Kept | None]:
        """The answers to so many steps, read side by side."""
        with ThreadPoolExecutor(_READERS) as pool:
            return list(pool.map(self.find, range(count)))

    def steps(self) -> list[int]:
        """The steps that have an answer. What else lies beside the answers is none of ours."""
        found = (re.fullmatch(r"(\d{6,})\.npz", key.removeprefix(f"{self._folder}/")) for key in self._keys())
        return sorted(int(match[1]) for match in found if match)

    def _keys(self) -> list[str]:
        return self._store.keys(self._folder)

    def _key(self, step: int) -> str:
        return f"{self._folder}/{step:06d}.npz"


def to_bytes(step: int, request: str, answer: Answer) -> bytes:
    """An answer as it is stored, with the step and the question that it belongs to."""
    bound = {"step": np.array(step, np.int64), "request": np.frombuffer(request.encode(), np.uint8)}
    match answer:
        case Measured():
            told = {"noisy_counts": answer.noisy_counts, "sigma": np.array(answer.sigma)}
        case Selected():
            told = {"index": np.array(answer.index, np.int64)}
        case Lost():
            told = {}
    return sealed(pack_arrays({**bound, **told}))


def from_bytes(data: bytes) -> Kept:
    """A stored answer.

    Raises:
        ValueError: If it is not one, or not as it was written.
    """
    arrays = unpack_arrays(unsealed(data))
    step = int(arrays.pop("step", np.array(-1)))
    request = arrays.pop("request", np.array([], np.uint8)).tobytes().decode()
    match sorted(arrays):
        case ["noisy_counts", "sigma"]:
            answer: Answer = Measured(arrays["noisy_counts"].astype(np.int64), float(arrays["sigma"]))
        case ["index"]:
            answer = Selected(int(arrays["index"]))
        case []:
            answer = Lost()
        case _:
            raise ValueError("not an answer")
    return Kept(answer, step, request, digest_of(data))
