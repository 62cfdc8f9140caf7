"""Claim C7: rho and (epsilon, delta) are converted by a valid bound, rounded in the safe direction."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy.releases import SCHEMA, SETTINGS, private_frame

from ppsyn import synthesize
from ppsyn.errors import ConfigError
from ppsyn.privacy.accountant import accounted_epsilon
from ppsyn.privacy.budget import epsilon_from, log_delta, rho_from, rho_of
from ppsyn.privacy.ledger import Ledger, Spend
from ppsyn.schemas.config import Budget

EPSILONS = [0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 10.0]
DELTAS = [1e-12, 1e-9, 1e-6, 1e-3]

epsilons = st.floats(-6, 1.7).map(lambda power: max(1e-6, 10.0**power))
deltas = st.floats(-30, -1).map(lambda power: 10.0**power)


def exact_log_delta(rho: Fraction, epsilon: float) -> mpmath.mpf:
    """The bound at its best order, with fifty digits."""
    with mpmath.workdps(50):
        cost, target = mpmath.mpf(rho.numerator) / rho.denominator, mpmath.mpf(epsilon)

        def slope(x: mpmath.mpf) -> mpmath.mpf:
            return (2 * x + 1) * cost - target - mpmath.log1p(1 / x)

        low, high = mpmath.mpf(0), mpmath.mpf(1)
        while slope(high) < 0:
            low, high = high, 2 * high
        for _ in range(150):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        return high * ((1 + high) * cost - target) - (1 + high) * mpmath.log1p(1 / high) - mpmath.log(high)


def spent_at_once(rho: Fraction, parts: int = 1) -> Ledger:
    return Ledger(rho, tuple(Spend("measure", rho / parts, "") for _ in range(parts)))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_c7_dp_accounting_certifies_the_budget_within_a_thousandth(epsilon: float, delta: float) -> None:
    certified = accounted_epsilon(spent_at_once(rho_from(epsilon, delta), parts=7), delta)
    assert epsilon * (1 - 1e-6) <= certified <= epsilon * 1.001


@given(epsilons, deltas)
@settings(deadline=None, max_examples=40)
def test_c7_the_budget_keeps_the_bound_when_computed_with_fifty_digits(epsilon: float, delta: float) -> None:
    assert exact_log_delta(rho_from(epsilon, delta), epsilon) <= mpmath.log(delta)


@pytest.mark.parametrize("delta", DELTAS)
def test_c7_a_configured_budget_is_bought_at_its_own_epsilon_and_delta(delta: float) -> None:
    assert rho_of(Budget(epsilon=0.7, delta=delta)) == rho_from(0.7, delta)
    assert rho_of(Budget(rho=0.7)) <= Fraction(0.7)


@given(st.floats(1e-5, 30), deltas)
@settings(deadline=None, max_examples=40)
def test_c7_the_epsilon_of_a_budget_keeps_the_bound_when_computed_with_fifty_digits(rho: float, delta: float) -> None:
    assert exact_log_delta(Fraction(rho), epsilon_from(Fraction(rho), delta)) <= mpmath.log(delta)


@given(epsilons, deltas)
@settings(deadline=None, max_examples=40)
def test_c7_there_and_back_gives_no_larger_epsilon_and_hardly_a_smaller_one(epsilon: float, delta: float) -> None:
    assert epsilon * (1 - 1e-6) - 1e-10 <= epsilon_from(rho_from(epsilon, delta), delta) <= epsilon * (1 + 1e-6)


@given(epsilons, deltas)
@settings(deadline=None, max_examples=40)
def test_c7_the_bound_beats_the_one_that_is_easy_to_write_down(epsilon: float, delta: float) -> None:
    # Bun and Steinke 2016: epsilon = rho + 2 sqrt(rho log(1 / delta)).
    easy = (math.sqrt(epsilon - math.log(delta)) - math.sqrt(-math.log(delta))) ** 2
    assert rho_from(epsilon, delta) > easy * (1 - 1e-6)


def test_c7_more_epsilon_and_more_delta_buy_more() -> None:
    for delta in DELTAS:
        assert all(rho_from(a, delta) < rho_from(b, delta) for a, b in pairwise(EPSILONS))
    for epsilon in EPSILONS:
        assert all(rho_from(epsilon, a) < rho_from(epsilon, b) for a, b in pairwise(DELTAS))


def test_c7_a_bound_that_is_too_generous_is_caught() -> None:
    generous = rho_from(1.0, 1e-9) * Fraction(1_000_001, 1_000_000)
    assert exact_log_delta(generous, 1.0) > mpmath.log(1e-9)
    assert epsilon_from(generous, 1e-9) > 1.0


def test_c7_spends_are_composed_one_at_a_time() -> None:
    whole, parts = (accounted_epsilon(spent_at_once(Fraction(1, 10), count), 1e-9) for count in (1, 50))
    assert parts == pytest.approx(whole, rel=1e-9)


def test_c7_a_release_costs_the_epsilon_it_was_given() -> None:
    synthesis = synthesize(private_frame(), SCHEMA, epsilon=0.7, delta=1e-6, **SETTINGS)
    assert 0.7 * (1 - 1e-6) <= synthesis.epsilon() <= 0.7 * (1 + 1e-6)
    assert accounted_epsilon(synthesis.ledger, 1e-6) == pytest.approx(0.7, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_c7_an_epsilon_that_means_nothing_is_refused(epsilon: float) -> None:
    with pytest.raises(ConfigError, match="epsilon"):
        rho_from(epsilon, 1e-9)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-9, 2.0, math.nan])
def test_c7_a_delta_that_means_nothing_is_refused(delta: float) -> None:
    with pytest.raises(ConfigError, match="delta"):
        rho_from(1.0, delta)
    with pytest.raises(ConfigError, match="delta"):
        epsilon_from(Fraction(1), delta)


def test_c7_a_pair_too_small_to_allow_a_budget_is_refused() -> None:
    with pytest.raises(ConfigError, match="too small"):
        rho_from(1e-20, 1e-20)


def test_c7_no_bound_promises_more_than_certainty() -> None:
    assert log_delta(100.0, 0.1) <= 0


def test_c7_an_epsilon_too_small_to_convert_is_refused() -> None:
    with pytest.raises(ConfigError, match="small"):
        rho_from(1e-7, 1e-6)
