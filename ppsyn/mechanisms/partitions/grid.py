"""Cut a marginal into the boxes of a grid: each axis in slices, whatever the other axes are."""

import math

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.jit import compiled
from ppsyn.privacy.partition import MOST_BOXES, Partition


def split_grid(expected: Floats, least: float) -> Partition | None:
    """Cut slices in two, of the axis with the fewest first, while all keep `least` expected rows a box.

    A slice of an axis is shared by as many boxes as the other axes have slices between them; it must
    hold `least` expected rows for each. The heaviest slice that can be cut is, at its most balanced
    point. There is no grid if an axis cannot be cut, or if there is only one.
    """
    if expected.ndim < 2:
        return None
    sizes = np.array(expected.shape)
    sums = np.zeros((expected.ndim, int(sizes.max()) + 1))
    for axis in range(expected.ndim):
        one_way = expected.sum(axis=tuple(other for other in range(expected.ndim) if other != axis))
        sums[axis, 1 : one_way.size + 1] = np.cumsum(one_way)
    cuts, counts = _cut(sums, sizes, float(least), MOST_BOXES)
    if counts.min() < 2:
        return None
    groups = np.zeros(1, np.int32)
    for axis, size in enumerate(expected.shape):
        slices = np.cumsum(cuts[axis, :size], dtype=np.int32)
        groups = (groups[:, None] * np.int32(counts[axis]) + slices).ravel()
    axes = tuple(counts.tolist())
    return Partition(groups, math.prod(axes), axes)


@compiled
def _cut(sums: Floats, sizes: Ints, least: float, most: int) -> tuple[Codes, Ints]:
    """Which codes begin a slice other than the first, and the number of slices, of each axis."""
    axes = sizes.size
    cuts = np.zeros((axes, sums.shape[1]), np.int32)
    counts = np.ones(axes, np.int64)
    is_open = np.ones(axes, np.bool_)
    lightest = np.array([sums[axis, sizes[axis]] for axis in range(axes)])
    while is_open.any():
        axis = -1
        for other in range(axes):
            if is_open[other] and (axis < 0 or counts[other] < counts[axis]):
                axis = other
        boxes = counts.prod() // counts[axis] * (counts[axis] + 1)
        fits = boxes <= most
        for other in range(axes):
            if other != axis and lightest[other] < least * boxes / counts[other]:
                fits = False
        cut, lighter = -1, 0.0
        if fits and lightest[axis] >= least * boxes / (counts[axis] + 1):
            cut, lighter = _heaviest_cut(sums[axis], cuts[axis], sizes[axis], least * boxes / (counts[axis] + 1))
        if cut < 0:
            is_open[axis] = False
        else:
            cuts[axis, cut] = 1
            counts[axis] += 1
            lightest[axis] = min(lightest[axis], lighter)
    return cuts, counts


@compiled
def _heaviest_cut(sums: Floats, cuts: Codes, size: int, least: float) -> tuple[int, float]:
    """Where to cut the heaviest slice whose halves both keep `least`, and the rows of the lighter half; -1 for none."""
    best, best_rows, best_half = -1, 0.0, 0.0
    start = 0
    while start < size:
        end = start + 1
        while end < size and cuts[end] == 0:
            end += 1
        rows = sums[end] - sums[start]
        if rows > best_rows and rows >= 2 * least:
            at, half = -1, 0.0
            for cut in range(start + 1, end):
                smaller = min(sums[cut] - sums[start], sums[end] - sums[cut])
                if smaller > half:
                    at, half = cut, smaller
            if at >= 0 and half >= least:
                best, best_rows, best_half = at, rows, half
        start = end
    return best, best_half
