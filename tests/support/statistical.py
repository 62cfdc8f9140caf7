"""Tests of randomness: the false-alarm rate, the p-values, and what they can tell apart.

A test that asks for `p_value > ALPHA` raises a false alarm once in 10^9 runs. The noise
has no seed, so this rate alone keeps the suite quiet; tests that a fault is caught plant
one large enough to be missed more rarely still. `tests/privacy/test_statistical.py` shows
that each p-value rejects what it should, from seeded draws.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

ALPHA = 1e-9
"""False alarms: one in 10^9 runs."""

SCALE_DRAWS = 50_000
"""Catches an error of 3% of a Gaussian's scale, either way, in 999 of 1,000 runs."""

NIGHTLY_DRAWS = 10**6
"""Catches 1% of the same."""

CHOICE_DRAWS = 1_000
"""Catches an error of 15% of an exponential mechanism's scale, either way, in 999 of 1,000 runs; see `tipping_gap`."""

MANY_CHOICES = 7_000
"""Catches 5% of the same."""

NIGHTLY_CHOICES = 180_000
"""Catches 1% of the same."""

FEW_CHOICES = 200
"""Catches the same scale wrong by one half of itself, either way, in 999 of 1,000 runs."""

RIVALS = 100
"""Equal candidates that the better one of `tipping_gap` competes with."""


def scale_p_value(draws: ArrayLike, claimed: float) -> float:
    """Two-sided chi-square test that Gaussian draws around zero have the claimed standard deviation."""
    values = np.asarray(draws, np.float64)
    statistic = float(np.square(values / claimed).sum())
    return float(2 * min(stats.chi2.cdf(statistic, values.size), stats.chi2.sf(statistic, values.size)))


def mean_p_value(draws: ArrayLike, scale: float) -> float:
    """Two-sided test that draws of the given standard deviation are centred on zero."""
    values = np.asarray(draws, np.float64)
    return float(2 * stats.norm.sf(abs(values.mean()) / scale * np.sqrt(values.size)))


def frequencies_p_value(counts: ArrayLike, probabilities: ArrayLike) -> float:
    """Chi-square test that outcomes were drawn with the given probabilities; expect at least five of each."""
    observed, shares = np.asarray(counts, np.float64), np.asarray(probabilities, np.float64)
    return float(stats.chisquare(observed, observed.sum() * shares / shares.sum()).pvalue)


def discrete_gaussian(scale: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The values of a discrete Gaussian within 40 of its scale, and their exact probabilities."""
    reach = int(np.ceil(40 * scale))
    values = np.arange(-reach, reach + 1)
    law = np.exp(-np.square(values / scale) / 2)
    return values, law / law.sum()


def law_p_value(draws: ArrayLike, scale: float) -> float:
    """Chi-square test of draws against the exact law of a discrete Gaussian.

    Neighbouring values are taken together until 20 draws of them are expected.
    """
    values, law = discrete_gaussian(scale)
    seen = np.clip(np.asarray(draws, np.int64), values[0], values[-1])
    bins, expected = np.zeros(values.size, np.int64), [0.0]
    for place, share in enumerate(law * seen.size):
        if expected[-1] >= 20:
            expected.append(0.0)
        expected[-1] += share
        bins[place] = len(expected) - 1
    if expected[-1] < 20:
        bins[bins == len(expected) - 1] -= 1
        expected[-2:] = [sum(expected[-2:])]
    observed = np.bincount(bins[seen - values[0]], minlength=len(expected))
    return float(stats.chisquare(observed, expected).pvalue)


def tail_p_value(draws: ArrayLike, scale: float, beyond: float) -> float:
    """Exact test that as many draws of a discrete Gaussian as there should be lie further out than `beyond` scales."""
    values, law = discrete_gaussian(scale)
    seen = np.asarray(draws, np.int64)
    share = float(law[np.abs(values) > beyond * scale].sum())
    return float(stats.binomtest(int((np.abs(seen) > beyond * scale).sum()), seen.size, share).pvalue)


def exponential_probabilities(scores: ArrayLike, scale: float) -> NDArray[np.float64]:
    """What the exponential mechanism gives each candidate: proportional to exp(score / scale)."""
    heights = np.asarray(scores, np.float64) / scale
    weights = np.exp(heights - heights.max())
    return weights / weights.sum()


def tipping_gap(scale: float) -> int:
    """How far one candidate must lead `RIVALS` equal ones to be chosen half of the time.

    Where the odds tip, they are most sensitive to the scale: an error of 15% moves
    one half by 0.15, nine standard deviations of `CHOICE_DRAWS` draws.
    """
    return round(scale * np.log(RIVALS))


def lead_p_value(chosen: Sequence[int], claimed: float) -> float:
    """Test that candidate 0, a tipping gap ahead of its rivals, was chosen as often as the claimed scale says."""
    leads = sum(index == 0 for index in chosen)
    share = float(exponential_probabilities([tipping_gap(claimed), *[0] * RIVALS], claimed)[0])
    return float(stats.binomtest(leads, len(chosen), share).pvalue)
