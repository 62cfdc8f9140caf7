"""The loss and its slope, as the kernel computes them, equal those of the full joint distribution."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.small_models import (
    SEEDS,
    UNHURRIED,
    cliques_of,
    domain_of,
    domains,
    joint_of,
    loss_of,
    marginal_of,
    measurements_of,
    query_matrix,
    random_potentials,
    rng_of,
)

from ppsyn.arrays import Floats
from ppsyn.domain import Clique, Domain, downward_closure, maximal
from ppsyn.model import kernel
from ppsyn.model.graphical_model import flatten, unflatten
from ppsyn.model.inference_plan import build, cell_index, flat, unflat
from ppsyn.model.junction_tree import junction_tree
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition, finest

TOTAL = 1234.5
Case = tuple[Domain, tuple[Measurement, ...]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    domain = draw(domains())
    return domain, draw(measurements_of(domain))


class Inference:
    """A program of measurements and what `infer` makes of potentials, all in the order of the cliques' tables."""

    def __init__(self, domain: Domain, cliques: tuple[Clique, ...], measurements: Sequence[Measurement]) -> None:
        self.domain, self.cliques = domain, cliques
        self.program = build(junction_tree(domain, cliques), cliques, measurements)
        self.ends = np.cumsum([domain.size(clique) for clique in cliques])

    def __call__(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """The loss, the marginals of the cliques with potentials, and the slope in them."""
        beliefs = np.full(self.program.node_start[-1], np.nan)
        marginals, slope = (np.full(self.program.marginals, np.nan) for _ in range(2))
        loss = kernel.infer(self.program, self._into_buffer(theta), TOTAL, beliefs, marginals, slope)
        return loss, self._out_of_buffer(marginals), self._out_of_buffer(slope)

    def _into_buffer(self, theta: Floats) -> Floats:
        parts = zip(self.cliques, np.split(theta, self.ends[:-1]), strict=True)
        return flatten(self.cliques, {clique: part.reshape(self.domain.shape(clique)) for clique, part in parts})

    def _out_of_buffer(self, buffer: Floats) -> Floats:
        tables = unflatten(self.domain, self.cliques, buffer[: self.ends[-1]])
        return np.concatenate([table.ravel() for table in tables])


def inference_of(case: Case, seed: int) -> tuple[Inference, Floats, Floats]:
    """An inference, random potentials for it, and the joint distribution they stand for."""
    domain, measurements = case
    cliques = maximal(m.clique for m in measurements)
    potentials = random_potentials(domain, cliques, 2.0, seed)
    joint = joint_of(domain, potentials, TOTAL)
    theta = np.concatenate([potentials[clique].ravel() for clique in cliques])
    return Inference(domain, cliques, measurements), theta, joint


@UNHURRIED
@given(cases(), SEEDS)
def test_the_loss_is_half_the_weighted_squared_residuals(case: Case, seed: int) -> None:
    infer, theta, joint = inference_of(case, seed)
    assert infer(theta)[0] == pytest.approx(loss_of(case[0], joint, case[1]), rel=1e-9)


@UNHURRIED
@given(cases(), SEEDS)
def test_the_marginals_of_the_potentials_cliques_stand_in_the_buffer(case: Case, seed: int) -> None:
    infer, theta, joint = inference_of(case, seed)
    cliques = maximal(m.clique for m in case[1])
    expected = np.concatenate([marginal_of(case[0], joint, clique).ravel() for clique in cliques])
    np.testing.assert_allclose(infer(theta)[1], expected, rtol=1e-9)


@UNHURRIED
@given(cases(), SEEDS)
def test_the_slope_over_one_clique_is_that_of_the_query_matrices(case: Case, seed: int) -> None:
    domain, measurements = case
    infer = Inference(domain, (domain.names,), measurements)
    theta = rng_of(seed).normal(size=domain.size(domain.names))
    _, marginal, slope = infer(theta)
    expected = np.zeros_like(slope)
    for m in measurements:
        matrix = query_matrix(domain, m.clique, m.partition)
        expected += matrix.T @ (matrix @ marginal - m.noisy_counts) / m.sigma**2
    np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@UNHURRIED
@given(cases(), SEEDS)
def test_the_slope_agrees_with_finite_differences_along_the_marginals(case: Case, seed: int) -> None:
    infer, theta, _ = inference_of(case, seed)
    towards = rng_of(seed + 1).normal(size=theta.size) * 1e-4
    after, before = infer(theta + towards), infer(theta - towards)
    slope = infer(theta)[2]
    scale = float(np.abs(slope) @ np.abs(after[1] - before[1])) + 1e-9 * after[0]
    assert after[0] - before[0] == pytest.approx(float(slope @ (after[1] - before[1])), abs=1e-4 * scale)


def test_equal_measurements_taken_twice_double_the_loss_and_the_slope() -> None:
    domain = domain_of(a=3, b=4)
    groups = Partition(np.array([0, 1, 1, 0] * 3, np.int32), 2)
    measured = Measurement(("a", "b"), groups, np.array([700, 300]), 3.0)
    theta = rng_of(1).normal(size=12)
    once, twice = (Inference(domain, (("a", "b"),), [measured] * times)(theta) for times in (1, 2))
    assert twice[0] == pytest.approx(2 * once[0], rel=1e-12)
    np.testing.assert_allclose(twice[2], 2 * once[2], rtol=1e-12)


def test_cells_measured_in_another_order_are_not_taken_for_the_marginal_itself() -> None:
    domain = domain_of(a=3)
    backwards = Partition(np.array([2, 1, 0], np.int32), 3)
    theta, counts = np.array([1.0, 0.0, -1.0]), np.array([900, 300, 34])
    forwards = Inference(domain, (("a",),), [Measurement(("a",), finest(3), counts, 1.0)])(theta)
    reversed_ = Inference(domain, (("a",),), [Measurement(("a",), backwards, counts[::-1].copy(), 1.0)])(theta)
    assert reversed_[0] == pytest.approx(forwards[0], rel=1e-12)
    np.testing.assert_allclose(reversed_[2], forwards[2], rtol=1e-9)


@UNHURRIED
@given(domains(), st.data())
def test_a_cell_index_sums_a_table_to_its_inner_clique(domain: Domain, data: st.DataObject) -> None:
    outer = domain.clique(data.draw(st.sets(st.sampled_from(domain.names), min_size=1)))
    inner = tuple(name for name in outer if data.draw(st.booleans()))
    table = rng_of(data.draw(SEEDS)).random(domain.shape(outer))
    summed = np.bincount(cell_index(domain, outer, inner), weights=table.ravel(), minlength=domain.size(inner))
    axes = tuple(axis for axis, name in enumerate(outer) if name not in inner)
    np.testing.assert_allclose(summed, table.sum(axis=axes).ravel())


def long_rows() -> st.SearchStrategy[Domain]:
    """Attributes large enough that the kernel's rows keep, sum out or mix them."""
    return domains(most=4, size=20)


def uncounted(domain: Domain, cliques: Sequence[Clique]) -> list[Measurement]:
    """Measurements of all cells, with nothing in them."""
    sizes = [domain.size(clique) for clique in cliques]
    return [Measurement(c, finest(size), np.zeros(size, np.int64), 1.0) for c, size in zip(cliques, sizes, strict=True)]


@UNHURRIED
@given(long_rows(), st.data(), SEEDS)
def test_marginals_of_long_rows_are_those_of_the_joint(domain: Domain, data: st.DataObject, seed: int) -> None:
    cliques = maximal(data.draw(cliques_of(domain, least=1)))
    potentials = random_potentials(domain, cliques, 2.0, seed)
    joint = joint_of(domain, potentials, TOTAL)
    infer = Inference(domain, cliques, uncounted(domain, downward_closure(cliques)))
    loss, marginals, _ = infer(np.concatenate([potentials[clique].ravel() for clique in cliques]))
    expected = np.concatenate([marginal_of(domain, joint, clique).ravel() for clique in cliques])
    np.testing.assert_allclose(marginals, expected, rtol=1e-9)
    squares = sum(float((marginal_of(domain, joint, clique) ** 2).sum()) for clique in downward_closure(cliques))
    assert loss == pytest.approx(0.5 * squares, rel=1e-9)


@UNHURRIED
@given(long_rows(), st.data(), SEEDS)
def test_the_slope_of_long_rows_adds_up_all_marginals(domain: Domain, data: st.DataObject, seed: int) -> None:
    cliques = downward_closure(data.draw(cliques_of(domain, least=1)))
    infer = Inference(domain, (domain.names,), uncounted(domain, cliques))
    _, joint, slope = infer(rng_of(seed).normal(size=domain.size(domain.names)))
    expected, joint = np.zeros(domain.shape(domain.names)), joint.reshape(domain.shape(domain.names))
    for clique in cliques:
        gone = tuple(axis for axis, name in enumerate(domain.names) if name not in clique)
        expected += joint.sum(axis=gone, keepdims=True)
    np.testing.assert_allclose(slope, expected.ravel(), rtol=1e-9)


@given(st.floats(-708.0, 0.0))
def test_the_exponential_is_exact_to_the_last_digit_or_two(x: float) -> None:
    assert kernel.exp(x) == pytest.approx(math.exp(x), rel=3e-16, abs=0.0)


def test_the_exponential_of_zero_is_one_and_what_is_no_number_stays_none() -> None:
    assert kernel.exp(0.0) == kernel.exp(-0.0) == 1.0
    assert kernel.exp(np.nextafter(-708.0, -math.inf)) == kernel.exp(-1e300) == kernel.exp(-math.inf) == 0.0
    assert math.isnan(kernel.exp(math.nan))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_potentials_that_are_no_finite_numbers_are_refused(bad: float) -> None:
    infer = Inference(domain_of(a=3, b=20, c=2), (("a", "b"), ("b", "c")), [])
    for at in (0, 59, 60, 99):
        theta = np.zeros(100)
        theta[at] = bad
        assert infer(theta)[0] == math.inf


@UNHURRIED
@given(domains())
def test_a_table_survives_the_way_through_the_buffer(domain: Domain) -> None:
    table = np.arange(float(domain.size(domain.names))).reshape(domain.shape(domain.names))
    assert np.array_equal(unflat(flat(table), table.shape), table)
