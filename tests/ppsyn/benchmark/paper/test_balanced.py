"""The balanced split against a slow reference, and what it promises."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ppsyn.benchmark.paper.strategies import split_balanced
from ppsyn.privacy.partition import finest, number_groups

UNHURRIED = settings(deadline=None, max_examples=50)  # the first call compiles
shapes = array_shapes(min_dims=1, max_dims=6, max_side=4)
counts = st.sampled_from([0.0, -0.0]) | st.integers(0, 300).map(float)
marginals = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=counts))
leasts = st.integers(1, 500).map(float)


def slow_boxes(expected: np.ndarray, box: list[range], turn: int, least: float) -> list[list[range]]:
    """The definition, read aloud."""
    total = expected[np.ix_(*box)].sum()
    for axis in (*range(turn, len(box)), *range(turn)):
        halves = []
        for cut in range(box[axis].start + 1, box[axis].stop):
            low = [*box[:axis], range(box[axis].start, cut), *box[axis + 1 :]]
            high = [*box[:axis], range(cut, box[axis].stop), *box[axis + 1 :]]
            below = expected[np.ix_(*low)].sum()
            if min(below, total - below) >= least:
                halves.append((abs(total - 2 * below), cut, low, high))
        if halves:
            _, _, low, high = min(halves, key=lambda half: half[:2])
            after = (axis + 1) % len(box)
            return slow_boxes(expected, low, after, least) + slow_boxes(expected, high, after, least)
    return [box]


@UNHURRIED
@given(marginals, leasts)
def test_it_agrees_with_a_slow_reading_of_the_definition(expected: np.ndarray, least: float) -> None:
    labels = np.empty(expected.shape, np.int32)
    for label, box in enumerate(slow_boxes(expected, [range(size) for size in expected.shape], 0, least)):
        labels[np.ix_(*box)] = label
    assert split_balanced(expected, least) == number_groups(labels.ravel())


@UNHURRIED
@given(marginals, leasts)
def test_every_group_is_a_box(expected: np.ndarray, least: float) -> None:
    partition = split_balanced(expected, least)
    for group in range(partition.count):
        codes = np.argwhere(partition.groups.reshape(expected.shape) == group)
        assert np.prod(codes.max(0) - codes.min(0) + 1) == len(codes)


@UNHURRIED
@given(shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=st.floats(0, 1e6))), st.floats(1e-3, 1e6))
def test_if_anything_was_split_every_group_keeps_the_least_rows(expected: np.ndarray, least: float) -> None:
    partition = split_balanced(expected, least)
    assert partition.count == 1 or partition.sum_expected(expected).min() >= least - 1e-9 * expected.sum()


@UNHURRIED
@given(shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=st.floats(0, 1e6))), st.floats(1e-3, 1e6))
def test_equal_input_gives_equal_output_and_is_left_alone(expected: np.ndarray, least: float) -> None:
    before = expected.copy()
    partition = split_balanced(expected, least)
    assert partition == split_balanced(np.asfortranarray(expected), least)
    assert np.array_equal(expected, before)


def test_axes_take_turns() -> None:
    partition = split_balanced(np.ones((4, 4)), 4.0)
    assert partition.groups.reshape(4, 4).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]


def test_the_first_of_equally_balanced_cuts_is_taken() -> None:
    assert split_balanced(np.array([2.0, 0.0, 2.0]), 2.0).groups.tolist() == [0, 1, 1]


def test_an_axis_of_one_code_passes_its_turn() -> None:
    assert split_balanced(np.ones((1, 2, 1, 3, 1)), 1.0) == finest(6)


@pytest.mark.parametrize("expected", [np.zeros((3, 4)), -np.zeros((3, 4)), np.eye(1, 12).reshape(3, 4) * 1e6])
def test_what_cannot_be_halved_stays_whole(expected: np.ndarray) -> None:
    assert split_balanced(expected, 1.0).count == 1


def test_one_cell_is_one_group() -> None:
    assert split_balanced(np.array([[5.0]]), 1.0) == finest(1)


def test_enough_rows_everywhere_give_the_cells() -> None:
    for shape in product((1, 3), (2, 4), (5,)):
        assert split_balanced(np.full(shape, 2.0), 2.0) == finest(int(np.prod(shape)))
