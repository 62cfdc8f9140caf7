"""The likelihood ratio is that of the real curator's answers."""

from fractions import Fraction

import numpy as np
import pytest

from ppsyn.data.marginals import TableCounter
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount
from ppsyn.privacy.partition import Partition, equal_width, finest
from ppsyn.privacy.requests import GRID, Candidate, CompareRequest, Figure, MeasureRequest, SelectRequest
from ppsyn.selftest.cases import Case
from ppsyn.selftest.library import codes
from ppsyn.selftest.likelihood import Question

CASE = Case("a", "a", max_rows=1)
RHO = Fraction(1, 4)
RUNS = 600


def candidates() -> tuple[Candidate, ...]:
    """All about as good; the canary moves the scores of some up and of others down."""
    counter = TableCounter(codes(CASE, has_canary=False))
    found: list[Candidate] = []
    for number, clique in enumerate((("x",), ("x", "y"), ("y", "z"), ("x", "y", "z"))):
        expected = counter.counts(clique) * GRID
        expected[-1 if number % 2 else 0] += GRID
        found.append(Candidate(clique, finest(expected.size), expected, penalty=0))
    return tuple(found)


QUESTIONS = {
    "counts": MeasureRequest(("x", "z"), finest(9), RHO),
    "contrasts": MeasureRequest(("x", "z"), Partition(np.arange(9, dtype=np.int32), 9, (3, 3)), RHO),
    "groups": MeasureRequest(("y",), equal_width(3, 2), RHO),
    "selection": SelectRequest(candidates(), RHO),
    "comparison": CompareRequest(candidates(), (Figure("mean", (0, 1, 2)), Figure("worst", (1, 3))), RHO),
}


def ratios(request: Question, *, has_canary: bool) -> np.ndarray:
    """Likelihood ratios of answers that the real curator gave."""
    counter, adversary = TableCounter(codes(CASE, has_canary)), CASE.adversary
    answers = (TableCurator(counter, MemoryAccount(RHO)).answer(request) for _ in range(RUNS))
    return np.exp([adversary.log_ratio([(request, answer)]) for answer in answers])


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_is_the_ratio_of_the_laws_of_real_answers(name: str) -> None:
    """Under the one law the mean of the ratio is one, under the other that of its inverse; of no other number."""
    without, present = (ratios(QUESTIONS[name], has_canary=side) for side in (False, True))
    for found in (without, 1 / present):
        assert abs(found.mean() - 1) < 5 * found.std() / RUNS**0.5
    assert without.std() > 0.1
    assert np.log(present).mean() > np.log(without).mean()


def test_less_noise_than_is_charged_shows_as_more_than_is_allowed() -> None:
    request = QUESTIONS["counts"]
    assert isinstance(request, MeasureRequest)
    dear = MeasureRequest(request.clique, request.partition, 9 * RHO)
    counter, adversary = TableCounter(codes(CASE, has_canary=True)), CASE.adversary
    answers = [TableCurator(counter, MemoryAccount(9 * RHO)).answer(dear) for _ in range(300)]
    right = np.mean([adversary.log_ratio([(request, answer)]) > 0 for answer in answers])
    assert adversary.allowed_mu([(request, answers[0])]) < 0.8
    assert right > 0.8  # a Gaussian of mu 0.8 lets 0.66 be right, and three times the signal 0.87
