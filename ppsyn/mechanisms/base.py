"""What a method decides. All else, the order of requests and the budget to its last fraction, is the loop's."""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

from ppsyn.mechanisms.state import Plan, Round, State
from ppsyn.model.inference_plan import Measurement
from ppsyn.privacy.requests import Candidate, Measured, MeasureRequest


class Method(ABC):
    """A way to spend a budget: first measurements, then rounds that select and measure.

    A method sees public inputs and released values only. Whatever it asks, the curator
    charges and answers it in the same way, so a method can be poor but not unsound.
    """

    fits_every_round: ClassVar[bool] = True
    """Whether the model that scores the next candidates has learned from the last answer."""

    @abstractmethod
    def first(self, plan: Plan) -> tuple[MeasureRequest, ...]:
        """What is measured before any round; may be nothing."""

    def second(self, state: State) -> tuple[MeasureRequest, ...]:
        """What is measured next, once the model knows the first answers."""
        return ()

    def settle(self, state: State) -> State:
        """What the rounds start from, once all single attributes are measured."""
        return state

    @abstractmethod
    def round_rho(self, plan: Plan) -> Fraction:
        """What a round is planned to cost; nothing, if there are to be no rounds."""

    @abstractmethod
    def select_share(self, plan: Plan) -> Fraction:
        """The share of a round's budget that selects; the rest measures."""

    @abstractmethod
    def candidates(self, state: State, rho: Fraction) -> tuple[Candidate, ...]:
        """What may be selected in this round, if it is then measured for rho. Never empty."""

    def estimate(self, state: State, request: MeasureRequest, answer: Measured) -> Measurement:
        """What the fit is told of an answer."""
        return Measurement(request.clique, request.partition, answer.noisy_counts, answer.sigma)

    def is_annealed(self, plan: Plan, done: Round) -> bool:
        """Whether the noise halves for the rounds to come."""
        return False
