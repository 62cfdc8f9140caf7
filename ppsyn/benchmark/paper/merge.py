"""Algorithm 3: merge the cells of a one-way marginal."""

import heapq

import numpy as np

from ppsyn.arrays import Floats, Ints
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
    heap = [(_error(ascending, below, left, left + 2), left, left + 1, left + 2) for left in range(size - 1)]
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
            rise = _error(ascending, below, before, right) - errors[before] - errors[left]
            heapq.heappush(heap, (rise, before, left, right))
        if right < size:
            after = ends[right]
            rise = _error(ascending, below, left, after) - errors[left] - errors[right]
            heapq.heappush(heap, (rise, left, right, after))
    return removed, rises


@compiled
def _error(ascending: Floats, below: Floats, left: int, right: int) -> float:
    """L1 distance of an interval from its mean: twice what its lower cells lack."""
    if ascending[left] == ascending[right - 1]:
        return 0.0
    mean: float = (below[right] - below[left]) / (right - left)
    lower = int(np.searchsorted(ascending[left:right], mean))
    return 2 * max(mean * lower - (below[left + lower] - below[left]), 0.0)
