"""The required budget, and where it says to stop."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ppsyn.benchmark.paper.merge_split import merge_sequence, split_sequence
from ppsyn.benchmark.paper.sequence import (
    PartitionSequence,
    least_total_error,
    required_rho,
    stopping_point,
)
from ppsyn.mechanisms.base import NOISE_L1

UNHURRIED = settings(deadline=None, max_examples=50)  # the first call compiles
counts = arrays(np.float64, st.integers(1, 30), elements=st.integers(0, 300).map(float))


def sequence_of(sizes: list[int], errors: list[float]) -> PartitionSequence:
    """A sequence known by its sizes and errors alone."""
    nothing = np.empty(0, np.int64)
    return PartitionSequence(nothing.astype(np.int32), nothing, np.array(sizes), np.array(errors))


@pytest.fixture
def hours_per_week() -> np.ndarray:
    """99 cells: most people work 40 hours, the others are spread smoothly."""
    counts = 600 * np.exp(-(((np.arange(1, 100) - 42) / 14) ** 2))
    counts[39] = 15_000.0
    return counts


@given(st.integers(1, 10_000), st.floats(1, 1e6), st.floats(0, 0.99))
def test_at_the_required_budget_noise_and_error_come_to_the_tolerance(size: int, tolerance: float, part: float) -> None:
    rho = required_rho(np.array([size]), tolerance, np.array([part * tolerance]))[0]
    sigma = 1 / math.sqrt(2 * rho)
    assert math.isclose(part * tolerance + NOISE_L1 * sigma * size, tolerance)


@pytest.mark.parametrize("error", [10.0, 11.0])
def test_no_budget_buys_a_tolerance_that_the_error_takes_up(error: float) -> None:
    assert required_rho(np.array([1]), 10.0, np.array([error]))[0] == math.inf


def test_the_required_budget_of_hours_per_week_falls_and_then_rises(hours_per_week: np.ndarray) -> None:
    sequence = merge_sequence(hours_per_week)
    tolerance = 0.7 * 5_000
    rho = required_rho(sequence.sizes, tolerance, sequence.errors)
    stop = stopping_point(sequence, tolerance)
    assert 1 < sequence.sizes[stop] < 99
    assert np.all(np.diff(rho[: stop + 1]) <= 0)
    assert rho[stop] < rho[stop + 1]
    assert rho[stop] < rho[0] / 10
    assert rho[-1] == math.inf


def test_a_merge_stops_before_the_first_rise_even_if_the_budget_falls_again() -> None:
    sequence = sequence_of([4, 3, 2, 1], [0.0, 1.0, 5.0, 5.0])
    assert required_rho(sequence.sizes, 9.0, sequence.errors).argmin() == 3
    assert stopping_point(sequence, 9.0) == 1


def test_a_split_does_not_stop_before_the_tolerance_is_met() -> None:
    assert stopping_point(sequence_of([1, 2, 3, 4, 5], [40.0, 30.0, 8.0, 1.0, 0.9]), 10.0) == 3


def test_without_a_rise_the_last_partition_is_taken() -> None:
    assert stopping_point(sequence_of([3, 2, 1], [0.0, 0.0, 0.0]), 1.0) == 2


def test_a_tolerance_nothing_meets_gives_the_least_error() -> None:
    assert stopping_point(sequence_of([3, 2, 1], [0.0, 1.0, 2.0]), 0.0) == 0
    assert stopping_point(sequence_of([1, 2, 3], [9.0, 8.0, 7.0]), 5.0) == 2


@UNHURRIED
@given(counts, st.floats(0.01, 100))
def test_the_least_total_error_is_the_smallest_tolerance_the_budget_meets(expected: np.ndarray, sigma: float) -> None:
    for sequence in (merge_sequence(expected), split_sequence(expected, expected.size)):
        best = least_total_error(sequence, sigma)
        tolerance = float(sequence.errors[best] + NOISE_L1 * sigma * sequence.sizes[best])
        rho = required_rho(sequence.sizes, tolerance, sequence.errors)
        assert math.isclose(rho[best], 1 / (2 * sigma**2), rel_tol=1e-6)
        assert rho[best] <= rho.min() * (1 + 1e-6)


def test_of_equal_totals_the_fewest_groups_win() -> None:
    errors = [NOISE_L1 * size for size in (0, 1, 2)]
    assert least_total_error(sequence_of([3, 2, 1], errors), 1.0) == 2
    assert least_total_error(sequence_of([1, 2, 3], errors[::-1]), 1.0) == 0
