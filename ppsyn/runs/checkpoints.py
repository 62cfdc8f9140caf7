"""What a run keeps in order to go on: each answer, for ever, and its last states, each with a digest of its own."""

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ppsyn.errors import ConfigError, InvariantError, MissingError, RunError
from ppsyn.mechanisms.base import Plan, State
from ppsyn.privacy.requests import Answer, Lost, Measured, Selected
from ppsyn.serialization import Fitted, pack, pack_arrays, unpack, unpack_arrays
from ppsyn.storage import Store

_READERS = 16
_KEPT = 2
_DIGEST_BYTES = 32


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
            arrays = {"noisy_counts": answer.noisy_counts, "sigma": np.array(answer.sigma)}
        case Selected():
            arrays = {"index": np.array(answer.index, np.int64)}
        case Lost():
            arrays = {}
    return sealed(pack_arrays({**bound, **arrays}))


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


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The loop's state after so many answers.

    Attributes:
        history: A digest of the questions that led to it.
        answers: The digests of the stored answers that it has taken in, in order.
    """

    state: State
    history: str
    answers: tuple[str, ...]

    @property
    def step(self) -> int:
        """How many answers it has taken in."""
        return len(self.answers)


class Checkpoints:
    """The checkpoints of one run; the last two are kept."""

    def __init__(self, store: Store, run: str) -> None:
        """Keep them under `runs/<run>/checkpoints`."""
        self._store, self._folder = store, f"runs/{run}/checkpoints"

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a state between rounds: nothing is selected that is not measured."""
        notes = {"history": checkpoint.history, "answers": " ".join(checkpoint.answers)}
        self._store.put(self._key(checkpoint.step), sealed(pack(freeze(checkpoint.state, notes))))
        for older in self._steps()[:-_KEPT]:
            self._store.delete(f"{self._folder}/{older:06d}")

    def latest(self, plan: Plan) -> Checkpoint | None:
        """The last checkpoint that is whole, if there is one. Without it the answers give the same state, later."""
        return next(filter(None, (self._find(step, plan) for step in reversed(self._steps()))), None)

    def _find(self, step: int, plan: Plan) -> Checkpoint | None:
        try:
            fitted = unpack(unsealed(self._store.get(self._key(step))), plan.domain)
        except (MissingError, ConfigError, ValueError):  # removed by another process, damaged, or of an older version
            return None
        found = Checkpoint(thaw(plan, fitted), fitted.notes["history"], tuple(fitted.notes["answers"].split()))
        return found if found.step == step else None

    def _steps(self) -> list[int]:
        """The steps that have a checkpoint. What else lies beside them is none of ours."""
        keys = (key.removeprefix(f"{self._folder}/") for key in self._store.keys(self._folder))
        found = (re.fullmatch(r"(\d{6,})/state\.npz", key) for key in keys)
        return sorted(int(match[1]) for match in found if match)

    def _key(self, step: int) -> str:
        return f"{self._folder}/{step:06d}/state.npz"


def freeze(state: State, notes: dict[str, str]) -> Fitted:
    """A state between rounds, ready to be packed."""
    if state.one_way or state.chosen is not None:
        raise InvariantError("A checkpoint was to be taken in the middle of a round.")
    budget = {"spent": state.spent, "planned_rho": state.planned_rho, "round_rho": state.round_rho}
    learned = " ".join(f"{index}*" if is_off_tree else str(index) for index, is_off_tree in state.learned.items())
    kept = {**{name: str(rho) for name, rho in budget.items()}, "learned": learned, **notes}
    return Fitted(state.measurements, state.evidence, state.rounds, state.model, kept)


def thaw(plan: Plan, fitted: Fitted) -> State:
    """The state that was packed."""
    learned = {int(word.rstrip("*")): word.endswith("*") for word in fitted.notes["learned"].split()}
    return State(
        plan=plan,
        spent=Fraction(fitted.notes["spent"]),
        one_way=(),
        planned_rho=Fraction(fitted.notes["planned_rho"]),
        round_rho=Fraction(fitted.notes["round_rho"]),
        model=fitted.model,
        measurements=fitted.measurements,
        told=fitted.evidence[len(learned) :],
        learned=learned,
        evidence=fitted.evidence,
        rounds=fitted.rounds,
        is_fine=True,
    )


def sealed(data: bytes) -> bytes:
    """The data with its digest before it."""
    return hashlib.sha256(data).digest() + data


def unsealed(data: bytes) -> bytes:
    """The data, if it is as it was sealed.

    Raises:
        ValueError: If it is not. Nothing of it was read.
    """
    found = data[_DIGEST_BYTES:]
    if hashlib.sha256(found).digest() != data[:_DIGEST_BYTES]:
        raise ValueError("not as it was written")
    return found


def digest_of(data: bytes) -> str:
    """The digest of an object, as text."""
    return hashlib.sha256(data).hexdigest()
