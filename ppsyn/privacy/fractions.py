"""Exact division of a budget: parts are fractions, rounded down, and never sum to more than the whole."""

from collections.abc import Sequence
from fractions import Fraction
from math import floor

from ppsyn.errors import InvariantError

_GRID = 2**96
"""Parts are multiples of 1/_GRID, so sums stay exact and short."""


def floored(rho: Fraction) -> Fraction:
    """The largest multiple of the grid that is not above rho."""
    return Fraction(floor(rho * _GRID), _GRID)


def divide(rho: Fraction, weights: Sequence[float]) -> tuple[Fraction, ...]:
    """Parts of rho in proportion to the weights, each rounded down."""
    exact = [Fraction(weight) for weight in weights]
    if not exact or min(exact) <= 0:
        raise InvariantError("Expected positive weights.")
    whole = sum(exact, Fraction(0))
    return tuple(floored(rho * weight / whole) for weight in exact)
