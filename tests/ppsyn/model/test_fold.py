from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.errors import InvariantError
from ppsyn.generation.sampling import generate
from ppsyn.model import mbi_adapter as exchange
from ppsyn.model.estimation import Effort, fit
from ppsyn.model.fold import Fold, Folded, equal_mass, fold_values
from ppsyn.model.graphical_model import GraphicalModel, calibrated, unfitted
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition, finest, number_groups

DOMAIN = Domain((Attribute("a", 6), Attribute("b", 3), Attribute("c", 7)))
CLIQUES: tuple[Clique, ...] = (("a",), ("b",), ("a", "b"), ("b", "c"), ("a", "c"), ("a", "b", "c"))


@st.composite
def folds(draw: st.DrawFn) -> Fold:
    folded: dict[str, Folded] = {}
    for name in draw(st.lists(st.sampled_from(["a", "c"]), unique=True)):
        size = DOMAIN[name].size
        groups = number_groups(np.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)), np.int32))
        rows = np.array(draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)), float)
        folded[name] = fold_values(rows, groups)
    return Fold(DOMAIN, folded)


def model_of(fold: Fold, seed: int) -> GraphicalModel:
    rng = np.random.default_rng(seed)
    potentials = {clique: rng.normal(size=fold.inner.shape(clique)) for clique in (("a", "b"), ("b", "c"))}
    return calibrated(fold, potentials, 1000.0, 0.0)


@given(folds(), st.sampled_from(CLIQUES), st.integers(0, 99))
@settings(deadline=None)
def test_an_expanded_marginal_sums_to_the_inner_one(fold: Fold, clique: Clique, seed: int) -> None:
    model = model_of(fold, seed)
    inner = model.project_inner(clique)
    groups = fold.lift(clique, finest(inner.size))
    np.testing.assert_allclose(groups.sum_expected(model.project(clique)), inner.ravel(), rtol=1e-9, atol=1e-9)


@given(folds(), st.sampled_from(CLIQUES), st.data())
@settings(deadline=None)
def test_what_is_lifted_is_lowered_again(fold: Fold, clique: Clique, data: st.DataObject) -> None:
    cells = fold.inner.size(clique)
    partition = number_groups(
        np.array(data.draw(st.lists(st.integers(0, 4), min_size=cells, max_size=cells)), np.int32)
    )
    lifted = fold.lift(clique, partition)
    assert lifted.cells == DOMAIN.size(clique)
    assert fold.lower(clique, lifted) == partition


def test_a_partition_that_parts_folded_values_is_refused() -> None:
    fold = Fold(DOMAIN, {"a": fold_values(np.ones(6), Partition(np.array([0, 0, 0, 1, 1, 1], np.int32), 2))})
    with pytest.raises(InvariantError):
        fold.lower(("a",), finest(6))


@given(folds(), st.integers(0, 99))
@settings(deadline=None, max_examples=20)
def test_rows_follow_the_expanded_model(fold: Fold, seed: int) -> None:
    model = model_of(fold, seed)
    made = generate(model.steps(), fold.drawn, 20_000, seed)
    for name in DOMAIN.names:
        counts = np.bincount(made[name], minlength=DOMAIN[name].size) / 20
        np.testing.assert_allclose(counts, model.project((name,)), atol=8)


@given(folds())
@settings(deadline=None, max_examples=20)
def test_a_folded_fit_meets_a_measurement_of_groups(fold: Fold) -> None:
    groups = fold.lift(("a", "b"), finest(fold.inner.size(("a", "b"))))
    counts = np.arange(1, groups.count + 1) * 100
    found = fit([Measurement(("a", "b"), groups, counts, 1.0)], unfitted(fold), Effort(500, 1e-8)).model
    np.testing.assert_allclose(groups.sum_expected(found.project(("a", "b"))), counts, rtol=1e-2)
    assert found.fold is fold


@given(folds(), st.integers(0, 99))
@settings(deadline=None, max_examples=10)
def test_mbi_gets_the_expanded_model(fold: Fold, seed: int) -> None:
    model = model_of(fold, seed)
    theirs = exchange.model_from_mbi(DOMAIN, exchange.model_to_mbi(model))
    for clique in CLIQUES:
        np.testing.assert_allclose(theirs.project(clique), model.project(clique), rtol=1e-6, atol=1e-6)


def test_names_of_hidden_attributes_are_new() -> None:
    domain = Domain((Attribute("a", 4), Attribute("a'", 2)))
    fold = Fold(domain, {"a": fold_values(np.ones(4), Partition(np.array([0, 0, 1, 1], np.int32), 2))})
    assert len(set(fold.drawn.names)) == 3


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.integers(1, 30))
def test_groups_of_equal_mass_are_few_and_of_neighbours(rows: list[float], most: int) -> None:
    groups = equal_mass(np.array(rows), most)
    assert groups.count <= most
    assert (np.diff(groups.groups) >= 0).all()


def test_a_value_with_most_rows_stands_alone() -> None:
    rows = np.ones(99)
    rows[40] = 1000.0
    groups = equal_mass(rows, 24)
    assert np.bincount(groups.groups)[groups.groups[40]] <= 2


@pytest.mark.parametrize("shares", [[0.5, 0.6, 1.0], [1.5, -0.5, 1.0], [0.5, 0.5]])
def test_shares_that_lose_or_make_rows_are_refused(shares: list[float]) -> None:
    good = fold_values(np.ones(3), Partition(np.array([0, 0, 1], np.int32), 2))
    with pytest.raises((InvariantError, ValueError)):
        replace(good, shares=np.array(shares))
