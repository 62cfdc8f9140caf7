"""Pairs that the tree has no room for: the tree stays as it is, and the model knows them all the same."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.small_models import SEEDS, UNHURRIED, domain_of, marginal_of, rng_of, total_variation

from ppsyn.arrays import Floats
from ppsyn.domain import Clique, Domain
from ppsyn.model import mbi_adapter as exchange
from ppsyn.model.compression import Compression, compress_attribute, equal_mass_groups
from ppsyn.model.estimation import ENGINES, Effort, fit
from ppsyn.model.graphical_model import GraphicalModel, uniform_model
from ppsyn.model.measurement import Measurement
from ppsyn.model.off_tree import reconcile, singles
from ppsyn.privacy.partition import finest, number_groups
from ppsyn.privacy.residuals import exact_residuals

DOMAIN = domain_of(a=3, b=4, c=5, d=2)
CYCLE = (("a", "b"), ("b", "c"), ("c", "d"))
CLOSING = ("a", "d")
EFFORT = Effort(500, 1e-9)


def joint_of_rows(seed: int, rows: int = 10_000) -> Floats:
    """Counts of a table in which everything depends on everything."""
    rng = rng_of(seed)
    return rng.multinomial(rows, rng.dirichlet(np.full(DOMAIN.size(DOMAIN.names), 0.3))).reshape(
        DOMAIN.shape(DOMAIN.names)
    )


def told(joint: Floats, clique: Clique, *, is_off_tree: bool = False, sigma: float = 1.0) -> Measurement:
    counts = np.rint(marginal_of(DOMAIN, joint, clique)).astype(np.int64).ravel()
    return Measurement(clique, finest(counts.size), counts, sigma, is_off_tree=is_off_tree)


def evidence_of(joint: Floats, *off_tree: Clique) -> list[Measurement]:
    alone = [told(joint, (name,)) for name in DOMAIN.names]
    return [*alone, *(told(joint, c) for c in CYCLE), *(told(joint, c, is_off_tree=True) for c in off_tree)]


def fitted(evidence: list[Measurement], domain: Domain = DOMAIN) -> GraphicalModel:
    return fit(evidence, uniform_model(Compression(domain)), EFFORT).model


@UNHURRIED
@given(SEEDS)
def test_the_tree_is_what_it_would_be_without_and_the_pair_is_known_beside_it(seed: int) -> None:
    joint = joint_of_rows(seed)
    plain, model = fitted(evidence_of(joint)), fitted(evidence_of(joint, CLOSING))
    assert model.tree.nodes == plain.tree.nodes
    for left, right in zip(model.beliefs, plain.beliefs, strict=True):
        np.testing.assert_array_equal(left, right)
    truth = marginal_of(DOMAIN, joint, CLOSING)
    assert total_variation(model.project(CLOSING), truth) < 0.01
    assert model.project(CLOSING).sum() == pytest.approx(model.total)
    for name in CLOSING:
        np.testing.assert_allclose(singles(CLOSING, model.project(CLOSING))[name,], plain.project((name,)), rtol=1e-3)
    assert model.tree_only.project(CLOSING).tolist() == plain.project(CLOSING).tolist()


def test_a_pair_that_depends_otherwise_than_the_tree_says_is_learned_and_not_only_repeated() -> None:
    joint = np.zeros(DOMAIN.shape(DOMAIN.names))
    joint[0, :, :, 0] = joint[1, :, :, 1] = joint[2, :, :, 1] = 100.0
    plain, model = fitted(evidence_of(joint)), fitted(evidence_of(joint, CLOSING))
    truth = marginal_of(DOMAIN, joint, CLOSING)
    assert total_variation(plain.project(CLOSING), truth) > 0.4
    assert total_variation(model.project(CLOSING), truth) < 0.01


@UNHURRIED
@given(SEEDS, st.lists(st.sampled_from(list(combinations(DOMAIN.names, 2))), unique=True, max_size=6))
def test_larger_marginals_agree_with_the_off_tree_ones_they_contain(seed: int, pairs: list[Clique]) -> None:
    joint, other = joint_of_rows(seed) + 1.0, joint_of_rows(seed + 1) + 1.0
    other *= joint.sum() / other.sum()
    off_tree = {pair: marginal_of(DOMAIN, other, pair) for pair in pairs}
    for clique in (*combinations(DOMAIN.names, 2), *combinations(DOMAIN.names, 3), DOMAIN.names):
        before = marginal_of(DOMAIN, joint, clique)
        after = reconcile(clique, before, off_tree)
        inside = [pair for pair in pairs if set(pair) <= set(clique)]
        assert after.sum() == pytest.approx(before.sum())
        assert (after >= 0).all()
        if not inside:
            np.testing.assert_array_equal(after, before)
        own = domain_of(**{name: DOMAIN[name].size for name in clique})
        for pair in inside:
            exact = len(inside) == 1 or clique in off_tree
            assert total_variation(marginal_of(own, after, pair), off_tree[pair]) < (1e-9 if exact else 0.1)


def test_a_marginal_that_off_tree_ones_contradict_stays_as_it_is() -> None:
    table, other = np.zeros((2, 2, 2)), np.zeros((2, 2))
    table[0, 0, 0] = other[1, 1] = 10.0
    np.testing.assert_array_equal(reconcile(("a", "b", "c"), table, {("a", "b"): other}), table)


def test_an_answer_that_says_what_the_tree_expects_to_the_nearest_row_changes_less_than_one() -> None:
    model = fitted(evidence_of(joint_of_rows(3)))
    expected = model.project(CLOSING)
    same = Measurement(CLOSING, finest(6), np.rint(expected).astype(np.int64).ravel(), 1.0, is_off_tree=True)
    again = fitted([*evidence_of(joint_of_rows(3)), same])
    np.testing.assert_allclose(again.project(CLOSING), expected, rtol=0, atol=0.6)


def test_contrasts_of_a_grid_tell_what_both_attributes_do_together() -> None:
    joint = joint_of_rows(8)
    counts = np.rint(marginal_of(DOMAIN, joint, CLOSING)).astype(np.int64).ravel()
    grid = replace(finest(6), axes=(3, 2))
    contrasts = Measurement(CLOSING, grid, exact_residuals(counts, (3, 2)), 1.0, is_off_tree=True)
    model = fitted([*evidence_of(joint), contrasts])
    assert total_variation(model.project(CLOSING), counts.reshape(3, 2).astype(float)) < 0.01


def test_all_that_was_measured_of_an_off_tree_pair_counts_also_what_the_tree_came_to_hold() -> None:
    joint = joint_of_rows(5)
    rough, sure = told(joint_of_rows(6), CLOSING, is_off_tree=True, sigma=500.0), told(joint, CLOSING)
    model = fitted([*evidence_of(joint), rough, sure])
    assert total_variation(model.project(CLOSING), marginal_of(DOMAIN, joint, CLOSING)) < 0.01


def test_an_off_tree_pair_of_a_compressed_attribute_is_one_of_its_groups() -> None:
    joint = joint_of_rows(9)
    values = marginal_of(DOMAIN, joint, ("c",))
    compression = Compression(DOMAIN, {"c": compress_attribute(values, equal_mass_groups(values, 2))})
    groups = compression.to_full(
        ("a", "c"), number_groups(np.arange(3 * compression.model_domain["c"].size, dtype=np.int32))
    )
    counts = np.rint(groups.sum_expected(marginal_of(DOMAIN, joint, ("a", "c")))).astype(np.int64)
    alone = [told(joint, (name,)) for name in "abd"]
    alone.append(
        Measurement(
            ("c",),
            compression.attributes["c"].groups,
            compression.attributes["c"].groups.sum_expected(values).astype(np.int64),
            1.0,
        )
    )
    model = fit(
        [*alone, Measurement(("a", "c"), groups, counts, 1.0, is_off_tree=True)], uniform_model(compression), EFFORT
    ).model
    assert model.off_tree["a", "c"].shape == (3, compression.model_domain["c"].size)
    assert np.abs(groups.sum_expected(model.project(("a", "c"))) - counts).sum() < 0.02 * counts.sum()
    np.testing.assert_allclose(model.project(("a", "c")).sum(axis=0), model.project(("c",)), rtol=1e-3)


def test_equal_evidence_gives_equal_bits_and_the_order_of_off_tree_pairs_is_of_no_account() -> None:
    joint, pairs = joint_of_rows(4), (("a", "d"), ("a", "c"))
    first, second = (fitted(evidence_of(joint, *order)) for order in (pairs, pairs[::-1]))
    assert {c: t.tobytes() for c, t in first.off_tree.items()} == {c: t.tobytes() for c, t in second.off_tree.items()}


def test_the_size_counts_off_tree_pairs() -> None:
    model = fitted(evidence_of(joint_of_rows(4), CLOSING, ("a", "c")))
    assert model.size_mb - model.tree_only.size_mb == pytest.approx((6 + 15) * 8 / 2**20)


def test_both_engines_know_off_tree_pairs_and_mbi_is_given_the_tree_alone() -> None:
    joint = joint_of_rows(2)
    evidence, effort = evidence_of(joint, CLOSING), Effort(500, 1e-6)
    for engine in ENGINES.values():
        model = engine(evidence, uniform_model(Compression(DOMAIN)), effort).model
        assert total_variation(model.project(CLOSING), marginal_of(DOMAIN, joint, CLOSING)) < 0.01
    field = exchange.model_to_mbi(model)
    assert set(map(tuple, field.potentials.cliques)) == set(model.potentials)
