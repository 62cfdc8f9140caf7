"""The instruments are shown to reject what they should, in both directions, before anything is measured with them."""

import numpy as np
import pytest
from statistical import (
    ALPHA,
    CHOICE_DRAWS,
    FEW_CHOICES,
    RIVALS,
    SCALE_DRAWS,
    exponential_probabilities,
    frequencies_p_value,
    lead_p_value,
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


@pytest.mark.parametrize(
    ("draws", "true_scale", "is_accepted"),
    [
        (CHOICE_DRAWS, 1.0, True),
        (CHOICE_DRAWS, 0.85, False),
        (CHOICE_DRAWS, 1.15, False),
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
