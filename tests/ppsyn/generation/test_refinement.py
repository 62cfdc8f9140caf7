"""Swaps across the separators of a tree bring rows nearer to their aims, and change no marginal of its nodes."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppsyn.arrays import Codes, Floats
from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.generation.refinement import Aim, cuts_of, prepare_refinement, refine, within_reach
from ppsyn.generation.sampling import BLOCK_ROWS, make_block
from ppsyn.model.compression import Compression
from ppsyn.model.graphical_model import GraphicalModel, calibrate
from ppsyn.model.junction_tree import junction_tree

DOMAIN = Domain((Attribute("a", 3), Attribute("b", 4), Attribute("c", 2), Attribute("d", 5), Attribute("e", 2)))
CLIQUES = (("a", "b"), ("b", "d"), ("a", "c", "d"), ("d",), ("b", "c", "e"))
Codebook = dict[str, Codes]


def stream(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def table_of(rows: int, seed: int) -> Codebook:
    rng = stream(seed)
    return {a.name: rng.integers(0, a.size, rows).astype(np.int32) for a in DOMAIN.attributes}


def counts_of(codes: Codebook, clique: Clique) -> Floats:
    cells = np.ravel_multi_index([codes[name] for name in clique], DOMAIN.shape(clique))
    return np.bincount(cells, minlength=DOMAIN.size(clique)).astype(np.float64)


def aims_of(seed: int) -> tuple[Aim, ...]:
    """The marginals of one distribution, as a model's are."""
    joint = stream(seed).dirichlet(np.ones(DOMAIN.size(DOMAIN.names))).reshape(DOMAIN.shape(DOMAIN.names))
    others = (tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in clique) for clique in CLIQUES)
    return tuple(Aim(clique, joint.sum(axis=axes).ravel()) for clique, axes in zip(CLIQUES, others, strict=True))


def distance(codes: Codebook, aims: tuple[Aim, ...]) -> float:
    """What a swap must bring down: the chi-squared distance over all aims."""
    found = 0.0
    for aim in aims:
        counts = counts_of(codes, aim.clique)
        wanted = aim.shares * counts.sum()
        found += float(((counts - wanted) ** 2 / (wanted + 1)).sum())
    return found


def nodes_of(cliques: list[Clique]) -> list[tuple[Clique, Clique]]:
    """The nodes of the junction tree of these cliques, each as what it is given and what it adds."""
    tree = junction_tree(DOMAIN, cliques)
    given = [tree.separator(place) for place in range(len(tree.nodes))]
    new = [tuple(n for n in node if n not in known) for node, known in zip(tree.nodes, given, strict=True)]
    return list(zip(given, new, strict=True))


trees = st.lists(st.sampled_from([*combinations(DOMAIN.names, 2), *combinations(DOMAIN.names, 3)]), max_size=5).map(
    nodes_of
)


@settings(deadline=None, max_examples=60)
@given(trees, st.integers(1, 300), st.integers(0, 10**6))
def test_nodes_stay_as_they_were_drawn_and_the_distance_never_grows(
    nodes: list[tuple[Clique, Clique]], rows: int, seed: int
) -> None:
    codes, aims = table_of(rows, seed), aims_of(seed + 1)
    refined = refine(codes, prepare_refinement(nodes, aims, DOMAIN))
    assert distance(refined, aims) <= distance(codes, aims) + 1e-6
    for given_, new in nodes:
        node = DOMAIN.clique((*given_, *new))
        np.testing.assert_array_equal(counts_of(refined, node), counts_of(codes, node))


@settings(deadline=None)
@given(trees)
def test_a_cut_parts_no_node_and_all_that_no_node_holds_is_across_one(nodes: list[tuple[Clique, Clique]]) -> None:
    cuts = cuts_of(nodes)
    whole = [{*given_, *new} for given_, new in nodes]
    assert not any(cut.is_crossed_by(tuple(node)) for cut in cuts for node in whole)
    for pair in combinations(DOMAIN.names, 2):
        assert any(cut.is_crossed_by(pair) for cut in cuts) != any(node.issuperset(pair) for node in whole)


def test_equal_rows_give_equal_rows_and_what_went_in_is_left_alone() -> None:
    codes, plan = table_of(500, 3), prepare_refinement(nodes_of([("a", "b")]), aims_of(4), DOMAIN)
    before = {name: column.copy() for name, column in codes.items()}
    first, second = refine(codes, plan), refine(codes, plan)
    assert any((first[name] != column).any() for name, column in before.items())
    for name, column in before.items():
        np.testing.assert_array_equal(codes[name], column)
        np.testing.assert_array_equal(first[name], second[name])


def test_rows_of_independent_attributes_come_much_nearer_to_the_pairs_that_they_should_have() -> None:
    aims = tuple(aim for aim in aims_of(5) if len(aim.clique) > 1)
    codes = table_of(5_000, 5)
    assert distance(refine(codes, prepare_refinement(nodes_of([]), aims, DOMAIN)), aims) < 0.4 * distance(codes, aims)


def test_two_ties_that_pull_at_one_attribute_are_both_nearly_kept() -> None:
    """The tree has one of them, that of a to b; the other is the aim."""
    rows = 6_000
    b = stream(3).permutation(np.arange(rows, dtype=np.int32) % 3)
    codes = {**table_of(rows, 1), "a": b.copy(), "b": b}
    other = np.zeros((4, 2))
    other[[0, 1, 2, 2], [0, 1, 0, 1]] = [1 / 3, 1 / 3, 1 / 6, 1 / 6]
    plan = prepare_refinement(nodes_of([("a", "b")]), (Aim(("b", "c"), other.ravel()),), DOMAIN)
    found = refine(codes, plan)
    assert (found["a"] == found["b"]).all()
    assert ((found["b"] == 0) & (found["c"] == 1)).mean() < 0.03


@settings(deadline=None)
@given(st.integers(0, 10**9))
def test_of_more_rows_fewer_marginals_are_aims_and_those_that_no_cut_parts_never_are(rows: int) -> None:
    cuts = cuts_of(nodes_of([("a", "b"), ("b", "c")]))
    cliques = [("a", "b"), *combinations(DOMAIN.names, 3)] * 300
    found, more = (list(within_reach(cuts, cliques, many)) for many in (rows, 2 * rows))
    assert more == found[: len(more)]
    assert ("a", "b") not in found
    assert not list(within_reach(cuts, cliques, 2**21))


def model_with(off_tree: dict[Clique, Floats], **potentials: Floats) -> GraphicalModel:
    return calibrate(
        Compression(DOMAIN), {tuple(names): table for names, table in potentials.items()}, 1_000.0, 0.0, off_tree
    )


PAIR = {("a", "c"): np.array([[300.0, 34.0], [34.0, 300.0], [166.0, 166.0]])}


@pytest.mark.parametrize("rows", [1_000, 50_000, BLOCK_ROWS, 2**20, 2**20 + 1_000])
def test_every_block_of_any_table_is_brought_nearer_to_what_the_tree_does_not_hold(rows: int) -> None:
    wanted = PAIR["a", "c"].ravel() / 1_000
    for codes in model_with(PAIR).blocks(rows, 3, CLIQUES):
        counts = counts_of(codes, ("a", "c"))
        assert np.abs(counts / counts.sum() - wanted).sum() / 2 < (0.01 if counts.sum() > 1_000 else 0.03)
        assert len(set(np.bincount(codes["b"]) // 100)) <= 2  # even, as they were drawn


def test_rows_have_what_is_beside_the_tree_and_the_nodes_exactly_as_without_it() -> None:
    tie = np.log(stream(1).random((4, 5)) + 0.1)
    model = model_with(PAIR, bd=tie, ab=np.log(stream(2).random((3, 4)) + 0.1))
    (codes,), (plain,) = (list(m.blocks(20_000, 3)) for m in (model, model.tree_only))
    for clique in (("a", "b"), ("b", "d")):
        np.testing.assert_array_equal(counts_of(codes, clique), counts_of(plain, clique))
    assert np.abs(counts_of(codes, ("a", "c")) - counts_of(plain, ("a", "c"))).sum() > 2_000


def test_a_block_of_a_large_table_depends_on_no_other() -> None:
    model, cliques = model_with(PAIR), (("a", "c", "d"),)
    plan = model.plan(3 * BLOCK_ROWS, cliques)
    *_, last = model.blocks(3 * BLOCK_ROWS, 5, cliques)
    for name, column in make_block(plan, 2, BLOCK_ROWS, 5).items():
        np.testing.assert_array_equal(column, last[name])
