"""The ways to partition a marginal, by name."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from ppsyn.arrays import Floats
from ppsyn.mechanisms.partitions.balanced import split_balanced
from ppsyn.mechanisms.partitions.grid import split_grid
from ppsyn.mechanisms.partitions.merge import merge_sequence
from ppsyn.mechanisms.partitions.order import partition_in_order
from ppsyn.mechanisms.partitions.sequence import NOISE_L1, least_total_error
from ppsyn.mechanisms.partitions.split import split_sequence
from ppsyn.privacy.partition import Partition, distinct, finest


class Strategy(Protocol):
    """Gives the candidate partitions of a marginal."""

    def __call__(
        self, expected: Floats, is_ordered: tuple[bool, ...], sigma: float, levels: tuple[float, ...]
    ) -> tuple[Partition, ...]:
        """Partition a marginal at several granularities.

        Args:
            expected: The model's counts, as an array with one axis per attribute.
            is_ordered: Whether neighbouring codes of each attribute are neighbours in meaning.
            sigma: The scale of the noise that each group would carry.
            levels: The granularities, in units of that noise; higher is coarser.

        Returns:
            Distinct partitions; there may be none of several attributes together, where
            they cannot be told apart above the noise.
        """
        ...


def partition_grid(
    expected: Floats, is_ordered: tuple[bool, ...], sigma: float, levels: tuple[float, ...]
) -> tuple[Partition, ...]:
    """Grids of on average level * sigma expected rows a box in every slice; single attributes as balanced boxes."""
    if expected.ndim == 1:
        return partition_balanced(expected, is_ordered, sigma, levels)

    def build(arranged: Floats) -> Iterable[Partition]:
        grids = (split_grid(arranged, level * sigma) for level in levels)
        return (grid for grid in grids if grid is not None)

    return distinct(partition_in_order(expected, is_ordered, build))


def partition_balanced(
    expected: Floats, is_ordered: tuple[bool, ...], sigma: float, levels: tuple[float, ...]
) -> tuple[Partition, ...]:
    """Boxes of at least level * sigma expected rows, so that counts stand above the noise."""

    def build(arranged: Floats) -> Iterable[Partition]:
        return (split_balanced(arranged, level * sigma) for level in levels)

    return _with_finest(expected.size, partition_in_order(expected, is_ordered, build))


def partition_merge_split(
    expected: Floats, is_ordered: tuple[bool, ...], sigma: float, levels: tuple[float, ...]
) -> tuple[Partition, ...]:
    """Algorithm 3 for one attribute, Algorithm 4 for more, on the model's counts.

    The paper seeks the least budget for a tolerance eta * Contr. Contr is private
    and the budget of a round is fixed, so the question is turned round: which
    partition meets the smallest tolerance at this budget? The one with the least
    RE + sqrt(2/pi) * sigma * |P| (`least_total_error`). A level stands for noise
    that many times as large: the higher, the fewer groups.
    """
    if not levels:
        return (finest(expected.size),)
    price = NOISE_L1 * sigma * min(levels)

    def build(arranged: Floats) -> Iterable[Partition]:
        one_way = arranged.ndim == 1
        sequence = merge_sequence(arranged) if one_way else split_sequence(arranged, arranged.size, price)
        stops = dict.fromkeys(least_total_error(sequence, level * sigma) for level in levels)
        return (sequence.partition_at(index) for index in stops)

    return _with_finest(expected.size, partition_in_order(expected, is_ordered, build))


def keep_cells(
    expected: Floats, is_ordered: tuple[bool, ...], sigma: float, levels: tuple[float, ...]
) -> tuple[Partition, ...]:
    """No partition: the cells themselves."""
    return (finest(expected.size),)


def _with_finest(cells: int, partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    return distinct((finest(cells), *(partition for partition in partitions if partition.count > 1)))


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {"grid": partition_grid, "balanced": partition_balanced, "merge-split": partition_merge_split, "cells": keep_cells}
)
"""The strategies a configuration may name."""
