"""Boxes of a marginal that keep their cells in one run of memory, however they are cut.

The cells of a box lie next to each other, in C order of the box. Seen from one
axis, a box of any number of dimensions is then `outer` times `width` slabs of
`inner` cells, and a cut moves whole runs of slabs: nothing depends on the dimension.
"""

from typing import NamedTuple

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.jit import compiled


class Boxes(NamedTuple):
    """Room for a number of boxes; how many are in use is the caller's to know."""

    counts: Floats
    """The expected counts, box after box."""
    cells: Codes
    """The cell each count belongs to."""
    starts: Ints
    """Where the run of each box begins."""
    widths: Ints
    """Boxes by axes."""


def whole_box(expected: Floats, most: int) -> Boxes:
    """Box 0 spans the marginal; there is room for `most` boxes."""
    widths = np.empty((most, expected.ndim), np.int64)
    widths[0] = expected.shape
    counts = np.array(expected, np.float64, order="C").ravel()
    return Boxes(counts, np.arange(expected.size, dtype=np.int32), np.zeros(most, np.int64), widths)


@compiled
def layout(boxes: Boxes, box: int, axis: int) -> tuple[int, int, int]:
    """How often the slabs of `axis` repeat, how many there are, and their cells in a row."""
    widths = boxes.widths[box]
    return widths[:axis].prod(), widths[axis], widths[axis + 1 :].prod()


@compiled
def sum_slabs(boxes: Boxes, box: int, axis: int) -> Floats:
    """The expected rows of each slab of the box along `axis`."""
    outer, width, inner = layout(boxes, box, axis)
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
def cut_box(boxes: Boxes, box: int, axis: int, cut: int, upper: int) -> None:
    """Leave the first `cut` slabs of the box to it and give the others to box `upper`."""
    outer, width, inner = layout(boxes, box, axis)
    middle = _part_runs(boxes, boxes.starts[box], outer, cut * inner, (width - cut) * inner)
    boxes.starts[upper] = middle
    boxes.widths[upper] = boxes.widths[box]
    boxes.widths[upper, axis] = width - cut
    boxes.widths[box, axis] = cut


@compiled
def _part_runs(boxes: Boxes, start: int, runs: int, kept: int, moved: int) -> int:
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
