"""What a run is told and what it knows: public inputs and released values, never data."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ppsyn.domain import Clique, Domain
from ppsyn.model.graphical_model import GraphicalModel
from ppsyn.model.inference_plan import Measurement
from ppsyn.privacy.requests import Candidate, MeasureRequest
from ppsyn.schemas.config import AlgorithmConfig


@dataclass(frozen=True, slots=True)
class Plan:
    """The public inputs of a run.

    Attributes:
        rho: The whole budget.
        sensitivity: Rows that one unit of privacy may own.
        turns: What may be measured, for one round after another and then again.
    """

    domain: Domain
    rho: Fraction
    sensitivity: int
    config: AlgorithmConfig
    workload: tuple[Clique, ...]
    turns: tuple[tuple[Clique, ...], ...]


@dataclass(frozen=True, slots=True)
class Round:
    """What a round did: released values only.

    Attributes:
        sigma: The standard deviation of the noise on what was learned about each group's count.
        surprise: L1 distance of the answer from what the model expected.
        noise: Expected L1 norm of the noise in the answer.
        moved: L1 distance, over the same groups, of the model after the round from the one before.
    """

    clique: Clique
    groups: int
    sigma: float
    surprise: float
    noise: float
    moved: float


@dataclass(frozen=True, slots=True)
class State:
    """Everything the loop knows.

    Attributes:
        spent: What the requests so far have cost, lost answers included.
        one_way: Marginals of single attributes still to be measured in this stage.
        planned_rho: What a round was planned to cost; nothing if the method has no rounds.
        round_rho: What the next round may cost.
        measurements: The answers as they were drawn, with what they answer.
        evidence: What the fit is told of them; a method may shrink, merge or restate them.
        chosen: The selected candidate that is to be measured next.
        is_fine: Whether the first stage of the one-way marginals is over.
    """

    plan: Plan
    spent: Fraction
    one_way: tuple[MeasureRequest, ...]
    planned_rho: Fraction
    round_rho: Fraction
    model: GraphicalModel
    measurements: tuple[Measurement, ...] = ()
    evidence: tuple[Measurement, ...] = ()
    rounds: tuple[Round, ...] = ()
    chosen: Candidate | None = None
    is_fine: bool = False

    @property
    def left(self) -> Fraction:
        """What may still be spent."""
        return self.plan.rho - self.spent

    @property
    def stage(self) -> Literal["one-way", "select", "measure", "done"]:
        """What comes next."""
        if self.one_way:
            return "one-way"
        if self.chosen is not None:
            return "measure"
        if self.left == 0:
            return "done"
        # Lost selections can leave less than a round is worth; it is measured without selecting.
        return "measure" if 2 * self.left < self.planned_rho or self.planned_rho == 0 else "select"
