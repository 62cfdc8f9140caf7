"""The ways to partition a marginal, by name: our own, and those that it was compared with."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.benchmark.paper.merge_split import merge_sequence, split_sequence
from ppsyn.benchmark.paper.sequence import least_total_error
from ppsyn.jit import compiled
from ppsyn.mechanisms.base import NOISE_L1
from ppsyn.mechanisms.grid import Strategy, partition_grid, partition_in_order, with_finest
from ppsyn.privacy.partition import Partition, finest, number_groups


def split_balanced(expected: Floats, least: float) -> Partition:
    """Cut boxes in two, axes in turn, while both halves keep `least` expected rows.

    Each cut is the most balanced one of its axis, the first of equals; an axis
    without a cut passes its turn to the next. If anything is cut, every group
    holds at least `least` expected rows, up to rounding.
    """
    padded = np.zeros([size + 1 for size in expected.shape])
    padded[(slice(1, None),) * expected.ndim] = expected
    return number_groups(_split(padded.ravel(), np.array(expected.shape), float(least)))


class _Sums(NamedTuple):
    """Prefix sums of a marginal with one more code, of no rows, before the others of each axis."""

    rows: Floats
    strides: Ints
    corners: Ints
    """Scratch: where the corners of a slice of a box lie."""
    signs: Floats
    """Scratch: and how they count."""


@compiled
def _split(padded: Floats, shape: Ints, least: float) -> Codes:
    """The number of the box each cell ends up in."""
    axes, cells = shape.size, shape.prod()
    sums = _prefix_sums(padded, shape)
    lows, highs = np.zeros((cells, axes), np.int64), np.empty((cells, axes), np.int64)
    rows, turns = np.empty(cells), np.zeros(cells, np.int64)
    highs[0], rows[0] = shape, sums.rows[-1]
    labels = np.empty(cells, np.int32)
    box, count = 0, 1
    while box < count:
        axis, cut, below = -1, 0, 0.0
        if rows[box] >= 2 * least:
            axis, cut, below = _next_cut(sums, lows[box], highs[box], turns[box], least)
        if axis < 0:
            _label(labels, shape, lows[box], highs[box], box)
            box += 1
            continue
        lows[count], highs[count] = lows[box], highs[box]
        lows[count, axis] = highs[box, axis] = cut
        rows[count], rows[box] = rows[box] - below, below
        turns[count] = turns[box] = (axis + 1) % axes
        count += 1
    return labels


@compiled
def _prefix_sums(padded: Floats, shape: Ints) -> _Sums:
    axes = shape.size
    strides = np.ones(axes, np.int64)
    for axis in range(axes - 2, -1, -1):
        strides[axis] = strides[axis + 1] * (shape[axis + 1] + 1)
    for axis in range(axes):
        stride = strides[axis]
        block = stride * (shape[axis] + 1)
        for start in range(0, padded.size, block):
            for position in range(start + stride, start + block):
                padded[position] += padded[position - stride]
    return _Sums(padded, strides, np.empty(2 ** (axes - 1), np.int64), np.empty(2 ** (axes - 1)))


@compiled
def _next_cut(sums: _Sums, low: Ints, high: Ints, first: int, least: float) -> tuple[int, int, float]:
    """The first axis from `first` on that can be cut, where, and the rows below; -1 for none."""
    for step in range(low.size):
        axis = (first + step) % low.size
        if high[axis] - low[axis] > 1:
            cut, below, smaller_half = _balanced_cut(sums, low, high, axis)
            if smaller_half >= least:
                return axis, cut, below
    return -1, 0, 0.0


@compiled
def _balanced_cut(sums: _Sums, low: Ints, high: Ints, axis: int) -> tuple[int, float, float]:
    """The cut of the box with the largest smaller half, the rows below it, and those of that half."""
    _find_corners(sums, low, high, axis)
    before = _rows_up_to(sums, low[axis] * sums.strides[axis])
    total = _rows_up_to(sums, high[axis] * sums.strides[axis]) - before
    best, rows_below, smaller_half = 0, 0.0, -1.0
    for cut in range(low[axis] + 1, high[axis]):
        below = _rows_up_to(sums, cut * sums.strides[axis]) - before
        smaller = min(below, total - below)
        if smaller > smaller_half:
            best, rows_below, smaller_half = cut, below, smaller
    return best, rows_below, smaller_half


@compiled
def _find_corners(sums: _Sums, low: Ints, high: Ints, axis: int) -> None:
    """Inclusion and exclusion over the axes other than `axis`."""
    sums.corners[0], sums.signs[0] = 0, 1.0
    count = 1
    for other in range(low.size):
        if other != axis:
            for corner in range(count):
                sums.corners[count + corner] = sums.corners[corner] + low[other] * sums.strides[other]
                sums.signs[count + corner] = -sums.signs[corner]
                sums.corners[corner] += high[other] * sums.strides[other]
            count *= 2


@compiled
def _rows_up_to(sums: _Sums, offset: int) -> float:
    """The expected rows of the box's slice up to a cut, from the first code on."""
    rows = 0.0
    for corner in range(sums.corners.size):
        rows += sums.signs[corner] * sums.rows[sums.corners[corner] + offset]
    return rows


@compiled
def _label(labels: Codes, shape: Ints, low: Ints, high: Ints, label: int) -> None:
    """Write `label` to the cells of a box, a run of its last axis at a time."""
    last = shape.size - 1
    codes = low.copy()
    axis = 0
    while axis >= 0:
        start = 0
        for each in range(shape.size):
            start = start * shape[each] + codes[each]
        for cell in range(start, start + high[last] - low[last]):
            labels[cell] = label
        axis = last - 1
        while axis >= 0 and codes[axis] == high[axis] - 1:
            codes[axis] = low[axis]
            axis -= 1
        if axis >= 0:
            codes[axis] += 1


def partition_balanced(
    expected: Floats, is_ordered: tuple[bool, ...], sigma: float, granularities: tuple[float, ...]
) -> tuple[Partition, ...]:
    """Boxes of at least granularity * sigma expected rows, so that counts stand above the noise."""

    def build(arranged: Floats) -> Iterable[Partition]:
        return (split_balanced(arranged, granularity * sigma) for granularity in granularities)

    return with_finest(expected.size, partition_in_order(expected, is_ordered, build))


def partition_merge_split(
    expected: Floats, is_ordered: tuple[bool, ...], sigma: float, granularities: tuple[float, ...]
) -> tuple[Partition, ...]:
    """Algorithm 3 for one attribute, Algorithm 4 for more, on the model's counts.

    The paper seeks the least budget for a tolerance eta * Contr. Contr is private
    and the budget of a round is fixed, so the question is turned round: which
    partition meets the smallest tolerance at this budget? The one with the least
    RE + sqrt(2/pi) * sigma * |P| (`least_total_error`). A granularity stands for noise
    that many times as large: the higher, the fewer groups.
    """
    if not granularities:
        return (finest(expected.size),)
    price = NOISE_L1 * sigma * min(granularities)

    def build(arranged: Floats) -> Iterable[Partition]:
        one_way = arranged.ndim == 1
        sequence = merge_sequence(arranged) if one_way else split_sequence(arranged, arranged.size, price)
        stops = dict.fromkeys(least_total_error(sequence, granularity * sigma) for granularity in granularities)
        return (sequence.partition_at(index) for index in stops)

    return with_finest(expected.size, partition_in_order(expected, is_ordered, build))


def keep_cells(
    expected: Floats, is_ordered: tuple[bool, ...], sigma: float, granularities: tuple[float, ...]
) -> tuple[Partition, ...]:
    """No partition: the cells themselves."""
    return (finest(expected.size),)


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {"grid": partition_grid, "balanced": partition_balanced, "merge-split": partition_merge_split, "cells": keep_cells}
)
"""The strategies that a benchmark may name as ppsyn:partition=NAME."""
