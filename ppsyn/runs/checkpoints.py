"""The loop's state after a round, as one object, so that a resumed run need not fit its way there."""

import re
from dataclasses import dataclass
from fractions import Fraction

from ppsyn.errors import ConfigError, InvariantError, MissingError
from ppsyn.mechanisms.base import Plan, State
from ppsyn.runs.checksums import sealed, unsealed
from ppsyn.serialization import Fitted, pack, unpack
from ppsyn.storage import Store

_KEPT = 2


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
    kept = {**{name: str(rho) for name, rho in budget.items()}, **notes}
    return Fitted(state.measurements, state.evidence, state.rounds, state.model, kept)


def thaw(plan: Plan, fitted: Fitted) -> State:
    """The state that was packed."""
    return State(
        plan=plan,
        spent=Fraction(fitted.notes["spent"]),
        one_way=(),
        planned_rho=Fraction(fitted.notes["planned_rho"]),
        round_rho=Fraction(fitted.notes["round_rho"]),
        model=fitted.model,
        measurements=fitted.measurements,
        evidence=fitted.evidence,
        rounds=fitted.rounds,
        is_fine=True,
    )
