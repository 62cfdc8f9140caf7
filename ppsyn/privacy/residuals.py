"""Residuals of a grid: what its boxes tell beyond the totals along each axis.

A model that knows single attributes knows how many rows lie in each slice of a grid. A
measurement that asks for it again pays for it again. Of the counts n of the G boxes of a
grid with a_1, ..., a_d slices along its axes, the residuals

    G n - sum over axes i of a_i (slice totals of axis i) + (d - 1) (total)

are G times the part of n that is orthogonal to all functions of one axis. They are integers,
and a row moves them by less than it moves the counts: its column of the integer matrix that
maps counts to residuals has the squared norm G (G - 1 - sum of (a_i - 1)), the same for every
box, where that of G n would be G**2 (as in ResidualPlanner: Xiao, He, Zhang and Kifer,
NeurIPS 2023). So less noise hides it, and the noise on what the residuals leave out is dropped.
"""

import math
from typing import TypeAlias

import numpy as np

from ppsyn.arrays import Floats, Ints
from ppsyn.jit import compiled

Axes: TypeAlias = tuple[int, ...]
"""How many slices a grid has along each axis."""

UNIT = 2**10
"""Residuals are scaled by this, so that rounding their sensitivity up to an integer costs next to nothing."""


def exact_residuals(counts: Ints, axes: Axes) -> Ints:
    """UNIT times the residuals of exact integer counts."""
    boxes, all_axes = counts.reshape(axes), range(len(axes))
    found = boxes * counts.size + (len(axes) - 1) * counts.sum()
    for axis, slices in enumerate(axes):
        found -= slices * boxes.sum(axis=tuple(other for other in all_axes if other != axis), keepdims=True)
    return UNIT * found.ravel()


def residual_sensitivity(axes: Axes) -> int:
    """A row moves `exact_residuals` by at most this in L2 norm: the norm of a column, rounded up. Claim C1."""
    return math.isqrt(UNIT**2 * math.prod(axes) * degrees(axes) - 1) + 1


def degrees(axes: Axes) -> int:
    """How many residuals are independent of each other."""
    return math.prod(axes) - 1 - sum(slices - 1 for slices in axes)


@compiled
def centre(values: Floats, axes: Ints) -> None:
    """Leave of values on a grid what is orthogonal to all functions of one axis, in place."""
    left = values.copy()
    stride = values.size
    for axis in range(axes.size):
        slices, stride = axes[axis], stride // axes[axis]
        for place in range(slices):
            total = 0.0
            for start in range(place * stride, values.size, slices * stride):
                for box in range(start, start + stride):
                    total += values[box]
            mean = total * slices / values.size
            for start in range(place * stride, values.size, slices * stride):
                for box in range(start, start + stride):
                    left[box] -= mean
    whole = (axes.size - 1) * values.mean()
    for box in range(values.size):
        values[box] = left[box] + whole


def centred(values: Floats, axes: Axes) -> Floats:
    """What `centre` leaves."""
    found = values.copy()
    centre(found, np.array(axes, np.int64))
    return found
