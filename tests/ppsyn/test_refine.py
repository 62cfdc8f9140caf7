"""Swaps bring a table nearer to its aims and leave single attributes as they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppsyn.domain import Attribute, Domain
from ppsyn.generate import BLOCK_ROWS, Step, make_block, prepare
from ppsyn.refine import Aim, refine

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
    """What a swap must bring down: the squared distance over all aims."""
    found = 0.0
    for aim in aims:
        cells = np.ravel_multi_index([codes[name] for name in aim.clique], DOMAIN.shape(aim.clique))
        counts = np.bincount(cells, minlength=aim.shares.size)
        found += float(((counts - aim.shares * cells.size) ** 2).sum())
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


@pytest.mark.parametrize(("rows", "is_refined"), [(400, True), (BLOCK_ROWS, False)])
def test_a_table_of_a_block_or_more_is_left_as_it_was_drawn(rows: int, is_refined: bool) -> None:
    steps = [Step((), (a.name,), np.ones((1, a.size))) for a in DOMAIN.attributes]
    plain = make_block(prepare(steps, DOMAIN), 0, rows, 7)
    aimed = make_block(prepare(steps, DOMAIN, aims_of(1)), 0, rows, 7)
    assert any((plain[name] != aimed[name]).any() for name in DOMAIN.names) == is_refined
