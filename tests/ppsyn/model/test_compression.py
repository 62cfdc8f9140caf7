from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.errors import InvariantError
from ppsyn.generation.sampling import generate
from ppsyn.model import mbi_adapter as exchange
from ppsyn.model.compression import CompressedAttribute, Compression, compress_attribute, equal_mass_groups
from ppsyn.model.estimation import Effort, fit
from ppsyn.model.graphical_model import GraphicalModel, calibrate, uniform_model
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition, finest, number_groups

DOMAIN = Domain((Attribute("a", 6), Attribute("b", 3), Attribute("c", 7)))
CLIQUES: tuple[Clique, ...] = (("a",), ("b",), ("a", "b"), ("b", "c"), ("a", "c"), ("a", "b", "c"))


@st.composite
def compressions(draw: st.DrawFn) -> Compression:
    compressed: dict[str, CompressedAttribute] = {}
    for name in draw(st.lists(st.sampled_from(["a", "c"]), unique=True)):
        size = DOMAIN[name].size
        groups = number_groups(np.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)), np.int32))
        rows = np.array(draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)), float)
        compressed[name] = compress_attribute(rows, groups)
    return Compression(DOMAIN, compressed)


def model_of(compression: Compression, seed: int) -> GraphicalModel:
    rng = np.random.default_rng(seed)
    potentials = {
        clique: rng.normal(size=compression.model_domain.shape(clique)) for clique in (("a", "b"), ("b", "c"))
    }
    return calibrate(compression, potentials, 1000.0, 0.0)


@given(compressions(), st.sampled_from(CLIQUES), st.integers(0, 99))
@settings(deadline=None)
def test_an_expanded_marginal_sums_to_the_compressed_one(compression: Compression, clique: Clique, seed: int) -> None:
    model = model_of(compression, seed)
    inner = model.project_compressed(clique)
    groups = compression.to_full(clique, finest(inner.size))
    np.testing.assert_allclose(groups.sum_expected(model.project(clique)), inner.ravel(), rtol=1e-9, atol=1e-9)


@given(compressions(), st.sampled_from(CLIQUES), st.data())
@settings(deadline=None)
def test_what_is_expanded_is_compressed_again(compression: Compression, clique: Clique, data: st.DataObject) -> None:
    cells = compression.model_domain.size(clique)
    partition = number_groups(
        np.array(data.draw(st.lists(st.integers(0, 4), min_size=cells, max_size=cells)), np.int32)
    )
    lifted = compression.to_full(clique, partition)
    assert lifted.cells == DOMAIN.size(clique)
    assert compression.to_compressed(clique, lifted) == partition


def test_a_partition_that_splits_a_group_is_refused() -> None:
    compression = Compression(
        DOMAIN, {"a": compress_attribute(np.ones(6), Partition(np.array([0, 0, 0, 1, 1, 1], np.int32), 2))}
    )
    with pytest.raises(InvariantError):
        compression.to_compressed(("a",), finest(6))


@given(compressions(), st.integers(0, 99))
@settings(deadline=None, max_examples=20)
def test_rows_follow_the_expanded_model(compression: Compression, seed: int) -> None:
    model = model_of(compression, seed)
    made = generate(model.steps(), compression.generation_domain, 20_000, seed)
    for name in DOMAIN.names:
        counts = np.bincount(made[name], minlength=DOMAIN[name].size) / 20
        np.testing.assert_allclose(counts, model.project((name,)), atol=8)


@given(compressions())
@settings(deadline=None, max_examples=20)
def test_a_compressed_fit_meets_a_measurement_of_groups(compression: Compression) -> None:
    groups = compression.to_full(("a", "b"), finest(compression.model_domain.size(("a", "b"))))
    counts = np.arange(1, groups.count + 1) * 100
    found = fit([Measurement(("a", "b"), groups, counts, 1.0)], uniform_model(compression), Effort(500, 1e-8)).model
    np.testing.assert_allclose(groups.sum_expected(found.project(("a", "b"))), counts, rtol=1e-2)
    assert found.compression is compression


@given(compressions(), st.integers(0, 99))
@settings(deadline=None, max_examples=10)
def test_mbi_gets_the_expanded_model(compression: Compression, seed: int) -> None:
    model = model_of(compression, seed)
    theirs = exchange.model_from_mbi(DOMAIN, exchange.model_to_mbi(model))
    for clique in CLIQUES:
        np.testing.assert_allclose(theirs.project(clique), model.project(clique), rtol=1e-6, atol=1e-6)


def test_names_of_groups_are_new() -> None:
    domain = Domain((Attribute("a", 4), Attribute("a'", 2)))
    compression = Compression(
        domain, {"a": compress_attribute(np.ones(4), Partition(np.array([0, 0, 1, 1], np.int32), 2))}
    )
    assert len(set(compression.generation_domain.names)) == 3


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.integers(1, 30))
def test_groups_of_equal_mass_are_few_and_of_neighbours(rows: list[float], most: int) -> None:
    groups = equal_mass_groups(np.array(rows), most)
    assert groups.count <= most
    assert (np.diff(groups.groups) >= 0).all()


def test_a_value_with_most_rows_stands_alone() -> None:
    rows = np.ones(99)
    rows[40] = 1000.0
    groups = equal_mass_groups(rows, 24)
    assert np.bincount(groups.groups)[groups.groups[40]] <= 2


@pytest.mark.parametrize("shares", [[0.5, 0.6, 1.0], [1.5, -0.5, 1.0], [0.5, 0.5]])
def test_shares_that_lose_or_make_rows_are_refused(shares: list[float]) -> None:
    good = compress_attribute(np.ones(3), Partition(np.array([0, 0, 1], np.int32), 2))
    with pytest.raises((InvariantError, ValueError)):
        replace(good, shares=np.array(shares))
