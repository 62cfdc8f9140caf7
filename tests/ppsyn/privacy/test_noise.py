from fractions import Fraction

import numpy as np
import pytest

from ppsyn.privacy.noise import add_discrete_gaussian, draw_noisy_max
from ppsyn.privacy.requests import noise_scale

SURE = Fraction(10**9)


def test_noise_shrinks_to_nothing_as_the_budget_grows() -> None:
    noisy, scale = add_discrete_gaussian(np.array([3, -1, 2**62]), SURE, 1)
    assert noisy.tolist() == [3, -1, 2**62]
    assert scale == noise_scale(SURE, 1)


def test_answers_are_whole_numbers_and_as_many_as_were_asked() -> None:
    noisy, _ = add_discrete_gaussian(np.zeros(7, np.int64), Fraction(1, 100), 2)
    assert (noisy.dtype, noisy.shape) == (np.int64, (7,))


def test_no_counts_get_no_noise() -> None:
    assert add_discrete_gaussian(np.zeros(0, np.int64), Fraction(1), 1)[0].size == 0


def test_the_largest_score_wins_as_the_budget_grows() -> None:
    assert draw_noisy_max([-5, 4, 3], SURE, 1) == 1


def test_one_candidate_is_always_chosen() -> None:
    assert draw_noisy_max([-(2**40)], Fraction(1, 10**6), 1024) == 0


@pytest.mark.parametrize("rho", [Fraction(1, 2**60), Fraction(1, 3), Fraction(10**4)])
@pytest.mark.parametrize("sensitivity", [1, 1024, 10**6])
def test_no_budget_is_too_small_or_too_large_for_its_own_cost(rho: Fraction, sensitivity: int) -> None:
    add_discrete_gaussian(np.zeros(1, np.int64), rho, sensitivity)
    draw_noisy_max([0, 0], rho, sensitivity)
