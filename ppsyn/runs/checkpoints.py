"""The loop's state after a round, as one object, so that a resumed run need not fit its way there."""

from fractions import Fraction

from ppsyn.errors import InvariantError
from ppsyn.packing import Fitted, pack, unpack
from ppsyn.state import Plan, State
from ppsyn.storage import Store

_KEPT = 2


class Checkpoints:
    """The checkpoints of one run; the last two are kept."""

    def __init__(self, store: Store, run: str) -> None:
        """Keep them under `runs/<run>/checkpoints`."""
        self._store, self._folder = store, f"runs/{run}/checkpoints"

    def save(self, step: int, state: State, history: str) -> None:
        """Keep the state after so many answers.

        Args:
            step: How many answers the state has taken in.
            state: Between rounds: nothing is selected that is not measured.
            history: A digest of the requests that led to it.
        """
        self._store.put(self._key(step), pack(freeze(state, {"history": history})))
        for older in self._steps()[:-_KEPT]:
            self._store.delete(f"{self._folder}/{older:06d}")

    def latest(self, plan: Plan) -> tuple[int, State, str] | None:
        """The last checkpoint: how many answers it has taken in, the state, and the history's digest."""
        steps = self._steps()
        if not steps:
            return None
        fitted = unpack(self._store.get(self._key(steps[-1])), plan.domain)
        return steps[-1], thaw(plan, fitted), fitted.notes["history"]

    def _steps(self) -> list[int]:
        return [int(key.split("/")[-2]) for key in self._store.keys(self._folder)]

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
