"""The fit finds the least loss there is, repeats itself to the bit, and starts where the last one ended."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from support.small_models import (
    SEEDS,
    UNHURRIED,
    cliques_of,
    domain_of,
    domains,
    loss_of,
    measurements_of,
    partitions,
    query_matrix,
    rng_of,
)

from ppsyn.arrays import Ints
from ppsyn.domain import Clique, Domain
from ppsyn.model.compression import Compression
from ppsyn.model.estimation import Effort, estimate_total, fit
from ppsyn.model.graphical_model import uniform_model
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition, equal_width, finest

BRIEF, THOROUGH = Effort(30, 1e-4), Effort(5000, 1e-12)
UNSTARTED = Effort(0, 1e-4)
Case = tuple[Domain, tuple[Measurement, ...]]


@st.composite
def cases(draw: st.DrawFn, most: int = 5, size: int = 4) -> Case:
    domain = draw(domains(most, size))
    return domain, draw(measurements_of(domain))


def exact(domain: Domain, joint: Ints, clique: Clique, partition: Partition | None = None) -> Measurement:
    """A measurement whose noise happened to be zero."""
    partition = partition or finest(domain.size(clique))
    counts = np.rint(query_matrix(domain, clique, partition) @ joint.ravel()).astype(np.int64)
    return Measurement(clique, partition, counts, 1.0)


def least_loss(domain: Domain, measurements: Sequence[Measurement]) -> float:
    """The least loss of any table with the measurements' total, by non-negative least squares on its cells."""
    heavy = 1e4 * max(1 / m.sigma for m in measurements)
    rows = [query_matrix(domain, m.clique, m.partition) / m.sigma for m in measurements]
    right = [m.noisy_counts / m.sigma for m in measurements]
    cells = np.full((1, domain.size(domain.names)), heavy)
    matrix, target = np.vstack([*rows, cells]), np.concatenate([*right, [heavy * estimate_total(measurements)]])
    return loss_of(domain, nnls(matrix, target, maxiter=10_000)[0], measurements)


@UNHURRIED
@given(domains(), st.data())
def test_noiseless_measurements_are_recovered(domain: Domain, data: st.DataObject) -> None:
    joint = rng_of(data.draw(SEEDS)).integers(1, 20, domain.shape(domain.names))
    measurements = [exact(domain, joint, clique) for clique in data.draw(cliques_of(domain, least=1))]
    found = fit(measurements, uniform_model(Compression(domain)), THOROUGH)
    assert found.model.total == pytest.approx(joint.sum(), rel=1e-12)
    for m in measurements:
        np.testing.assert_allclose(found.model.project(m.clique).ravel(), m.noisy_counts, atol=1e-2)


@UNHURRIED
@given(cases(), st.integers(0, 30))
def test_the_loss_is_never_above_the_start(case: Case, iterations: int) -> None:
    domain, measurements = case
    start = fit(measurements, uniform_model(Compression(domain)), UNSTARTED)
    first = fit(measurements, uniform_model(Compression(domain)), Effort(iterations, 1e-4))
    second = fit(measurements, first.model, Effort(iterations, 1e-4))
    assert second.loss <= first.loss <= start.loss
    assert first.iterations <= iterations


@UNHURRIED
@given(cases())
def test_the_reported_loss_is_that_of_the_models_marginals(case: Case) -> None:
    domain, measurements = case
    found = fit(measurements, uniform_model(Compression(domain)), BRIEF)
    assert found.loss == pytest.approx(loss_of(domain, found.model.project(domain.names), measurements), rel=1e-6)


@UNHURRIED
@given(cases())
def test_equal_input_gives_equal_bits(case: Case) -> None:
    domain, measurements = case
    left, right = (fit(measurements, uniform_model(Compression(domain)), BRIEF) for _ in range(2))
    left, right = (fit(measurements, found.model, BRIEF) for found in (left, right))
    assert (left.loss, left.iterations, left.model.step) == (right.loss, right.iterations, right.model.step)
    assert [b.tobytes() for b in left.model.beliefs] == [b.tobytes() for b in right.model.beliefs]
    assert [t.tobytes() for t in left.model.potentials.values()] == [
        t.tobytes() for t in right.model.potentials.values()
    ]


@UNHURRIED
@given(cases(most=3, size=3))
def test_no_table_of_the_same_total_has_less_loss(case: Case) -> None:
    domain, measurements = case
    least = least_loss(domain, measurements)
    found = fit(measurements, uniform_model(Compression(domain)), Effort(20_000, 1e-9))
    assert found.loss == pytest.approx(least, rel=1e-3, abs=1e-3)


@UNHURRIED
@given(cases(most=4), st.data())
def test_a_group_measurement_scales_each_group_of_the_model_by_one_factor(case: Case, data: st.DataObject) -> None:
    domain, measurements = case
    known = fit(measurements, uniform_model(Compression(domain)), BRIEF).model
    partition = data.draw(partitions(domain.size(domain.names)))
    counts = rng_of(data.draw(SEEDS)).integers(1, 1000, partition.count)
    moved = fit([Measurement(domain.names, partition, counts, 1.0)], known, BRIEF).model
    before, after = known.project(domain.names).ravel(), moved.project(domain.names).ravel()
    for group in range(partition.count):
        inside = (partition.groups == group) & (before > 1e-9)
        factors = after[inside] / before[inside]
        assert np.ptp(factors) <= 1e-6 * factors.max() if factors.size else True


def test_groups_are_spread_as_evenly_as_what_is_known_allows() -> None:
    domain = domain_of(a=6)
    thirds = Measurement(("a",), equal_width(6, 3), np.array([60, 30, 10]), 1.0)
    found = fit([thirds], uniform_model(Compression(domain)), THOROUGH)
    np.testing.assert_allclose(found.model.project(("a",)), [30, 30, 15, 15, 5, 5], rtol=1e-5)


def test_measurements_of_one_marginal_are_weighted_by_inverse_variance() -> None:
    domain = domain_of(a=2)
    counts = [np.array([70, 30]), np.array([40, 60])]
    measurements = [Measurement(("a",), finest(2), c, s) for c, s in zip(counts, (1.0, 2.0), strict=True)]
    found = fit(measurements, uniform_model(Compression(domain)), THOROUGH)
    np.testing.assert_allclose(found.model.project(("a",)), [64, 36], rtol=1e-6)


def test_the_total_is_weighted_by_the_variance_of_each_sum() -> None:
    fine = Measurement(("a",), finest(4), np.array([10, 20, 30, 40]), 2.0)  # sum 100, variance 16
    coarse = Measurement(("a",), equal_width(4, 2), np.array([60, 60]), 4.0)  # sum 120, variance 32
    assert estimate_total([fine, coarse]) == pytest.approx((100 / 16 + 120 / 32) / (1 / 16 + 1 / 32), rel=1e-12)


@pytest.mark.parametrize("counts", [[0, 0], [-30, 10]])
def test_the_total_is_at_least_one(counts: list[int]) -> None:
    measured = Measurement(("a",), finest(2), np.array(counts), 10.0)
    assert estimate_total([measured]) == 1.0
    found = fit([measured], uniform_model(Compression(domain_of(a=2))), THOROUGH)
    assert np.isfinite(found.loss)
    assert found.model.project(("a",)).sum() == pytest.approx(1.0)


def test_without_measurements_the_model_is_uniform() -> None:
    found = fit([], uniform_model(Compression(domain_of(a=4))), BRIEF)
    assert (estimate_total([]), found.loss, found.iterations) == (1.0, 0.0, 0)
    np.testing.assert_allclose(found.model.project(("a",)), 0.25)


@UNHURRIED
@given(cases(), st.data())
def test_a_warm_start_on_more_cliques_begins_with_the_same_distribution(case: Case, data: st.DataObject) -> None:
    domain, measurements = case
    warm = fit(measurements, uniform_model(Compression(domain)), BRIEF).model
    more = [*measurements, *data.draw(measurements_of(domain))]
    begun = fit(more, warm, UNSTARTED).model
    scale = begun.total / warm.total
    joint = warm.project(domain.names)
    np.testing.assert_allclose(begun.project(domain.names), joint * scale, rtol=1e-7, atol=1e-9 * begun.total)


@UNHURRIED
@given(cases())
def test_a_finished_fit_is_where_its_own_warm_start_stays(case: Case) -> None:
    domain, measurements = case
    first = fit(measurements, uniform_model(Compression(domain)), THOROUGH)
    again = fit(measurements, first.model, BRIEF)
    assert again.loss <= first.loss
    joint = first.model.project(domain.names)
    np.testing.assert_allclose(again.model.project(domain.names), joint, atol=5e-3 * first.model.total)


@UNHURRIED
@given(cases())
def test_an_attribute_that_was_never_measured_stays_uniform_and_independent(case: Case) -> None:
    domain, measurements = case
    lost = next((name for name in domain.names if not any(name in m.clique for m in measurements)), None)
    model = fit(measurements, uniform_model(Compression(domain)), BRIEF).model
    if lost is not None:
        others = tuple(name for name in domain.names if name != lost)
        axis, size = domain.rank[lost], domain[lost].size
        expected = np.repeat(np.expand_dims(model.project(others) / size, axis), size, axis) if others else None
        joint = model.project(domain.names)
        np.testing.assert_allclose(joint, model.total / size if expected is None else expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1e3, 1e5])
def test_the_first_step_suits_any_scale_of_noise(sigma: float) -> None:
    domain = domain_of(a=2)
    found = fit(
        [Measurement(("a",), finest(2), np.array([90_000, 10_000]), sigma)],
        uniform_model(Compression(domain)),
        Effort(400, 1e-4),
    )
    np.testing.assert_allclose(found.model.project(("a",)), [90_000, 10_000], rtol=1e-3)


@pytest.mark.parametrize("counts", [[500, 500], [1000]])
def test_a_fit_that_had_nothing_to_learn_does_not_hinder_the_next(counts: list[int]) -> None:
    domain = domain_of(a=2, b=2)
    told_nothing = Measurement(("a",), equal_width(2, len(counts)), np.array(counts), 1.0)
    warm = fit([told_nothing], uniform_model(Compression(domain)), Effort(400, 1e-4)).model
    measured = Measurement(("b",), finest(2), np.array([900, 100]), 1.0)
    found = fit([told_nothing, measured], warm, Effort(400, 1e-4))
    np.testing.assert_allclose(found.model.project(("b",)), [900, 100], rtol=1e-3)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (1e-2, 1e3),
        (1e3, 1e-2),
    ],
)
def test_a_warm_start_suits_measurements_of_quite_another_scale_of_noise(before: float, after: float) -> None:
    domain = domain_of(a=2, b=2)
    first = Measurement(("a",), finest(2), np.array([510, 490]), before)
    second = Measurement(("b",), finest(2), np.array([900, 100]), after)
    warm = fit([first], uniform_model(Compression(domain)), Effort(400, 1e-4)).model
    found = fit([first, second], warm, Effort(400, 1e-4))
    np.testing.assert_allclose(found.model.project(("b",)), [900, 100], rtol=1e-3)


def test_a_fit_that_went_to_the_end_does_not_slow_the_next() -> None:
    domain = domain_of(a=2, b=3)
    known = [Measurement(("a",), finest(2), np.array(counts), 10.0) for counts in ([700, 300], [650, 300])]
    measurements = [*known, Measurement(("b",), finest(3), np.array([600, 300, 100]), 10.0)]
    warm = fit(known, uniform_model(Compression(domain)), Effort(2000, 0.0)).model
    assert (
        fit(measurements, warm, BRIEF).loss <= 1.001 * fit(measurements, uniform_model(Compression(domain)), BRIEF).loss
    )


def test_cells_without_a_count_fade_and_nothing_overflows() -> None:
    domain = domain_of(a=3, b=3, c=3)
    diagonal = np.diag([1000, 2000, 0]).ravel()
    measurements = [Measurement(pair, finest(9), diagonal, 0.1) for pair in [("a", "b"), ("b", "c"), ("a", "c")]]
    found = fit(measurements, uniform_model(Compression(domain)), Effort(3000, 1e-12))
    assert all(np.isfinite(belief).all() for belief in found.model.beliefs)
    np.testing.assert_allclose(found.model.project(("a", "c")).ravel(), diagonal, atol=1.0)
