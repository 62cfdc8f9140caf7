"""The ways to partition a marginal, by name: our own, and those that it was compared with."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ppsyn.arrays import Floats
from ppsyn.benchmark.paper.balanced import split_balanced
from ppsyn.benchmark.paper.merge import merge_sequence
from ppsyn.benchmark.paper.sequence import least_total_error
from ppsyn.benchmark.paper.split import split_sequence
from ppsyn.mechanisms.base import NOISE_L1
from ppsyn.mechanisms.grid import Strategy, partition_grid, partition_in_order, with_finest
from ppsyn.privacy.partition import Partition, finest


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
