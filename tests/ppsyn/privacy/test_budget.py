from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppsyn.errors import InvariantError
from ppsyn.privacy.budget import divide, epsilon_from, log_delta, rho_from, round_down


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [(0.1, 1e-9, 0.000177138), (1.0, 1e-9, 0.0149731), (1.0, 1e-3, 0.0593902), (10.0, 1e-9, 1.09079)],
)
def test_budgets_are_those_that_sixty_digits_give(epsilon: float, delta: float, rho: float) -> None:
    assert float(rho_from(epsilon, delta)) == pytest.approx(rho, rel=1e-5)


def test_a_budget_is_on_the_grid_of_shares() -> None:
    assert (rho_from(1.0, 1e-9) * 2**96).denominator == 1


def test_delta_falls_as_epsilon_grows_and_rises_with_rho() -> None:
    assert log_delta(0.1, 2.0) < log_delta(0.1, 1.0) < log_delta(0.2, 1.0)


def test_epsilon_can_be_large() -> None:
    assert epsilon_from(Fraction(10**6), 1e-9) == pytest.approx(1_009_000, rel=1e-3)


# Exact division

budgets = st.fractions(min_value=Fraction(1, 10**9), max_value=10**6)
weights = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=50)


@given(budgets, weights)
@settings(deadline=None)
def test_parts_never_sum_to_more_than_the_whole_and_lose_less_than_a_grain_each(
    rho: Fraction, shares: list[float]
) -> None:
    parts = divide(rho, shares)
    assert rho - Fraction(len(parts), 2**96) < sum(parts) <= rho


@given(budgets, weights)
@settings(deadline=None)
def test_parts_stand_in_the_proportion_of_their_weights(rho: Fraction, shares: list[float]) -> None:
    whole = sum(map(Fraction, shares))
    for part, weight in zip(divide(rho, shares), shares, strict=True):
        assert 0 <= rho * Fraction(weight) / whole - part < Fraction(1, 2**96)


@given(st.fractions())
@settings(deadline=None)
def test_rounding_down_loses_less_than_a_grain_and_keeps_what_is_on_the_grid(rho: Fraction) -> None:
    assert 0 <= rho - round_down(rho) < Fraction(1, 2**96)
    assert round_down(round_down(rho)) == round_down(rho)


@pytest.mark.parametrize("shares", [[], [0.0], [1.0, -1.0]])
def test_weights_that_are_missing_or_not_positive_are_refused(shares: list[float]) -> None:
    with pytest.raises(InvariantError):
        divide(Fraction(1), shares)
