"""Intervals that divide an axis of whole numbers or of reals."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ppsyn.schemas.limits import CODES

Axis: TypeAlias = NDArray[np.int64 | np.float64]
Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Intervals in increasing order, with both ends included and no value of the axis between them."""

    starts: Axis
    ends: Axis

    def nearest(self, values: Axis) -> NDArray[np.int32]:
        """Number the interval that holds each value, or the nearest one."""
        positions = np.searchsorted(self.starts, values, side="right") - 1
        return np.clip(positions, 0, len(self.starts) - 1).astype(np.int32)

    def hold(self, values: Axis) -> Flags:
        """Whether each value lies between the first start and the last end."""
        return (values >= self.starts[0]) & (values <= self.ends[-1])


def whole_intervals(starts: Sequence[int], last: int) -> Intervals:
    """Intervals of whole numbers, the last one up to and including `last`."""
    begin = np.asarray(starts, np.int64)
    return Intervals(begin, np.append(begin[1:] - 1, np.int64(last)))


def real_intervals(starts: Sequence[float], last: float) -> Intervals:
    """Intervals of reals; all but the last end at the largest double below the next start."""
    begin = np.asarray(starts, np.float64)
    return Intervals(begin, np.append(np.nextafter(begin[1:], -np.inf), last))


def single_precision(intervals: Intervals) -> Intervals:
    """The intervals drawn in to the nearest numbers of 32 bits, as doubles; an end before its start is empty."""
    with np.errstate(over="ignore"):  # past the largest number there is none to hold
        starts, ends = intervals.starts.astype(np.float32), intervals.ends.astype(np.float32)
        starts = np.where(starts < intervals.starts, np.nextafter(starts, np.float32(np.inf)), starts)
        ends = np.where(ends > intervals.ends, np.nextafter(ends, np.float32(-np.inf)), ends)
    return Intervals(starts.astype(np.float64), ends.astype(np.float64))


def equal_whole_starts(lower: int, upper: int, bins: int) -> Sequence[int]:
    """Starts of intervals that hold equally many whole numbers, to within one."""
    count = upper - lower + 1
    if bins > count:
        raise ValueError(f"Expected bins={bins} to be at most {count}, the number of different values.")
    check_size(bins)
    return [lower + index * count // bins for index in range(bins)]


def stepped_whole_starts(lower: int, upper: int, step: int) -> Sequence[int]:
    """Starts every `step` from `lower`; the last interval may be shorter."""
    check_size((upper - lower) // step + 1)
    return range(lower, upper + 1, step)


def equal_real_starts(lower: float, upper: float, bins: int) -> Sequence[float]:
    """Starts of intervals of equal length."""
    check_size(bins)
    begin, length = _exact(lower), _exact(upper) - _exact(lower)
    return _increasing(_multiples(begin, length / bins, bins), upper)


def stepped_real_starts(lower: float, upper: float, step: float) -> Sequence[float]:
    """Starts every `step` from `lower`, as if written in decimals; the last interval may be shorter."""
    begin, length, stride = _exact(lower), _exact(upper) - _exact(lower), _exact(step)
    bins = max(1, -(-length // stride))
    check_size(bins)
    return _increasing(_multiples(begin, stride, bins), upper)


def check_size(codes: int) -> None:
    """Refuse a column of too many codes."""
    if codes > CODES:
        raise ValueError(f"Expected at most {CODES} codes, got {codes}; use bins, and no more than that.")


def _exact(value: float) -> Fraction:
    """The decimal as written: 0.1 is one tenth."""
    return Fraction(repr(value))


def _multiples(begin: Fraction, step: Fraction, count: int) -> list[float]:
    """So many numbers, `step` apart from `begin` on, each rounded once."""
    first, stride = begin.numerator * step.denominator, step.numerator * begin.denominator
    divisor = begin.denominator * step.denominator
    return [(first + stride * index) / divisor for index in range(count)]


def _increasing(starts: list[float], upper: float) -> list[float]:
    if any(start >= later for start, later in pairwise([*starts, upper])) and starts != [upper]:
        raise ValueError("Expected bins wide enough to tell apart in floating point; use fewer of them.")
    return starts
