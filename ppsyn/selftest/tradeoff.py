"""How well two neighbours can be told apart: what the guarantee allows, and what counts of right guesses show.

A guess has two error rates: of releases without the canary, those taken for one with it (false
positives), and the other way round (false negatives). A trade-off curve gives the least rate of the
second at each rate of the first. G_mu is the curve of two Gaussians mu standard deviations apart
(Dong, Roth and Su, Gaussian differential privacy, JRSS B 2022).
"""

import math
from functools import cache

import numpy as np
from scipy import special, stats

from ppsyn.arrays import Floats

_ORDERS: Floats = 1 + np.geomspace(1e-4, 1e3, 400)
"""Orders at which a divergence is held against rho. More would allow less, so the curve of these is safe."""
_HALVINGS = 60
_FARTHEST = 9.0
"""Standard deviations within which two discrete Gaussians are compared; beyond lies less than 1e-18."""


def probit(probability: Floats | float) -> Floats:
    """The inverse of the normal distribution function."""
    return np.asarray(special.ndtri(probability))


def gaussian_misses(false_positives: Floats, mu: float) -> Floats:
    """G_mu: the least rate of false negatives."""
    return np.asarray(special.ndtr(-probit(false_positives) - mu))


@cache
def zcdp_misses(false_positives: float, rho: float) -> float:
    """The least rate of false negatives that rho-zCDP allows any test, whatever the mechanism.

    A test turns a release into one of two outcomes, with probabilities p and q of "the canary is in" without and
    with it. Post-processing does not raise a divergence, so rho-zCDP bounds those of (p, 1 - p) and (q, 1 - q)
    at every order a by a rho, both ways. And all such pairs occur: the outcome alone is a mechanism. So this is exact.
    """
    low, high = false_positives, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_allowed(false_positives, middle, rho) else (low, middle)
    return 1 - high


def _is_allowed(p: float, q: float, rho: float) -> bool:
    return bool(np.all(_divergences(p, q) <= _ORDERS * rho) and np.all(_divergences(q, p) <= _ORDERS * rho))


def _divergences(p: float, q: float) -> Floats:
    """Renyi divergences of two outcomes, q from p, at all orders."""
    if p in (0.0, 1.0):
        return np.where(p == q, 0.0, np.full(_ORDERS.shape, math.inf))
    with np.errstate(divide="ignore"):
        terms = [_ORDERS * np.log(b) + (1 - _ORDERS) * np.log(a) for a, b in ((p, q), (1 - p, 1 - q))]
    return np.logaddexp(*terms) / (_ORDERS - 1)


@cache
def discrete_mu(sigma: float, shift: int) -> float:
    """The least mu whose G_mu lies below the curve of two discrete Gaussians of scale sigma, `shift` apart.

    Slightly above shift / sigma, for a threshold may lie where it is just right: by one part in 24 sigma**2.
    """
    reach = math.ceil(_FARTHEST * sigma) + shift
    values = np.arange(-reach - shift, reach + 1)
    weights = np.exp(-0.5 * (values / sigma) ** 2)
    above = np.append(np.cumsum(weights[::-1])[::-1], 0) / weights.sum()
    below = np.append(0, np.cumsum(weights)) / weights.sum()
    # Told to be in from t on: without the canary noise >= t, with it noise < t - shift.
    place = np.arange(shift, values.size)
    place = place[np.abs(values[place]) <= _FARTHEST * sigma / 2]
    return float((-probit(above[place]) - probit(below[place - shift])).max())


def selection_mu(rho: float) -> float:
    """The least mu whose G_mu lies below the curves of all selections of budget rho.

    The exponential mechanism is of bounded range eps = sqrt(8 rho): log-odds of the outcome of any test
    move by at most eps (claim C3). Probits of a logistic curve rise fastest in its middle.
    """
    return float(2 * probit(special.expit(math.sqrt(8 * rho) / 2)))


def at_least(right: int, guesses: int, confidence: float) -> float:
    """A lower bound on mu from guesses, half of them without and half of them with the canary.

    Under G_mu a guess is right with a mean probability of at most ndtr(mu / 2), and fixed
    numbers of each kind spread no more than independent ones (Hoeffding, 1956); Clopper and Pearson do the rest.
    """
    return _mu_of(float(stats.beta.ppf(1 - confidence, right, guesses - right + 1)) if right else 0.0)


def at_most(right: int, guesses: int, confidence: float) -> float:
    """An upper bound on what this test sees of mu; another test may see more."""
    return _mu_of(float(stats.beta.ppf(confidence, right + 1, guesses - right)) if right < guesses else 1.0)


def _mu_of(share: float) -> float:
    return max(0.0, float(2 * probit(share)))


def rate_at_most(errors: int, trials: int, confidence: float) -> float:
    """An upper bound on an error rate (Clopper and Pearson)."""
    return float(stats.beta.ppf(confidence, errors + 1, trials - errors)) if errors < trials else 1.0


def gaussian_mu(false_positives: float, false_negatives: float) -> float:
    """The mu whose G_mu goes through a point; nought where it is no better than guessing."""
    if max(false_positives, false_negatives) >= 1:
        return 0.0
    return max(0.0, -float(probit(false_positives)) - float(probit(false_negatives)))


def zcdp_mu(rho: float) -> float:
    """The mu at which G_mu lets as many guesses be right as rho-zCDP lets at most: the two errors equal."""
    low, high = 0.0, 0.5
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if zcdp_misses(middle, rho) <= middle else (middle, high)
    return _mu_of(1 - high)
