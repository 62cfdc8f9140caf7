"""The instruments are shown to reject what they should, in both directions, before anything is measured with them."""

import numpy as np
import pytest

from statistical import (
    ALPHA,
    CHOICE_DRAWS,
    RIVALS,
    SCALE_DRAWS,
    exponential_probabilities,
    frequencies_p_value,
    mean_p_value,
    scale_p_value,
    tipping_gap,
)


def _rng() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(20_240_601))


@pytest.mark.parametrize(("true_scale", "is_accepted"), [(10.0, True), (9.5, False), (10.5, False)])
def test_the_scale_test_rejects_a_scale_five_percent_off_either_way(true_scale: float, is_accepted: bool) -> None:
    draws = _rng().normal(0, true_scale, SCALE_DRAWS)
    assert (scale_p_value(draws, claimed=10.0) > ALPHA) == is_accepted


@pytest.mark.parametrize(("true_mean", "is_accepted"), [(0.0, True), (-0.8, False), (0.8, False)])
def test_the_mean_test_rejects_a_shift_of_a_twelfth_of_the_scale_either_way(
    true_mean: float, is_accepted: bool
) -> None:
    draws = _rng().normal(true_mean, 10, SCALE_DRAWS)
    assert (mean_p_value(draws, scale=10.0) > ALPHA) == is_accepted


@pytest.mark.parametrize(("true_scale", "is_accepted"), [(1.0, True), (0.9, False), (1.1, False)])
def test_the_tipping_gap_tells_scales_ten_percent_apart_either_way(true_scale: float, is_accepted: bool) -> None:
    scores = [tipping_gap(1024), *[0] * RIVALS]
    chosen = _rng().choice(1 + RIVALS, CHOICE_DRAWS, p=exponential_probabilities(scores, 1024 * true_scale))
    leads = int((chosen == 0).sum())
    claimed = exponential_probabilities(scores, 1024)[0]
    assert (frequencies_p_value([leads, CHOICE_DRAWS - leads], [claimed, 1 - claimed]) > ALPHA) == is_accepted


@pytest.mark.parametrize(("true_scale", "is_accepted"), [(1.0, True), (0.7, False), (1.6, False)])
def test_the_frequency_test_rejects_the_wrong_softmax_either_way(true_scale: float, is_accepted: bool) -> None:
    scores = [0.0, 1.0, 2.0]
    chosen = _rng().choice(3, CHOICE_DRAWS, p=exponential_probabilities(scores, true_scale))
    claimed = exponential_probabilities(scores, 1.0)
    assert (frequencies_p_value(np.bincount(chosen, minlength=3), claimed) > ALPHA) == is_accepted


def test_the_probabilities_of_the_exponential_mechanism_are_as_written() -> None:
    assert exponential_probabilities([0, 3], 2.0) == pytest.approx([1 / (1 + np.exp(1.5)), 1 / (1 + np.exp(-1.5))])
