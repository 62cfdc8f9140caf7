"""Every marginal of a model is that of its joint distribution, wherever its attributes stand in the tree."""

from itertools import combinations, pairwise

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
    marginal_of,
    random_potentials,
)

from ppsyn.domain import Domain, downward_closure, maximal
from ppsyn.model.compression import Compression
from ppsyn.model.graphical_model import GraphicalModel, calibrate, uniform_model

TOTAL = 1000.0


@st.composite
def models(draw: st.DrawFn, degree: int = 3) -> GraphicalModel:
    """Potentials of which some rule cells out, so that whole slices may have no mass."""
    domain = draw(domains())
    cliques = maximal(draw(cliques_of(domain, degree=degree)))
    potentials = random_potentials(domain, cliques, 3.0, draw(SEEDS))
    ruled_out = random_potentials(domain, cliques, 1.0, draw(SEEDS))
    share = draw(st.sampled_from([0.0, 0.3]))
    tables = {clique: np.where(ruled_out[clique] < 2 * share - 1, -400.0, potentials[clique]) for clique in cliques}
    return calibrate(Compression(domain), tables, TOTAL, 0.0)


@UNHURRIED
@given(models())
def test_every_marginal_is_that_of_the_joint(model: GraphicalModel) -> None:
    joint = joint_of(model.domain, model.potentials, TOTAL)
    for clique in downward_closure([model.domain.names]):
        expected = marginal_of(model.domain, joint, model.domain.clique(clique))
        np.testing.assert_allclose(
            model.project(model.domain.clique(clique)), expected, rtol=1e-9, atol=1e-12 * TOTAL, err_msg=str(clique)
        )


@UNHURRIED
@given(models(degree=2))
def test_pairs_far_apart_in_the_tree_are_those_of_the_joint(model: GraphicalModel) -> None:
    joint = joint_of(model.domain, model.potentials, TOTAL)
    for pair in combinations(model.domain.names, 2):
        expected = marginal_of(model.domain, joint, pair)
        np.testing.assert_allclose(model.project(pair), expected, rtol=1e-9, atol=1e-12 * TOTAL)


@UNHURRIED
@given(models())
def test_a_marginal_has_the_cliques_shape_and_the_models_total(model: GraphicalModel) -> None:
    for clique in combinations(model.domain.names, min(3, len(model.domain.names))):
        table = model.project(clique)
        assert table.shape == model.domain.shape(clique)
        assert table.sum() == pytest.approx(TOTAL, rel=1e-9)


def test_attributes_of_different_trees_are_independent() -> None:
    domain = domain_of(a=2, b=3, c=2, d=4)
    potentials = random_potentials(domain, [("a", "c"), ("b", "d")], 2.0, seed=3)
    model = calibrate(Compression(domain), potentials, TOTAL, 0.0)
    product = np.einsum("ac,bd->abcd", model.project(("a", "c")), model.project(("b", "d"))) / TOTAL
    np.testing.assert_allclose(model.project(("a", "b", "c", "d")), product, rtol=1e-9)


def test_the_axes_of_a_marginal_follow_the_clique_where_the_tree_has_them_crossed() -> None:
    domain = domain_of(a=2, b=3, c=4, d=5)
    potentials = random_potentials(domain, [("a", "d"), ("b", "c"), ("c", "d")], 2.0, seed=4)
    model = calibrate(Compression(domain), potentials, TOTAL, 0.0)
    joint = joint_of(domain, potentials, TOTAL)
    np.testing.assert_allclose(model.project(("a", "b", "d")), joint.sum(axis=2), rtol=1e-9)
    np.testing.assert_allclose(model.project(("a", "b")), joint.sum(axis=(2, 3)), rtol=1e-9)


def test_a_long_chain_is_contracted_to_its_ends() -> None:
    names = [f"x{i:02}" for i in range(40)]
    domain = domain_of(**dict.fromkeys(names, 3))
    potentials = random_potentials(domain, list(pairwise(names)), 2.0, seed=5)
    model = calibrate(Compression(domain), potentials, TOTAL, 0.0)
    product = np.eye(3)
    for pair in pairwise(names):
        product = product @ np.exp(potentials[pair])
    np.testing.assert_allclose(model.project(("x00", "x39")), product * (TOTAL / product.sum()), rtol=1e-9)


@UNHURRIED
@given(domains(), st.data())
def test_every_marginal_of_an_unfitted_model_is_uniform(domain: Domain, data: st.DataObject) -> None:
    clique = domain.clique(data.draw(st.sets(st.sampled_from(domain.names), min_size=1)))
    np.testing.assert_allclose(uniform_model(Compression(domain)).project(clique), 1 / domain.size(clique), rtol=1e-12)
