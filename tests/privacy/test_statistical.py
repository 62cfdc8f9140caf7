"""The instruments are shown to reject what they should, in both directions, before anything is measured with them."""

import numpy as np
import pytest
from scipy import stats
from support.statistical import (
    ALPHA,
    CHOICE_DRAWS,
    FEW_CHOICES,
    MANY_CHOICES,
    NIGHTLY_CHOICES,
    NIGHTLY_DRAWS,
    RIVALS,
    SCALE_DRAWS,
    discrete_gaussian,
    exponential_probabilities,
    frequencies_p_value,
    law_p_value,
    lead_p_value,
    mean_p_value,
    scale_p_value,
    tail_p_value,
    tipping_gap,
)


def _rng() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(20_240_601))


@pytest.mark.parametrize(("true_scale", "is_accepted"), [(10.0, True), (9.7, False), (10.3, False)])
def test_the_scale_test_rejects_a_scale_three_percent_off_either_way(true_scale: float, is_accepted: bool) -> None:
    draws = _rng().normal(0, true_scale, SCALE_DRAWS)
    assert (scale_p_value(draws, claimed=10.0) > ALPHA) == is_accepted


@pytest.mark.parametrize(("true_scale", "is_accepted"), [(10.0, True), (9.9, False), (10.1, False)])
def test_a_million_draws_reject_a_scale_one_percent_off_either_way(true_scale: float, is_accepted: bool) -> None:
    draws = _rng().normal(0, true_scale, NIGHTLY_DRAWS)
    assert (scale_p_value(draws, claimed=10.0) > ALPHA) == is_accepted


def discrete_draws(scale: float, count: int) -> np.ndarray:
    values, law = discrete_gaussian(scale)
    return _rng().choice(values, count, p=law)


def test_the_law_of_a_discrete_gaussian_has_its_variance_and_no_more_than_its_tail() -> None:
    values, law = discrete_gaussian(5.0)
    assert law.sum() == pytest.approx(1)
    assert (law * values**2).sum() == pytest.approx(25, rel=1e-9)
    assert law[np.abs(values) > 22].sum() == pytest.approx(2 * stats.norm.sf(22.5 / 5), rel=0.05)


@pytest.mark.parametrize("scale", [0.3, 5.0, 40.0])
def test_the_test_of_the_law_accepts_it_and_rejects_a_rounded_laplace_and_a_clipped_tail(scale: float) -> None:
    draws = discrete_draws(scale, SCALE_DRAWS)
    laplace = np.rint(_rng().laplace(0, scale / np.sqrt(2), SCALE_DRAWS))
    assert law_p_value(draws, scale) > ALPHA
    assert law_p_value(laplace, scale) <= ALPHA
    assert law_p_value(np.clip(draws, -int(2 * scale), int(2 * scale)), scale) <= ALPHA


@pytest.mark.parametrize(("scale", "beyond", "count"), [(5.0, 3.0, SCALE_DRAWS), (1 / 4.6, 4.5, NIGHTLY_DRAWS)])
def test_the_test_of_the_tail_accepts_it_and_rejects_one_that_is_clipped_or_three_times_as_heavy(
    scale: float, beyond: float, count: int
) -> None:
    draws = discrete_draws(scale, count)
    assert tail_p_value(draws, scale, beyond) > ALPHA
    assert tail_p_value(np.clip(draws, -int(beyond * scale), int(beyond * scale)), scale, beyond) <= ALPHA
    assert tail_p_value(np.where(np.abs(draws) > beyond * scale, 0, draws), scale, beyond) <= ALPHA
    heavy = np.concatenate([draws, *[draws[np.abs(draws) > beyond * scale]] * 2])
    assert tail_p_value(heavy, scale, beyond) <= ALPHA


@pytest.mark.parametrize(("true_mean", "is_accepted"), [(0.0, True), (-0.5, False), (0.5, False)])
def test_the_mean_test_rejects_a_shift_of_a_twentieth_of_the_scale_either_way(
    true_mean: float, is_accepted: bool
) -> None:
    draws = _rng().normal(true_mean, 10, SCALE_DRAWS)
    assert (mean_p_value(draws, scale=10.0) > ALPHA) == is_accepted


@pytest.mark.parametrize(
    ("draws", "true_scale", "is_accepted"),
    [
        (CHOICE_DRAWS, 1.0, True),
        (CHOICE_DRAWS, 0.85, False),
        (CHOICE_DRAWS, 1.15, False),
        (MANY_CHOICES, 1.0, True),
        (MANY_CHOICES, 0.95, False),
        (MANY_CHOICES, 1.05, False),
        (NIGHTLY_CHOICES, 1.0, True),
        (NIGHTLY_CHOICES, 0.99, False),
        (NIGHTLY_CHOICES, 1.01, False),
        (FEW_CHOICES, 1.0, True),
        (FEW_CHOICES, 0.5, False),
        (FEW_CHOICES, 1.5, False),
    ],
)
def test_the_tipping_gap_tells_scales_apart_either_way(draws: int, true_scale: float, is_accepted: bool) -> None:
    scores = [tipping_gap(1024), *[0] * RIVALS]
    chosen = _rng().choice(1 + RIVALS, draws, p=exponential_probabilities(scores, 1024 * true_scale))
    assert (lead_p_value(chosen.tolist(), 1024) > ALPHA) == is_accepted


@pytest.mark.parametrize(("true_scale", "is_accepted"), [(1.0, True), (0.6, False), (1.8, False)])
def test_the_frequency_test_rejects_the_wrong_softmax_either_way(true_scale: float, is_accepted: bool) -> None:
    scores = [0.0, 1.0, 2.0]
    chosen = _rng().choice(3, CHOICE_DRAWS, p=exponential_probabilities(scores, true_scale))
    claimed = exponential_probabilities(scores, 1.0)
    assert (frequencies_p_value(np.bincount(chosen, minlength=3), claimed) > ALPHA) == is_accepted


def test_the_probabilities_of_the_exponential_mechanism_are_as_written() -> None:
    assert exponential_probabilities([0, 3], 2.0) == pytest.approx([1 / (1 + np.exp(1.5)), 1 / (1 + np.exp(-1.5))])
