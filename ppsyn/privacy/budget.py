"""Budgets: (epsilon, delta) to rho and back, and the exact division of rho.

A release converts once. Parts of a budget are fractions, rounded down, and never sum to more than the whole.

Claim C7. rho-zCDP implies (epsilon, delta)-DP for every order alpha > 1 with

    delta = exp((alpha - 1) (alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1)

(Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
NeurIPS 2020: the conversion from Renyi to approximate differential privacy, at the
divergence rho alpha that zCDP allows). Any order gives a valid
bound, so an inexact search for the best one costs tightness, never validity.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from ppsyn.errors import ConfigError, InvariantError
from ppsyn.schemas.config import Budget

_GRID = 2**96
"""Parts of a budget are multiples of 1/_GRID, so sums stay exact and short."""

_HALVINGS = 200
_SMALLEST_EPSILON = 1e-6
"""Below, rounding errors of the bound come near the margin."""
_MARGIN = 1e-10
"""Relative margin that covers the floating-point error of the bound."""
_ABSOLUTE_MARGIN = 1e-13
"""The same where epsilon is so small that a share of it is less than the error."""


def log_delta(rho: float, epsilon: float) -> float:
    """Logarithm of the smallest delta for which rho-zCDP is known to give (epsilon, delta)-DP."""
    return min(0.0, _log_bound(best_excess(rho, epsilon), rho, epsilon))


def best_excess(rho: float, epsilon: float) -> float:
    """By how much the order of the tightest bound exceeds one."""
    low, high = 0.0, 1.0
    while _slope(high, rho, epsilon) < 0:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _slope(middle, rho, epsilon) < 0 else (low, middle)
    return high


def _slope(excess: float, rho: float, epsilon: float) -> float:
    """The derivative of the bound's logarithm in the order; it only ever rises."""
    return (2 * excess + 1) * rho - epsilon - math.log1p(1 / excess)


def _log_bound(excess: float, rho: float, epsilon: float) -> float:
    order = 1 + excess
    return excess * (order * rho - epsilon) - order * math.log1p(1 / excess) - math.log(excess)


def rho_from(epsilon: float, delta: float) -> Fraction:
    """The largest rho, rounded down, whose zCDP guarantee gives (epsilon, delta)-DP."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ConfigError(f"Expected epsilon={epsilon} to be positive and finite.")
    if epsilon < _SMALLEST_EPSILON:
        raise ConfigError(f"Expected epsilon={epsilon} to be at least {_SMALLEST_EPSILON}; it is too small to convert.")
    if not 0 < delta < 1:
        raise ConfigError(f"Expected delta={delta} to lie strictly between 0 and 1.")
    low, high = 0.0, epsilon + 1
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if log_delta(middle, epsilon) <= math.log(delta) else (low, middle)
    rho = round_down(Fraction(low * (1 - _MARGIN)))
    if rho <= 0:
        raise ConfigError(f"Expected epsilon={epsilon} and delta={delta} to allow a budget; both are too small.")
    return rho


def rho_of(budget: Budget) -> Fraction:
    """The rho of a configured budget, rounded down."""
    if budget.rho is not None:
        return round_down(Fraction(budget.rho))
    if budget.epsilon is None or budget.delta is None:
        raise InvariantError("A budget was not validated.")
    return rho_from(budget.epsilon, budget.delta)


def epsilon_from(rho: Fraction, delta: float) -> float:
    """The smallest epsilon, rounded up, for which rho-zCDP is known to give (epsilon, delta)-DP."""
    if not 0 < delta < 1:
        raise ConfigError(f"Expected delta={delta} to lie strictly between 0 and 1.")
    spent = float(rho)
    if spent <= 0:
        return 0.0
    low, high = 0.0, 1.0
    while log_delta(spent, high) > math.log(delta):
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if log_delta(spent, middle) <= math.log(delta) else (middle, high)
    return high * (1 + _MARGIN) + _ABSOLUTE_MARGIN


def round_down(rho: Fraction) -> Fraction:
    """The largest multiple of the grid that is not above rho."""
    return Fraction(math.floor(rho * _GRID), _GRID)


def divide(rho: Fraction, weights: Sequence[float]) -> tuple[Fraction, ...]:
    """Parts of rho in proportion to the weights, each rounded down."""
    exact = [Fraction(weight) for weight in weights]
    if not exact or min(exact) <= 0:
        raise InvariantError("Expected positive weights.")
    whole = sum(exact, Fraction(0))
    return tuple(round_down(rho * weight / whole) for weight in exact)
