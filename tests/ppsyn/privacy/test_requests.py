from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppsyn.arrays import Ints
from ppsyn.errors import InvariantError
from ppsyn.privacy.partition import equal_width, finest
from ppsyn.privacy.requests import GRID, Candidate, MeasureRequest, SelectRequest, noise_scale, to_grid

RHO = Fraction(1, 8)


@given(st.fractions(Fraction(1, 2**60), 10**6), st.integers(1, 10**6))
@settings(deadline=None)
def test_the_noise_scale_is_rounded_up_and_by_next_to_nothing(rho: Fraction, sensitivity: int) -> None:
    scale = Fraction(noise_scale(rho, sensitivity))
    assert sensitivity**2 <= 2 * rho * scale**2 <= sensitivity**2 * (1 + Fraction(1, 10**11))


def test_the_noise_scale_is_one_over_the_root_of_twice_rho() -> None:
    assert noise_scale(Fraction(1, 50), 3) == pytest.approx(15)


def test_a_budget_too_small_for_any_scale_is_refused() -> None:
    with pytest.raises((InvariantError, ArithmeticError)):
        noise_scale(Fraction(1, 10**700), 1)


def test_expected_rows_become_whole_units_of_the_grid() -> None:
    assert to_grid(np.array([0.0, 1.0, 2.5, -1.0])).tolist() == [0, GRID, 2 * GRID + GRID // 2, -GRID]


def test_the_same_question_has_the_same_fingerprint() -> None:
    assert MeasureRequest(("a",), finest(3), RHO).digest() == MeasureRequest(("a",), finest(3), RHO).digest()


@pytest.mark.parametrize(
    "other",
    [
        MeasureRequest(("b",), finest(3), RHO),
        MeasureRequest(("a",), finest(4), RHO),
        MeasureRequest(("a",), equal_width(3, 2), RHO),
        MeasureRequest(("a",), finest(3), RHO / 2),
    ],
    ids=["clique", "cells", "partition", "rho"],
)
def test_another_measurement_has_another_fingerprint(other: MeasureRequest) -> None:
    assert MeasureRequest(("a",), finest(3), RHO).digest() != other.digest()


def select(*, clique: str = "a", expected: Ints | None = None, penalty: int = 5, rho: Fraction = RHO) -> SelectRequest:
    counts = np.zeros(3, np.int64) if expected is None else expected
    return SelectRequest((Candidate((clique,), finest(3), counts, penalty),), rho)


@pytest.mark.parametrize(
    "other",
    [
        select(clique="b"),
        select(expected=np.array([0, 0, 1])),
        select(penalty=6),
        select(rho=RHO / 2),
        SelectRequest(select().candidates * 2, RHO),
    ],
    ids=["clique", "expected", "penalty", "rho", "candidates"],
)
def test_another_selection_has_another_fingerprint(other: SelectRequest) -> None:
    assert select().digest() == select().digest() != other.digest()
