from fractions import Fraction

import pytest

from ppsyn.privacy.budget import epsilon_from, log_delta, rho_from


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
