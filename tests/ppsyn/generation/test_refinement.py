"""Swaps bring a table nearer to its aims and leave single attributes as they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppsyn.arrays import Floats
from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.generation.refinement import Aim, refine
from ppsyn.generation.sampling import BLOCK_ROWS, make_block, prepare
from ppsyn.model.compression import Compression
from ppsyn.model.graphical_model import GraphicalModel, calibrate

DOMAIN = Domain((Attribute("a", 3), Attribute("b", 4), Attribute("c", 2), Attribute("d", 5)))
CLIQUES = (("a", "b"), ("b", "d"), ("a", "c", "d"), ("d",))


def stream(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def table_of(rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = stream(seed)
    return {a.name: rng.integers(0, a.size, rows).astype(np.int32) for a in DOMAIN.attributes}


def aims_of(seed: int) -> tuple[Aim, ...]:
    """The marginals of one distribution, as a model's are."""
    joint = stream(seed).dirichlet(np.ones(DOMAIN.size(DOMAIN.names))).reshape(DOMAIN.shape(DOMAIN.names))
    others = (tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in clique) for clique in CLIQUES)
    return tuple(Aim(clique, joint.sum(axis=axes).ravel()) for clique, axes in zip(CLIQUES, others, strict=True))


def distance(codes: dict[str, np.ndarray], aims: tuple[Aim, ...]) -> float:
    """What a swap must bring down: the chi-squared distance over all aims."""
    found = 0.0
    for aim in aims:
        cells = np.ravel_multi_index([codes[name] for name in aim.clique], DOMAIN.shape(aim.clique))
        counts = np.bincount(cells, minlength=aim.shares.size)
        wanted = aim.shares * cells.size
        found += float(((counts - wanted) ** 2 / (wanted + 1)).sum())
    return found


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 300), st.integers(0, 10**6))
def test_single_attributes_stay_and_the_distance_never_grows(rows: int, seed: int) -> None:
    codes, aims = table_of(rows, seed), aims_of(seed + 1)
    refined = refine(codes, aims, DOMAIN, stream(seed))
    assert distance(refined, aims) <= distance(codes, aims) + 1e-6
    for name, column in codes.items():
        assert np.bincount(refined[name], minlength=9).tolist() == np.bincount(column, minlength=9).tolist()


def test_equal_streams_give_equal_rows_and_what_went_in_is_left_alone() -> None:
    codes, aims = table_of(500, 3), aims_of(4)
    before = {name: column.copy() for name, column in codes.items()}
    first, second = (refine(codes, aims, DOMAIN, stream(9)) for _ in range(2))
    for name, column in before.items():
        np.testing.assert_array_equal(codes[name], column)
        np.testing.assert_array_equal(first[name], second[name])


def test_a_table_drawn_from_its_model_comes_much_nearer_to_it() -> None:
    rng = stream(5)
    joint = rng.dirichlet(np.ones(DOMAIN.size(DOMAIN.names)))
    cells = rng.choice(joint.size, 5_000, p=joint)
    drawn = np.unravel_index(cells, DOMAIN.shape(DOMAIN.names))
    codes = {name: column.astype(np.int32) for name, column in zip(DOMAIN.names, drawn, strict=True)}
    others = (tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in clique) for clique in CLIQUES)
    shares = (joint.reshape(DOMAIN.shape(DOMAIN.names)).sum(axis=axes).ravel() for axes in others)
    pairs = tuple(Aim(clique, share) for clique, share in zip(CLIQUES, shares, strict=True) if len(clique) > 1)
    assert distance(refine(codes, pairs, DOMAIN, rng), pairs) < 0.4 * distance(codes, pairs)


def test_two_ties_that_pull_at_one_attribute_are_both_nearly_kept() -> None:
    """The rows have one of them, that of a to b; both are aims."""
    rows = 6_000
    b = np.arange(rows, dtype=np.int32) % 3
    codes = {"a": b.copy(), "b": b, "c": stream(1).integers(0, 2, rows).astype(np.int32), "d": np.zeros(rows, np.int32)}
    tie, other = np.zeros((3, 4)), np.zeros((4, 2))
    tie[[0, 1, 2], [0, 1, 2]] = 1 / 3
    other[[0, 1, 2, 2], [0, 1, 0, 1]] = [1 / 3, 1 / 3, 1 / 6, 1 / 6]
    found = refine(codes, (Aim(("a", "b"), tie.ravel()), Aim(("b", "c"), other.ravel())), DOMAIN, stream(2))
    assert (found["a"] != found["b"]).mean() < 0.05
    assert ((found["b"] == 0) & (found["c"] == 1)).mean() < 0.02


def model_with(off_tree: dict[Clique, Floats]) -> GraphicalModel:
    return calibrate(Compression(DOMAIN), {}, 1_000.0, 0.0, off_tree)


PAIR = {("a", "c"): np.array([[300.0, 34.0], [34.0, 300.0], [166.0, 166.0]])}


@pytest.mark.parametrize(("rows", "is_refined"), [(400, True), (BLOCK_ROWS - 1, True), (BLOCK_ROWS, False)])
def test_a_table_of_a_block_or_more_is_left_as_it_was_drawn(rows: int, is_refined: bool) -> None:
    assert bool(model_with({}).aims(rows, CLIQUES)) == is_refined


@pytest.mark.parametrize(("rows", "is_refined"), [(BLOCK_ROWS, True), (2**19 - 1, True), (2**19, False)])
def test_so_are_half_a_million_rows_even_of_a_model_with_off_tree_pairs(rows: int, is_refined: bool) -> None:
    assert bool(model_with(PAIR).aims(rows, CLIQUES)) == is_refined


def test_every_block_of_a_large_table_is_brought_nearer_to_what_the_tree_does_not_hold() -> None:
    rows, model = 2 * BLOCK_ROWS + 1_000, model_with(PAIR)
    for codes in model.blocks(rows, 3, (("a", "b"), ("a", "c", "d"))):
        counts = np.zeros((3, 2))
        np.add.at(counts, (codes["a"], codes["c"]), 1)
        assert np.abs(counts / counts.sum() - PAIR["a", "c"] / 1_000).sum() / 2 < 0.02
        assert len(set(np.bincount(codes["b"]) // 100)) <= 2  # even, as they were drawn
    plain = next(iter(model.tree_only.blocks(rows, 3, (("a", "c", "d"),))))
    assert np.abs(np.bincount(plain["a"] * 2 + plain["c"]) / BLOCK_ROWS - 1 / 6).max() < 0.001


def test_a_block_of_a_large_table_depends_on_no_other() -> None:
    model, cliques = model_with(PAIR), (("a", "c", "d"),)
    plan = prepare(model.steps(), DOMAIN, model.aims(3 * BLOCK_ROWS, cliques))
    *_, last = model.blocks(3 * BLOCK_ROWS, 5, cliques)
    for name, column in make_block(plan, 2, BLOCK_ROWS, 5).items():
        np.testing.assert_array_equal(column, last[name])
