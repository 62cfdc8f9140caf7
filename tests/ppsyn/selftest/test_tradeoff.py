"""What the guarantee allows an adversary, and what counts of right guesses show."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from ppsyn.privacy.budget import log_delta
from ppsyn.selftest.attacks import THRESHOLDS, attack, corner
from ppsyn.selftest.tradeoff import (
    at_least,
    at_most,
    discrete_mu,
    gaussian_misses,
    gaussian_mu,
    rate_at_most,
    selection_mu,
    zcdp_misses,
    zcdp_mu,
)

RATES = st.floats(1e-4, 1 - 1e-4)
RHOS = st.floats(1e-3, 4)


def gaussian(mu: float, runs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood ratios of a Gaussian mechanism that claims a mu of one."""
    rng = np.random.Generator(np.random.PCG64(seed))
    noise = rng.standard_normal((2, runs)) / mu
    return noise[0] - 0.5, noise[1] + 0.5


def blamed(sides: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether a suite of one case would find it above a mu of one."""
    return max(attack(*sides, 0.9999).surely, *(corner(*sides, place, 0.9999) for place in THRESHOLDS)) > 1


@given(st.integers(0, 400), st.integers(1, 400), st.floats(0.8, 0.9999))
def test_bounds_are_those_of_clopper_and_pearson(right: int, wrong: int, confidence: float) -> None:
    guesses = right + wrong
    share = float(special.ndtr(at_least(right, guesses, confidence) / 2))
    if share > 0.5:  # mu is never told to be negative
        assert math.isclose(stats.binom.sf(right - 1, guesses, share), 1 - confidence, rel_tol=1e-6)
    limit = rate_at_most(right, guesses, confidence)
    assert math.isclose(stats.binom.cdf(right, guesses, limit), 1 - confidence, rel_tol=1e-6)
    assert at_least(right, guesses, confidence) <= at_most(right, guesses, confidence)


def test_of_a_gaussian_mechanism_nearly_all_is_seen_and_never_more() -> None:
    guesses = 40_000
    right = round(float(special.ndtr(0.5)) * guesses)
    assert 0.97 < at_least(right, guesses, 0.95) < 1


def test_bounds_are_wrong_as_seldom_as_they_say() -> None:
    rng = np.random.Generator(np.random.PCG64(7))
    right = rng.binomial(2000, special.ndtr(0.5), 2000)
    wrong = sum(at_least(int(count), 2000, 0.95) > 1 for count in right)
    assert stats.binom.sf(wrong - 1, 2000, 0.05) > 1e-6


def test_a_mechanism_that_keeps_its_claim_is_not_blamed() -> None:
    assert not blamed(gaussian(1.0, 4000))


def test_a_mechanism_with_a_third_more_than_its_claim_is_found() -> None:
    assert blamed(gaussian(1.3, 4000))


def test_a_leak_in_one_release_of_twelve_is_found_at_the_edge_of_the_curve() -> None:
    without, present = gaussian(1.0, 4000)
    present[::12] = 10.0
    assert attack(without, present, 0.9999).surely < 1
    assert blamed((without, present))


@settings(deadline=None, max_examples=30)
@given(RATES, RHOS)
def test_zcdp_allows_what_a_gaussian_of_its_budget_does_and_no_more_than_epsilon_and_delta(
    rate: float, rho: float
) -> None:
    least = zcdp_misses(rate, rho)
    assert least <= float(gaussian_misses(np.array(rate), math.sqrt(2 * rho))) + 1e-9
    for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0):
        delta = math.exp(log_delta(rho, epsilon))
        assert 1 - least <= math.exp(epsilon) * rate + delta + 1e-6
        assert rate + math.exp(epsilon) * least >= 1 - delta - 1e-6 * math.exp(epsilon)


@settings(deadline=None, max_examples=8)
@given(st.floats(0.05, 3))
def test_zcdp_allows_randomised_response_of_its_budget_exactly(epsilon: float) -> None:
    rho = epsilon * math.tanh(epsilon / 2)  # the divergence of order one; a rho holds the others (Bun and Steinke)
    wrong = 1 / (1 + math.exp(epsilon))
    assert math.isclose(zcdp_misses(wrong, rho), wrong, rel_tol=1e-3)
    assert math.isclose(zcdp_mu(rho), gaussian_mu(wrong, wrong), rel_tol=1e-3)


@given(st.floats(0.9, 20), st.integers(1, 3), st.integers(-60, 60))
def test_two_discrete_gaussians_stay_above_their_curve(sigma: float, shift: int, threshold: int) -> None:
    values = np.arange(-400, 400)
    weights = np.exp(-0.5 * (values / sigma) ** 2)
    weights /= weights.sum()
    alpha = weights[values >= threshold].sum()
    beta = weights[values < threshold - shift].sum()
    if 1e-4 < alpha < 1 - 1e-4 and beta > 0:
        assert beta >= float(gaussian_misses(np.array(alpha), discrete_mu(sigma, shift))) - 1e-9
    assert discrete_mu(sigma, shift) < shift / sigma * (1 + 1.2 / (24 * sigma**2))


@given(st.floats(1e-4, 2), st.floats(-15, 15))
def test_a_selection_stays_above_its_curve_and_costs_at_most_pi_rho(rho: float, odds: float) -> None:
    epsilon = math.sqrt(8 * rho)
    taken, missed = float(special.expit(odds)), float(special.expit(-odds - epsilon))
    assert missed >= float(gaussian_misses(np.array(taken), selection_mu(rho))) - 1e-9
    assert selection_mu(rho) ** 2 <= math.pi * rho + 1e-12


@pytest.mark.parametrize("point", [(1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (0.9, 0.4)])
def test_a_guess_that_is_no_better_than_none_shows_nothing(point: tuple[float, float]) -> None:
    assert gaussian_mu(*point) == 0
