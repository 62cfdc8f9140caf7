"""What goes to mbi comes back the same, and mbi's estimator and ours find the same model."""

import os
import subprocess
import sys
from collections.abc import Callable

import jax
import mbi
import numpy as np
import pytest
from support.small_models import domain_of, joint_of, loss_of, query_matrix, random_potentials, rng_of, total_variation

from ppsyn.domain import Clique, Domain
from ppsyn.model import mbi_adapter as exchange
from ppsyn.model.compression import Compression
from ppsyn.model.estimation import ENGINES, Effort
from ppsyn.model.graphical_model import GraphicalModel, calibrate, uniform_model
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition, equal_width, finest

DOMAIN = domain_of(c=3, a=2, d=4, b=3)
CLIQUES: list[Clique] = [("c", "a"), ("a", "d"), ("b",)]


def model_of(cliques: list[Clique], seed: int = 1) -> GraphicalModel:
    return calibrate(Compression(DOMAIN), random_potentials(DOMAIN, cliques, 2.0, seed), 500.0, 0.0)


def noisy(domain: Domain, clique: Clique, partition: Partition, sigma: float, seed: int) -> Measurement:
    """Noisy group counts of a table that is the same for all seeds."""
    joint = rng_of(0).multinomial(5000, rng_of(1).dirichlet(np.ones(domain.size(domain.names))))
    noise = rng_of(seed).normal(0, sigma, partition.count)
    counts = query_matrix(domain, clique, partition) @ joint + noise
    return Measurement(clique, partition, np.rint(counts).astype(np.int64), sigma)


def measured() -> list[Measurement]:
    pair, triple = DOMAIN.size(("c", "a")), DOMAIN.size(("a", "d", "b"))
    return [
        noisy(DOMAIN, ("c",), finest(3), 5.0, seed=2),
        noisy(DOMAIN, ("c", "a"), finest(pair), 10.0, seed=3),
        noisy(DOMAIN, ("a", "d", "b"), equal_width(triple, 7), 7.0, seed=4),
        noisy(DOMAIN, ("b",), Partition(np.array([1, 0, 1], np.int32), 2), 2.0, seed=5),
    ]


def assert_same_fit(domain: Domain, measurements: list[Measurement], steps: int) -> None:
    ours = ENGINES["tree"](measurements, uniform_model(Compression(domain)), Effort(steps, 1e-9))
    theirs = ENGINES["mbi"](measurements, uniform_model(Compression(domain)), Effort(steps, 1e-9))
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-3)
    assert ours.model.total == pytest.approx(theirs.model.total, rel=1e-12)
    for m in measurements:
        assert total_variation(ours.model.project(m.clique), theirs.model.project(m.clique)) <= 1e-3


@pytest.mark.slow
def test_importing_the_module_warns_of_nothing() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    command = [sys.executable, "-W", "error::UserWarning", "-c", "import ppsyn.model.mbi_adapter"]
    subprocess.run(command, check=True, env=environment, capture_output=True)


def test_the_domain_keeps_its_order_and_sizes() -> None:
    converted = exchange.domain_to_mbi(DOMAIN)
    assert (converted.attributes, converted.shape) == (("c", "a", "d", "b"), (3, 2, 4, 3))


def test_a_model_that_went_to_mbi_comes_back_the_same() -> None:
    model = model_of(CLIQUES)
    again = exchange.model_from_mbi(DOMAIN, exchange.model_to_mbi(model))
    assert (again.total, again.tree) == (model.total, model.tree)
    for clique, table in model.potentials.items():
        np.testing.assert_array_equal(again.potentials[clique], table)
    np.testing.assert_array_equal(again.project(("c", "a")), model.project(("c", "a")))


def test_an_unfitted_model_goes_to_mbi_and_back() -> None:
    again = exchange.model_from_mbi(DOMAIN, exchange.model_to_mbi(uniform_model(Compression(DOMAIN))))
    np.testing.assert_allclose(again.project(("c", "b")), 1 / 9)


def test_mbis_potentials_may_overlap_and_have_their_axes_in_any_order() -> None:
    domain = exchange.domain_to_mbi(DOMAIN)
    tables = {("a", "c"): rng_of(1).normal(size=(2, 3)), ("c",): rng_of(2).normal(size=3)}
    factors = {clique: mbi.Factor(domain.project(clique), jax.numpy.asarray(t)) for clique, t in tables.items()}
    vector = mbi.CliqueVector(domain, list(tables), factors)
    field = mbi.MarkovRandomField(potentials=vector, marginals=vector, total=90.0)
    ours = exchange.model_from_mbi(DOMAIN, field)
    potentials = {("c", "a"): tables["a", "c"].T, ("c",): tables[("c",)]}
    np.testing.assert_allclose(ours.project(DOMAIN.names), joint_of(DOMAIN, potentials, 90.0), rtol=1e-9)


@pytest.mark.parametrize("clique", [("c", "a"), ("d",), ("c", "d"), ("c", "d", "b")])
def test_mbis_marginals_equal_ours(clique: Clique) -> None:
    model = model_of(CLIQUES)
    theirs = exchange.model_to_mbi(model).project(clique).datavector(flatten=False)
    np.testing.assert_allclose(np.asarray(theirs), model.project(clique), rtol=1e-9)


def test_measurements_that_went_to_mbi_come_back_the_same() -> None:
    again = exchange.measurements_from_mbi(DOMAIN, exchange.measurements_to_mbi(measured()))
    for ours, theirs in zip(measured(), again, strict=True):
        assert (theirs.clique, theirs.partition, theirs.sigma) == (ours.clique, ours.partition, ours.sigma)
        np.testing.assert_array_equal(theirs.noisy_counts, ours.noisy_counts)


def test_a_marginal_goes_to_mbi_as_its_own_kind_of_query() -> None:
    queries = [m.query for m in exchange.measurements_to_mbi(measured())]
    assert [type(query) for query in queries] == [
        mbi.DatavectorQuery,
        mbi.DatavectorQuery,
        exchange.GroupQuery,
        exchange.GroupQuery,
    ]


def test_a_group_query_sums_the_cells_of_each_group() -> None:
    m = measured()[2]
    factor = exchange.model_to_mbi(model_of([m.clique])).project(m.clique)
    query = exchange.GroupQuery(m.partition.groups, m.partition.count)
    expected = m.partition.sum_expected(np.asarray(factor.datavector()))
    np.testing.assert_allclose(np.asarray(query(factor)), expected, rtol=1e-12)
    matrix = np.eye(m.partition.count)[m.partition.groups].T
    assert query.op_norm_sq() == pytest.approx(np.linalg.norm(matrix, 2) ** 2)


@pytest.mark.parametrize(
    "query", [lambda factor: factor.datavector(), mbi.marginal_loss.SlicedQuery(), mbi.Factor.datavector]
)
def test_a_query_of_another_kind_is_refused(query: Callable[[mbi.Factor], jax.Array]) -> None:
    foreign = mbi.LinearMeasurement(np.zeros(3), ("c",), 1.0, query=query)
    with pytest.raises(TypeError, match="Expected a marginal or a GroupQuery"):
        exchange.measurements_from_mbi(DOMAIN, [foreign])


def test_the_loss_is_that_of_the_joint() -> None:
    model = model_of(CLIQUES)
    expected = loss_of(DOMAIN, joint_of(DOMAIN, model.potentials, model.total), measured())
    assert exchange.loss(model, measured()) == pytest.approx(expected, rel=1e-9)


def test_both_engines_give_the_uniform_model_without_measurements() -> None:
    for engine in ENGINES.values():
        found = engine([], uniform_model(Compression(DOMAIN)), Effort(10, 1e-4))
        np.testing.assert_allclose(found.model.project(("c",)), 1 / 3)


def test_both_engines_find_the_same_model() -> None:
    again = [noisy(DOMAIN, m.clique, m.partition, m.sigma, seed=10 + i) for i, m in enumerate(measured())]
    assert_same_fit(DOMAIN, [*measured(), *again], steps=20_000)


def test_mbis_engine_starts_where_the_last_fit_ended() -> None:
    first = ENGINES["tree"](measured(), uniform_model(Compression(DOMAIN)), Effort(3000, 1e-9))
    again = ENGINES["mbi"](measured(), first.model, Effort(50, 1e-9))
    assert again.loss == pytest.approx(first.loss, rel=1e-3)


@pytest.mark.slow
def test_both_engines_find_the_same_model_of_a_loop_of_cliques() -> None:
    domain = domain_of(a=5, b=4, c=6, d=3, e=5, f=2)
    pairs: list[Clique] = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("a", "e"), ("a", "f"), ("c", "e", "f")]
    measurements = [
        noisy(domain, pair, finest(domain.size(pair)) if i % 2 else equal_width(domain.size(pair), 6), 20.0, seed=i)
        for i, pair in enumerate(pairs)
    ]
    assert_same_fit(domain, measurements, steps=5000)
