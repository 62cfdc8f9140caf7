"""Algorithm 4: split the box of a multi-way marginal."""

import heapq

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.jit import compiled
from ppsyn.partition.boxes import Boxes, cut_box, layout, sum_slabs, whole_box
from ppsyn.partition.sequence import PartitionSequence

_ROUNDING = 1e-10
"""Differences below this share of an error or a count are rounding."""


def split_sequence(expected: Floats, most: int, price: float = 0.0) -> PartitionSequence:
    """Split one box a step, from the whole marginal on, where it lowers the error most.

    "Split P_t with SP" is read as the text before the algorithm has it: the box
    with the highest reconstruction error is cut in two, in dimension t mod d, at
    the point that leaves the least error, the first of equals. Since the even
    spread is not the nearest constant in L1, a cut can raise the error. Such a cut
    is no cut: the next dimension is tried, and a box without a cut stays whole.

    Args:
        expected: The model's counts, as an array with one axis per attribute.
        most: The sequence ends at this number of groups, if not before because
            nothing is left to gain.
        price: It also ends when no box has a higher error. A cut saves at most the
            error of its box, so error + price * groups has then passed its least
            value, as it has for any higher price.
    """
    boxes = whole_box(expected, max(1, min(most, expected.size)))
    errors = _split(boxes, float(price))
    return PartitionSequence(boxes.cells, boxes.starts[1 : errors.size], np.arange(1, errors.size + 1), errors)


@compiled
def _split(boxes: Boxes, price: float) -> Floats:
    """Cut the boxes; return the reconstruction error before the first cut and after each."""
    most, axes = boxes.widths.shape
    errors, drops = np.zeros(most), np.zeros(most)
    errors[0] = _error(boxes, 0)
    heap = [(-errors[0], 0)]
    count = 1
    while count < most and len(heap) > 0 and -heap[0][0] > price:
        error, box = -heap[0][0], heap[0][1]
        heapq.heappop(heap)
        axis, cut = _next_cut(boxes, box, (count - 1) % axes, error)
        if cut > 0:
            cut_box(boxes, box, axis, cut, count)
            for half in (box, count):
                errors[half] = _error(boxes, half)
                heapq.heappush(heap, (-errors[half], half))
            drops[count - 1] = max(error - errors[box] - errors[count], 0.0)
            count += 1
    return errors.sum() + np.cumsum(drops[:count][::-1])[::-1]


@compiled
def _next_cut(boxes: Boxes, box: int, first: int, error: float) -> tuple[int, int]:
    """The first axis from `first` on with a cut that does not raise `error`, and the cut; 0 for none."""
    axes = boxes.widths.shape[1]
    for step in range(axes):
        axis = (first + step) % axes
        if boxes.widths[box, axis] > 1:
            errors = _errors_of_cuts(boxes, box, axis)
            cut = int(np.argmin(errors))
            if errors[cut] <= error * (1 + _ROUNDING):
                return axis, cut + 1
    return 0, 0


@compiled
def _errors_of_cuts(boxes: Boxes, box: int, axis: int) -> Floats:
    """The error left by each cut of the box along `axis`.

    A cell is compared with the mean of its side for all cuts at once: the inner
    loops run over cuts, where sums do not wait for each other.
    """
    outer, width, inner = layout(boxes, box, axis)
    below = np.cumsum(sum_slabs(boxes, box, axis))
    slabs = np.arange(1, width)
    lower_means = below[:-1] / (slabs * (outer * inner))
    upper_means = (below[-1] - below[:-1]) / ((width - slabs) * (outer * inner))
    errors = np.zeros(width - 1)
    position = boxes.starts[box]
    for _ in range(outer):
        for slab in range(width):
            for _ in range(inner):
                count = boxes.counts[position]
                position += 1
                for cut in range(slab):
                    errors[cut] += abs(count - upper_means[cut])
                for cut in range(slab, width - 1):
                    errors[cut] += abs(count - lower_means[cut])
    return errors


@compiled
def _error(boxes: Boxes, box: int) -> float:
    """L1 distance of the box from its mean."""
    start = boxes.starts[box]
    counts = boxes.counts[start : start + boxes.widths[box].prod()]
    mean = counts.sum() / counts.size
    error = 0.0
    for count in counts:
        error += abs(count - mean)
    return error if error > _ROUNDING * abs(mean) * counts.size else 0.0
