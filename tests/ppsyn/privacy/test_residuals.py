"""Residuals: what is left of counts when all functions of one axis are taken out."""

import math
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ppsyn.privacy.residuals import UNIT, centred, exact_residuals, residual_sensitivity

grids = st.lists(st.integers(2, 5), min_size=2, max_size=4).map(tuple)
UNHURRIED = settings(deadline=None, max_examples=60)


def counts_on(axes: tuple[int, ...], data: st.DataObject) -> np.ndarray:
    size = math.prod(axes)
    return np.array(data.draw(st.lists(st.integers(0, 10**6), min_size=size, max_size=size)), np.int64)


def dense(axes: tuple[int, ...]) -> np.ndarray:
    """The projection, from its definition: orthogonal to the indicator of every slice."""
    places = np.array(list(product(*map(range, axes))))
    indicators = np.concatenate(
        [(places[:, [axis]] == np.arange(slices)).astype(float) for axis, slices in enumerate(axes)], axis=1
    )
    basis, sizes, _ = np.linalg.svd(indicators, full_matrices=False)
    basis = basis[:, sizes > 1e-9]
    return np.eye(len(places)) - basis @ basis.T


@UNHURRIED
@given(grids, st.data())
def test_exact_residuals_are_the_projection_in_integers(axes: tuple[int, ...], data: st.DataObject) -> None:
    counts = counts_on(axes, data)
    wanted = dense(axes) @ counts
    np.testing.assert_allclose(exact_residuals(counts, axes) / (UNIT * counts.size), wanted, atol=1e-6)
    np.testing.assert_allclose(centred(counts.astype(float), axes), wanted, atol=1e-6)


@UNHURRIED
@given(grids)
def test_a_row_moves_residuals_by_the_norm_of_its_column_rounded_up(axes: tuple[int, ...]) -> None:
    columns = np.array([exact_residuals(row, axes) for row in np.eye(math.prod(axes), dtype=np.int64)], dtype=object)
    squared = {int((column * column).sum()) for column in columns}
    assert len(squared) == 1
    (moved,) = squared
    assert (residual_sensitivity(axes) - 1) ** 2 < moved <= residual_sensitivity(axes) ** 2
