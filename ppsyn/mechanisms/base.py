"""The interface of a mechanism: its plan, its state and its decisions.

The loop does the rest: the order of requests, and the budget to its last fraction.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal

from ppsyn.domain import Clique, Domain
from ppsyn.mechanisms.past import Past
from ppsyn.model.graphical_model import GraphicalModel
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.requests import Candidate, Measured, MeasureRequest
from ppsyn.schemas.config import AlgorithmConfig

NOISE_L1 = math.sqrt(2 / math.pi)
"""The expected magnitude of a standard Gaussian."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The public inputs of a run.

    Attributes:
        rho: The whole budget.
        sensitivity: Rows that one unit of privacy may own.
        config: The algorithm settings of the release file.
        mechanism: The mechanism that the settings name, with its constants.
        turns: The marginals that each round considers; the rounds take turns in this order, again and again.
        past: The answers of earlier releases, merged and aged: released values.
    """

    domain: Domain
    rho: Fraction
    sensitivity: int
    config: AlgorithmConfig
    mechanism: "Mechanism"
    workload: tuple[Clique, ...]
    turns: tuple[tuple[Clique, ...], ...]
    past: Past | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """The outcome of a round: released values only.

    Attributes:
        sigma: The standard deviation of the noise in what the round learned about each group's count.
        distance: L1 distance of the answer from what the model expected.
        noise: Expected L1 norm of the noise in the answer.
        moved: L1 distance, over the same groups, between the models before and after the round.
    """

    clique: Clique
    groups: int
    sigma: float
    distance: float
    noise: float
    moved: float


@dataclass(frozen=True, slots=True)
class State:
    """Everything the loop knows.

    Attributes:
        spent: The cost of all requests so far, lost answers included.
        one_way: One-way marginals still to be measured in this stage.
        planned_rho: The planned cost of a round; zero if the mechanism has no rounds.
        round_rho: The cost of the next round.
        measurements: All answers as they were drawn.
        told: The part of the evidence that comes from these; a mechanism may merge or restate the answers.
        learned: The beliefs of the past that the fit uses, each with whether the model has it off its tree.
        evidence: The measurements that the fit uses: those beliefs, as they stand after these answers, and `told`.
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
    told: tuple[Measurement, ...] = ()
    learned: Mapping[int, bool] = field(default_factory=dict[int, bool])
    evidence: tuple[Measurement, ...] = ()
    rounds: tuple[Round, ...] = ()
    chosen: Candidate | None = None
    is_fine: bool = False

    @property
    def left(self) -> Fraction:
        """The budget left."""
        return self.plan.rho - self.spent

    @property
    def stage(self) -> Literal["one-way", "select", "measure", "done"]:
        """The next stage of the loop."""
        if self.one_way:
            return "one-way"
        if self.chosen is not None:
            return "measure"
        if self.left == 0:
            return "done"
        # Lost selections can leave less than a round is worth; it is measured without selecting.
        return "measure" if 2 * self.left < self.planned_rho or self.planned_rho == 0 else "select"


class Mechanism(ABC):
    """A way to spend a budget: first measurements, then rounds that select and measure.

    A mechanism sees public inputs and released values only. Whatever it asks, the curator
    charges and answers it in the same way, so a mechanism can be poor but not unsound.
    """

    fits_every_round: ClassVar[bool] = True
    """Whether the model that scores the next candidates has learned from the last answer."""

    @property
    def refines_rows(self) -> bool:
        """Whether rows swap values until the workload fits the model better."""
        return False

    @abstractmethod
    def initial_requests(self, plan: Plan) -> tuple[MeasureRequest, ...]:
        """The requests before any round; may be none."""

    def followup_requests(self, state: State) -> tuple[MeasureRequest, ...]:
        """The requests that follow once the model is fitted to the first answers."""
        return ()

    def before_rounds(self, state: State) -> State:
        """The state in which rounds begin, once all single attributes are measured."""
        return state

    @abstractmethod
    def round_rho(self, plan: Plan) -> Fraction:
        """The planned cost of a round; zero if there are no rounds."""

    @abstractmethod
    def select_share(self, plan: Plan) -> Fraction:
        """The fraction of a round's budget for selection; the rest measures."""

    @abstractmethod
    def candidates(self, state: State, rho: Fraction) -> tuple[Candidate, ...]:
        """The candidates of this round, which measures the selected one for rho. Never empty."""

    def estimate(self, state: State, request: MeasureRequest, answer: Measured) -> Measurement:
        """The measurement that the fit uses for an answer."""
        return Measurement(request.clique, request.partition, answer.noisy_counts, answer.sigma)

    def should_anneal(self, plan: Plan, done: Round) -> bool:
        """Whether to halve the noise of the following rounds."""
        return False
