from fractions import Fraction

import numpy as np
import pytest
from privacy.instruments import guard
from privacy.neighbours import encoded

from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import ConfigError, InvariantError
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount, Spend
from ppsyn.privacy.partition import Partition, finest
from ppsyn.privacy.requests import GRID, Candidate, Measured, MeasureRequest, Selected, SelectRequest

SURE = Fraction(10**9)
"""A budget that leaves next to no noise: a scale below 1/40,000."""

DOMAIN = Domain((Attribute("a", 2), Attribute("b", 3)))
TABLE = encoded(DOMAIN, [(0, 0), (0, 2), (1, 2), (1, 2)])


def test_a_measurement_is_of_the_clique_and_partition_that_were_asked() -> None:
    partition = Partition(np.array([0, 0, 1, 1, 1, 0], np.int32), 2)
    answer = guard(TABLE, total=SURE).answer(MeasureRequest(("a", "b"), partition, SURE))
    assert isinstance(answer, Measured)
    assert answer.noisy_counts.tolist() == [3, 1]
    assert answer.sigma == pytest.approx((2 * 10**9) ** -0.5)


def test_the_candidate_that_the_model_misses_most_is_selected() -> None:
    right = Candidate(("a",), finest(2), np.array([2, 2]) * GRID, 0)
    wrong = Candidate(("b",), finest(3), np.array([4, 0, 0]) * GRID, 0)
    answer = guard(TABLE, total=SURE).answer(SelectRequest((right, wrong, right), SURE))
    assert answer == Selected(1)


def test_a_penalty_weighs_against_a_candidate() -> None:
    right = Candidate(("a",), finest(2), np.array([2, 2]) * GRID, 0)
    dear = Candidate(("b",), finest(3), np.array([4, 0, 0]) * GRID, 7 * GRID)
    assert guard(TABLE, total=SURE).answer(SelectRequest((dear, right), SURE)) == Selected(1)


def test_the_account_sees_what_was_asked() -> None:
    account = MemoryAccount(Fraction(1))
    request = MeasureRequest(("b",), finest(3), Fraction(1, 3))
    TableCurator(TableCounter(TABLE), account).answer(request)
    assert account.ledger.spends == (Spend("measure", Fraction(1, 3), request.digest(), ("b",)),)


@pytest.mark.parametrize("max_rows", [0, -1])
def test_a_person_has_at_least_one_row(max_rows: int) -> None:
    with pytest.raises(ConfigError, match="max_rows"):
        guard(TABLE, max_rows)


def test_a_selection_among_nothing_is_refused_and_not_charged() -> None:
    account = MemoryAccount(Fraction(1))
    with pytest.raises(InvariantError):
        TableCurator(TableCounter(TABLE), account).answer(SelectRequest((), Fraction(1, 2)))
    assert account.ledger.spent == 0
