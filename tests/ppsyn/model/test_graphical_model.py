"""A calibrated model is the distribution of its potentials, on every node and as a chain of steps."""

import string

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
    measurements_of,
    random_potentials,
    rng_of,
)

from ppsyn.arrays import Floats
from ppsyn.domain import Clique, Domain, maximal
from ppsyn.errors import InvariantError
from ppsyn.generation.sampling import generate, prepare
from ppsyn.model.compression import Compression
from ppsyn.model.estimation import Effort, fit
from ppsyn.model.graphical_model import GraphicalModel, calibrate, uniform_model

TOTAL = 250.0


@st.composite
def models(draw: st.DrawFn, spread: float = 3.0) -> GraphicalModel:
    domain = draw(domains())
    cliques = maximal(draw(cliques_of(domain)))
    return calibrate(Compression(domain), random_potentials(domain, cliques, spread, draw(SEEDS)), TOTAL, 0.0)


@st.composite
def extreme_models(draw: st.DrawFn) -> GraphicalModel:
    """Potentials 600 up and down, with whole slices at -700, on cliques that share no attribute."""
    domain = draw(domains())
    names, cliques = list(draw(st.permutations(domain.names))), list[Clique]()
    while names:
        count = draw(st.integers(1, 3))
        cliques.append(domain.clique(names[:count]))
        names = names[count:]
    return calibrate(Compression(domain), extreme_potentials(domain, cliques, draw(SEEDS)), TOTAL, 0.0)


def extreme_potentials(domain: Domain, cliques: list[Clique], seed: int) -> dict[Clique, Floats]:
    rng = rng_of(seed)
    potentials = {clique: rng.choice([-600.0, 0.0, 600.0], domain.shape(clique)) for clique in cliques}
    for table in potentials.values():
        if len(table) > 1:
            table[rng.integers(len(table))] = -700.0
    return potentials


def joint_of_steps(model: GraphicalModel) -> Floats:
    """The product of the conditional tables of a model's steps."""
    domain, letters = model.domain, dict(zip(model.domain.names, string.ascii_letters, strict=False))
    tables, formula = list[Floats](), list[str]()
    for step in model.steps():
        mass = step.weights.sum(axis=1, keepdims=True)
        conditional = np.divide(step.weights, mass, out=np.zeros_like(step.weights), where=mass > 0)
        tables.append(conditional.reshape(domain.shape((*step.given, *step.new))))
        formula.append("".join(letters[name] for name in (*step.given, *step.new)))
    return np.einsum(f"{','.join(formula)}->{''.join(letters[name] for name in domain.names)}", *tables) * model.total


@UNHURRIED
@given(models())
def test_beliefs_are_the_marginals_of_the_joint(model: GraphicalModel) -> None:
    joint = joint_of(model.domain, model.potentials, TOTAL)
    for node, belief in zip(model.tree.nodes, model.beliefs, strict=True):
        np.testing.assert_allclose(belief, marginal_of(model.domain, joint, node), rtol=1e-9)


@UNHURRIED
@given(models(spread=100.0))
def test_beliefs_agree_on_separators_and_sum_to_the_total(model: GraphicalModel) -> None:
    tree = model.tree
    for index, parent in enumerate(tree.parents):
        assert model.beliefs[index].sum() == pytest.approx(TOTAL, rel=1e-9)
        if parent >= 0:
            child, above = (
                model.beliefs[k].sum(axis=tuple(a for a, n in enumerate(tree.nodes[k]) if n not in shared))
                for shared in [tree.separator(index)]
                for k in (index, parent)
            )
            np.testing.assert_allclose(child, above, rtol=1e-9, atol=1e-12 * TOTAL)


@UNHURRIED
@given(extreme_models())
def test_extreme_potentials_leave_beliefs_finite_and_right(model: GraphicalModel) -> None:
    joint = joint_of(model.domain, model.potentials, TOTAL)
    for node, belief in zip(model.tree.nodes, model.beliefs, strict=True):
        np.testing.assert_allclose(belief, marginal_of(model.domain, joint, node), rtol=1e-9, atol=1e-12)


@UNHURRIED
@given(domains(), st.data())
def test_extreme_potentials_that_share_attributes_never_give_a_number_that_is_none(
    domain: Domain, data: st.DataObject
) -> None:
    cliques = list(maximal(data.draw(cliques_of(domain))))
    potentials = extreme_potentials(domain, cliques, data.draw(SEEDS))
    try:
        model = calibrate(Compression(domain), potentials, TOTAL, 0.0)
    except InvariantError:  # all mass underflowed, which is refused rather than told wrong
        return
    assert all(np.isfinite(belief).all() and (belief >= 0).all() for belief in model.beliefs)


@pytest.mark.parametrize("apart", [1.0, 700.0])
def test_slices_that_one_clique_rules_out_and_its_neighbour_prefers_keep_their_mass(apart: float) -> None:
    domain = domain_of(a=2, b=2, c=2)
    potentials = {("a", "b"): np.array([[0.0, -apart]] * 2), ("b", "c"): np.array([[-apart] * 2, [0.0] * 2])}
    model = calibrate(Compression(domain), potentials, 8.0, 0.0)
    assert all(belief == pytest.approx(np.full((2, 2), 2.0), rel=1e-9) for belief in model.beliefs)


@UNHURRIED
@given(domains(), st.data())
def test_potentials_of_a_fit_give_its_beliefs_to_the_last_bit(domain: Domain, data: st.DataObject) -> None:
    fitted = fit(data.draw(measurements_of(domain)), uniform_model(Compression(domain)), Effort(20, 1e-4)).model
    again = calibrate(Compression(domain), fitted.potentials, fitted.total, fitted.step)
    assert again.tree == fitted.tree
    assert [belief.tobytes() for belief in again.beliefs] == [belief.tobytes() for belief in fitted.beliefs]


@UNHURRIED
@given(models())
def test_the_steps_multiply_back_to_the_joint(model: GraphicalModel) -> None:
    joint = joint_of(model.domain, model.potentials, TOTAL)
    np.testing.assert_allclose(joint_of_steps(model), joint, rtol=1e-9)


@UNHURRIED
@given(extreme_models(), SEEDS)
def test_the_steps_are_what_generation_expects(model: GraphicalModel, seed: int) -> None:
    prepare(model.steps(), model.domain)
    codes = generate(model.steps(), model.domain, 10, seed)
    assert list(codes) == list(model.domain.names)


@UNHURRIED
@given(domains())
def test_a_model_of_nothing_is_uniform_and_stands_for_one_row(domain: Domain) -> None:
    model = uniform_model(Compression(domain))
    assert model.total == 1.0
    for node, belief in zip(model.tree.nodes, model.beliefs, strict=True):
        np.testing.assert_allclose(belief, 1 / domain.size(node), rtol=1e-12)
    np.testing.assert_allclose(joint_of_steps(model), 1 / domain.size(domain.names), rtol=1e-12)
