"""The exact likelihood ratio of a transcript, with and without the canary, under the law that is claimed.

The noise is taken to be what the charges say. Were it smaller, or were the wrong rows to count, the ratio would
lean further to the truth than the claim allows; a ratio that took the noise from the answers would not show it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import logsumexp

from ppsyn.arrays import Ints
from ppsyn.domain import Clique, Domain
from ppsyn.errors import InvariantError
from ppsyn.privacy.requests import (
    Answer,
    Candidate,
    CompareRequest,
    Curator,
    Lost,
    Measured,
    MeasureRequest,
    Request,
    Selected,
    SelectRequest,
    noise_scale,
)
from ppsyn.privacy.residuals import exact_residuals
from ppsyn.privacy.scores import aggregate, joint_sensitivity, score, sensitivity
from ppsyn.selftest.tradeoff import discrete_mu, selection_mu

Question: TypeAlias = Request | CompareRequest
Transcript: TypeAlias = Sequence[tuple[Question, Answer]]


class Tape:
    """A curator whose questions and answers are written down."""

    def __init__(self, curator: Curator) -> None:
        """Listen in on `curator`."""
        self._curator, self.transcript = curator, list[tuple[Question, Answer]]()

    def answer(self, request: Request) -> Answer:
        """What the curator answers."""
        answer = self._curator.answer(request)
        self.transcript.append((request, answer))
        return answer


@dataclass(frozen=True, slots=True, eq=False)
class Adversary:
    """Knows all rows but the canary, and the canary; does not know whether it is in.

    Attributes:
        without: Counts of the cells of all attributes together, in C order.
        present: The same with the canary.
        max_rows: Rows of one unit that count, as claimed.
    """

    domain: Domain
    without: Ints
    present: Ints
    max_rows: int

    def log_ratio(self, transcript: Transcript) -> float:
        """Logarithm of how much likelier the answers are with the canary than without it."""
        return math.fsum(self._of_one(request, answer) for request, answer in transcript)

    def allowed_mu(self, transcript: Transcript) -> float:
        """The least mu for which the answers' mechanisms together are known to be mu-Gaussian private.

        Squares add up (Dong, Roth and Su), and do so for budgets that depend on earlier answers (Smith and
        Thakurta, Fully adaptive composition for Gaussian differential privacy, 2022).
        """
        return math.sqrt(math.fsum(self._allowed_by(request) ** 2 for request, _ in transcript))

    def _of_one(self, request: Question, answer: Answer) -> float:
        match request, answer:
            case MeasureRequest(), Measured():
                scale = noise_scale(request.rho, self.max_rows * request.sensitivity)
                return _gaussian(answer.noisy_counts, *self._both(request), scale)
            case SelectRequest(), Selected():
                scale = noise_scale(request.rho, self.max_rows * sensitivity(request.candidates))
                before, after = (np.array(scores) / scale for scores in self._scores(request.candidates))
                chosen = answer.index
                return float(after[chosen] - logsumexp(after) - before[chosen] + logsumexp(before))
            case CompareRequest(), Measured():
                scores = self._scores(request.candidates)
                before, after = (np.array([aggregate(f, one) for f in request.figures], np.int64) for one in scores)
                move = joint_sensitivity(self.max_rows * sensitivity(request.candidates), len(request.figures))
                return _gaussian(answer.noisy_counts, before, after, noise_scale(request.rho, move))
            case _, Lost():
                return 0.0
            case _:
                raise InvariantError("An answer does not fit its request.")

    def _allowed_by(self, request: Question) -> float:
        if isinstance(request, SelectRequest):
            return selection_mu(float(request.rho))
        if isinstance(request, MeasureRequest) and not request.partition.axes:
            return discrete_mu(noise_scale(request.rho, self.max_rows), self.max_rows)
        return math.sqrt(2 * request.rho)  # thousands of units of noise: as good as continuous

    def _both(self, request: MeasureRequest) -> tuple[Ints, Ints]:
        partition = request.partition
        sums = [partition.sum_counts(counts) for counts in self._counts(request.clique)]
        before, after = [exact_residuals(one, partition.axes) for one in sums] if partition.axes else sums
        return before, after

    def _counts(self, clique: Clique) -> tuple[Ints, Ints]:
        """Both tables' counts of a marginal."""
        names, shape = self.domain.names, self.domain.shape(self.domain.names)
        others = tuple(place for place, name in enumerate(names) if name not in clique)
        before, after = (joint.reshape(shape).sum(axis=others).ravel() for joint in (self.without, self.present))
        return before, after

    def _scores(self, candidates: Sequence[Candidate]) -> tuple[list[int], list[int]]:
        counted = [self._counts(candidate.clique) for candidate in candidates]
        before, after = (
            [score(candidate, counts[side]) for candidate, counts in zip(candidates, counted, strict=True)]
            for side in (0, 1)
        )
        return before, after


def _gaussian(answer: Ints, before: Ints, after: Ints, scale: float) -> float:
    """Of independent discrete Gaussians; their normalisers are the same, for centres are whole numbers."""
    far, near = (answer - before).astype(np.float64), (answer - after).astype(np.float64)
    return float((far @ far - near @ near) / (2 * scale**2))
