"""Algorithm 3 merges the cells of a one-way marginal; Algorithm 4 splits the box of a multi-way one."""

import heapq
from typing import NamedTuple

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.benchmark.paper.sequence import PartitionSequence
from ppsyn.jit import compiled


def merge_sequence(expected: Floats) -> PartitionSequence:
    """Merge neighbours in ascending order of count, from single cells to one group.

    Each step merges the two neighbouring intervals that raise the L1 reconstruction
    error least, the lowest of equals: that rise is the paper's MergeError. It can be
    negative, because the even spread is not the nearest constant in L1; the error
    of a sequence may therefore fall while groups merge, though never by more than half.
    """
    counts = expected.ravel()
    order = np.argsort(counts, kind="stable").astype(np.int32)
    removed, rises = _merge(counts[order])
    errors = np.concatenate((np.zeros(1), np.cumsum(rises)))
    return PartitionSequence(order, removed[::-1].copy(), counts.size - np.arange(counts.size), np.maximum(errors, 0))


@compiled
def _merge(ascending: Floats) -> tuple[Ints, Floats]:
    """The borders between intervals in the order they go, and what each adds to the error."""
    size = ascending.size
    below = np.concatenate((np.zeros(1), np.cumsum(ascending)))
    ends, begins = np.arange(1, size + 1), np.arange(-1, size)
    errors = np.zeros(size)
    heap = [(_run_error(ascending, below, left, left + 2), left, left + 1, left + 2) for left in range(size - 1)]
    heapq.heapify(heap)
    removed, rises = np.empty(size - 1, np.int64), np.empty(size - 1)
    merges = 0
    while merges < size - 1:
        rise, left, border, right = heapq.heappop(heap)
        if ends[left] != border or ends[border] != right:  # one of the two has been merged since
            continue
        errors[left] += errors[border] + rise
        ends[left], begins[right], ends[border] = right, left, 0
        removed[merges], rises[merges] = border, rise
        merges += 1
        before = begins[left]
        if before >= 0:
            rise = _run_error(ascending, below, before, right) - errors[before] - errors[left]
            heapq.heappush(heap, (rise, before, left, right))
        if right < size:
            after = ends[right]
            rise = _run_error(ascending, below, left, after) - errors[left] - errors[right]
            heapq.heappush(heap, (rise, left, right, after))
    return removed, rises


@compiled
def _run_error(ascending: Floats, below: Floats, left: int, right: int) -> float:
    """L1 distance of an interval from its mean: twice what its lower cells lack."""
    if ascending[left] == ascending[right - 1]:
        return 0.0
    mean: float = (below[right] - below[left]) / (right - left)
    lower = int(np.searchsorted(ascending[left:right], mean))
    return 2 * max(mean * lower - (below[left + lower] - below[left]), 0.0)


_ROUNDING = 1e-10
"""Differences below this share of an error or a count are rounding."""


class _Boxes(NamedTuple):
    """Boxes of a marginal that keep their cells in one run of memory, however they are cut.

    The cells of a box lie next to each other, in C order of the box. Seen from one
    axis, a box of any number of dimensions is then `outer` times `width` slabs of
    `inner` cells, and a cut moves whole runs of slabs: nothing depends on the dimension.
    There is room for a number of boxes; the caller knows how many are in use.
    """

    counts: Floats
    """The expected counts, box after box."""
    cells: Codes
    """The cell each count belongs to."""
    starts: Ints
    """Where the run of each box begins."""
    widths: Ints
    """Boxes by axes."""


def split_sequence(expected: Floats, most: int, price: float = 0.0) -> PartitionSequence:
    """Split one box a step, from the whole marginal on, where it lowers the error most.

    "Split P_t with SP" is read as the text before the algorithm has it: the box
    with the highest reconstruction error is cut in two, in dimension t mod d, at
    the point that leaves the least error, the first of equals. Since the even
    spread is not the nearest constant in L1, a cut can raise the error. The next
    dimension is tried then; if all raise it, the one that raises it least is cut,
    so that a sequence always reaches the error 0. Single boxes' errors never rise.

    Args:
        expected: The model's counts, as an array with one axis per attribute.
        most: The sequence ends at this number of groups, if not before because
            nothing is left to gain.
        price: It also ends when no box has a higher error. A cut saves at most the
            error of its box, so error + price * groups has then passed its least
            value, as it has for any higher price.
    """
    boxes = _whole_box(expected, max(1, min(most, expected.size)))
    errors = _split(boxes, float(price))
    return PartitionSequence(boxes.cells, boxes.starts[1 : errors.size], np.arange(1, errors.size + 1), errors)


@compiled
def _split(boxes: _Boxes, price: float) -> Floats:
    """Cut the boxes; return the reconstruction error before the first cut and after each."""
    most, axes = boxes.widths.shape
    errors, drops = np.zeros(most), np.zeros(most)
    errors[0] = _box_error(boxes, 0)
    heap = [(-errors[0], 0)]
    count = 1
    while count < most and -heap[0][0] > price:
        error, box = -heap[0][0], heap[0][1]
        axis, cut = _next_cut(boxes, box, (count - 1) % axes, error)
        _cut_box(boxes, box, axis, cut, count)
        errors[box], errors[count] = _box_error(boxes, box), _box_error(boxes, count)
        heapq.heapreplace(heap, (-errors[box], box))
        heapq.heappush(heap, (-errors[count], count))
        drops[count - 1] = error - errors[box] - errors[count]
        count += 1
    return errors.sum() + np.cumsum(drops[:count][::-1])[::-1]


@compiled
def _next_cut(boxes: _Boxes, box: int, first: int, error: float) -> tuple[int, int]:
    """The axis to cut and the number of slabs below the cut, from axis `first` on."""
    axes = boxes.widths.shape[1]
    best_axis, best_cut, least = 0, 0, np.inf
    for step in range(axes):
        axis = (first + step) % axes
        for cut, left in enumerate(_errors_of_cuts(boxes, box, axis)):
            if left < least - _ROUNDING * error:
                best_axis, best_cut, least = axis, cut + 1, left
        if least <= error * (1 + _ROUNDING):
            break
    return best_axis, best_cut


@compiled
def _errors_of_cuts(boxes: _Boxes, box: int, axis: int) -> Floats:
    """The error left by each cut of the box along `axis`.

    A cell is compared with the mean of its side for all cuts at once: in a loop
    over cuts, unlike one over cells, no sum waits for another.
    """
    outer, width, inner = _layout(boxes, box, axis)
    errors = np.zeros(width - 1)
    if width == 1:
        return errors
    means = _means_of_sides(_sum_slabs(boxes, box, axis), outer * inner)
    position = boxes.starts[box]
    for _ in range(outer):
        for slab in range(width):
            side_means = means[slab]
            for _ in range(inner):
                count = boxes.counts[position]
                position += 1
                for cut in range(width - 1):
                    errors[cut] += abs(count - side_means[cut])
    return errors


@compiled
def _means_of_sides(slabs: Floats, slab_cells: int) -> Floats:
    """For each slab and each cut the mean count on the slab's side of the cut."""
    width, total = slabs.size, slabs.sum()
    means = np.empty((width, width - 1))
    below = 0.0
    for cut in range(width - 1):
        below += slabs[cut]
        means[: cut + 1, cut] = below / ((cut + 1) * slab_cells)
        means[cut + 1 :, cut] = (total - below) / ((width - cut - 1) * slab_cells)
    return means


@compiled
def _box_error(boxes: _Boxes, box: int) -> float:
    """L1 distance of the box from its mean."""
    start = boxes.starts[box]
    counts = boxes.counts[start : start + boxes.widths[box].prod()]
    mean = counts.sum() / counts.size
    error = 0.0
    for count in counts:
        error += abs(count - mean)
    return error if error > _ROUNDING * abs(mean) * counts.size else 0.0


def _whole_box(expected: Floats, most: int) -> _Boxes:
    """Box 0 spans the marginal; there is room for `most` boxes."""
    widths = np.empty((most, expected.ndim), np.int64)
    widths[0] = expected.shape
    counts = np.array(expected, np.float64, order="C").ravel()
    return _Boxes(counts, np.arange(expected.size, dtype=np.int32), np.zeros(most, np.int64), widths)


@compiled
def _layout(boxes: _Boxes, box: int, axis: int) -> tuple[int, int, int]:
    """How often the slabs of `axis` repeat, how many there are, and their cells in a row."""
    widths = boxes.widths[box]
    return widths[:axis].prod(), widths[axis], widths[axis + 1 :].prod()


@compiled
def _sum_slabs(boxes: _Boxes, box: int, axis: int) -> Floats:
    """The expected rows of each slab of the box along `axis`."""
    outer, width, inner = _layout(boxes, box, axis)
    sums = np.zeros(width)
    position = boxes.starts[box]
    for _ in range(outer):
        for slab in range(width):
            rows = 0.0
            for _ in range(inner):
                rows += boxes.counts[position]
                position += 1
            sums[slab] += rows
    return sums


@compiled
def _cut_box(boxes: _Boxes, box: int, axis: int, cut: int, upper: int) -> None:
    """Leave the first `cut` slabs of the box to it and give the others to box `upper`."""
    outer, width, inner = _layout(boxes, box, axis)
    middle = _part_runs(boxes, boxes.starts[box], outer, cut * inner, (width - cut) * inner)
    boxes.starts[upper] = middle
    boxes.widths[upper] = boxes.widths[box]
    boxes.widths[upper, axis] = width - cut
    boxes.widths[box, axis] = cut


@compiled
def _part_runs(boxes: _Boxes, start: int, runs: int, kept: int, moved: int) -> int:
    """Bring the first `kept` cells of each run before all the others; return where those begin."""
    counts, cells = np.empty(runs * moved), np.empty(runs * moved, np.int32)
    source, target, aside = start, start, 0
    for _ in range(runs):
        for _ in range(kept):  # the target never overtakes the source
            boxes.counts[target] = boxes.counts[source]
            boxes.cells[target] = boxes.cells[source]
            source, target = source + 1, target + 1
        for _ in range(moved):
            counts[aside] = boxes.counts[source]
            cells[aside] = boxes.cells[source]
            source, aside = source + 1, aside + 1
    boxes.counts[target:source] = counts
    boxes.cells[target:source] = cells
    return target
