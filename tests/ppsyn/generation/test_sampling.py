"""Statistical tests raise a false alarm once in 10^9 runs; their seeds are fixed besides."""

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import ConfigError, InvariantError
from ppsyn.generation.sampling import BLOCK_ROWS, Step, blocks, deal, generate, make_block, prepare

ALPHA = 1e-9
SEEDS = st.integers(0, 2**64)

Model = tuple[list[Step], Domain]


def rng_of(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def domain_of(**sizes: int) -> Domain:
    return Domain(tuple(Attribute(name, size) for name, size in sizes.items()))


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Any forest of steps over up to five small attributes, with zero weights and zero rows."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    domain = domain_of(**{f"a{i}": size for i, size in enumerate(sizes)})
    left, made, steps = draw(st.permutations(domain.names)), [], []
    rng = rng_of(draw(SEEDS))
    while left:
        new, left = left[: (count := draw(st.integers(1, 3)))], left[count:]
        known = draw(st.lists(st.sampled_from(made), max_size=2, unique=True)) if made else []
        shape = (domain.size(known), domain.size(new))
        weights = rng.random(shape) * (rng.random(shape) < 0.8) * (rng.random((shape[0], 1)) < 0.8)
        steps.append(Step(tuple(known), tuple(new), weights))
        made += new
    return steps, domain


def star(seed: int = 5) -> Model:
    """A parent `a` with two children, `b` and `c`."""
    domain, rng = domain_of(a=2, b=5, c=4), rng_of(seed)
    return [
        Step((), ("a",), np.array([[0.3, 0.7]])),
        Step(("a",), ("b",), rng.random((2, 5))),
        Step(("a",), ("c",), rng.random((2, 4))),
    ], domain


def cells_of(codes: Mapping[str, Codes | Ints], clique: Sequence[str], domain: Domain) -> Ints:
    cells = np.zeros(len(codes[domain.names[0]]), np.int64)
    for name in clique:
        cells = cells * domain[name].size + codes[name]
    return cells


def conditional(step: Step) -> Floats:
    """What a step promises: its rows normalised, with the marginal or the uniform in place of zero rows."""
    total = step.weights.sum()
    marginal = step.weights.sum(axis=0) / total if total else np.full(step.weights.shape[1], 1 / step.weights.shape[1])
    return np.array([row / row.sum() if row.any() else marginal for row in step.weights])


def excess(codes: dict[str, Codes], step: Step, domain: Domain) -> Floats:
    """Observed less expected number of rows, given cells by new cells."""
    shape = (domain.size(step.given), domain.size(step.new))
    pairs = cells_of(codes, step.given, domain) * shape[1] + cells_of(codes, step.new, domain)
    counts = np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape)
    return counts - counts.sum(axis=1, keepdims=True) * conditional(step)


def joint(steps: list[Step], domain: Domain) -> Floats:
    """The probability of every row of the domain, by brute force."""
    rows = list(itertools.product(*(range(size) for size in domain.shape(domain.names))))
    codes = dict(zip(domain.names, np.array(rows).T, strict=True))
    found = np.ones(len(rows))
    for step in steps:
        found *= conditional(step)[cells_of(codes, step.given, domain), cells_of(codes, step.new, domain)]
    return found


def assert_same(left: dict[str, Codes], right: dict[str, Codes]) -> None:
    assert list(left) == list(right)
    for name, column in left.items():
        np.testing.assert_array_equal(column, right[name])


@settings(deadline=None)
@given(model=models(), rows=st.integers(0, 300), seed=SEEDS)
def test_codes_are_int32_in_range_and_in_the_domains_order(model: Model, rows: int, seed: int) -> None:
    steps, domain = model
    codes = generate(steps, domain, rows, seed)
    assert tuple(codes) == domain.names
    for name, column in codes.items():
        assert column.dtype == np.int32
        assert column.shape == (rows,)
        assert np.isin(column, np.arange(domain[name].size)).all()


@settings(deadline=None)
@given(model=models(), rows=st.integers(1, 300), seed=SEEDS)
def test_counts_of_every_group_are_rounded_expectations(model: Model, rows: int, seed: int) -> None:
    steps, domain = model
    codes = generate(steps, domain, rows, seed)
    for step in steps:
        assert np.abs(excess(codes, step, domain)).max() < 1 + 1e-9


@settings(deadline=None)
@given(model=models(), rows=st.integers(1, 300), seed=SEEDS)
def test_counts_of_leading_cells_are_rounded_as_sharply(model: Model, rows: int, seed: int) -> None:
    steps, domain = model
    codes = generate(steps, domain, rows, seed)
    for step in steps:
        assert np.abs(excess(codes, step, domain).cumsum(axis=1)).max() < 1 + 1e-9


@settings(deadline=None)
@given(model=models(), rows=st.integers(0, 300), seed=SEEDS)
def test_same_seed_gives_same_codes(model: Model, rows: int, seed: int) -> None:
    assert_same(generate(*model, rows, seed), generate(*model, rows, seed))


def test_cells_without_weight_are_never_dealt() -> None:
    domain, rng = domain_of(a=40, b=60), rng_of(1)
    weights = rng.random((40, 60)) * (rng.random((40, 60)) < 0.1)
    weights[:, 0] = weights[:, -1] = 0
    steps = [Step((), ("a",), weights.sum(axis=1)[None]), Step(("a",), ("b",), weights)]
    codes = generate(steps, domain, 50_000, 2)
    assert (weights[codes["a"], codes["b"]] > 0).all()


@pytest.mark.parametrize(("overall", "expected"), [([0.0, 3.0, 1.0], [0, 75, 25]), ([0.0, 0.0, 0.0], None)])
def test_zero_rows_fall_back_to_the_marginal_or_to_uniform(overall: list[float], expected: list[int] | None) -> None:
    domain = domain_of(a=2, b=3)
    steps = [Step((), ("a",), np.array([[0.0, 1.0]])), Step(("a",), ("b",), np.array([overall, [0.0] * 3]))]
    counts = np.bincount(generate(steps, domain, 100, 3)["b"], minlength=3)
    assert counts.tolist() == expected if expected else set(counts) == {33, 34}


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e308])
def test_scale_of_weights_does_not_matter(scale: float) -> None:
    domain = domain_of(a=2, b=4)
    steps = [Step((), ("a",), np.full((1, 2), scale)), Step(("a",), ("b",), np.full((2, 4), scale))]
    codes = generate(steps, domain, 800, 3)
    assert np.bincount(4 * codes["a"] + codes["b"]).tolist() == [100] * 8


def test_largest_draws_stay_within_the_cells_with_weight() -> None:
    cumulative = np.cumsum([[0.1] * 7 + [0.0]], axis=1)
    for rows in range(1, 200):
        cells = deal(np.zeros(rows, np.int32), cumulative, np.full(rows, np.nextafter(1.0, 0.0)))
        assert cells.min() >= 0
        assert cells.max() == 6


def test_smallest_draws_skip_the_cells_without_weight() -> None:
    cumulative = np.cumsum([([0.0] * 5 + [1.0]) * 2 + [0.0] * 5], axis=1)
    assert deal(np.zeros(2, np.int32), cumulative, np.zeros(2)).tolist() == [5, 11]


def test_single_value_attributes_have_code_zero() -> None:
    domain = domain_of(a=1, b=1, c=2)
    steps = [Step((), ("a",), np.ones((1, 1))), Step(("a",), ("b", "c"), np.ones((1, 2)))]
    codes = generate(steps, domain, 10, 0)
    assert not codes["a"].any()
    assert not codes["b"].any()
    assert codes["c"].sum() == 5


def count_cells(steps: list[Step], domain: Domain, rows: int, tables: int) -> Floats:
    """The number of rows in each cell of the domain, per table."""
    plan, cells = prepare(steps, domain), domain.size(domain.names)
    made = (make_block(plan, 0, rows, seed) for seed in range(tables))
    return np.array([np.bincount(cells_of(codes, domain.names, domain), minlength=cells) for codes in made], float)


def smallest_p_value(counts: Floats, expected: Floats) -> float:
    """Of z-tests on the mean of each cell, times the number of cells."""
    deviation = counts.mean(axis=0) - expected
    error = np.sqrt(counts.var(axis=0) / len(counts))
    return float(2 * norm.sf(np.abs(deviation / error)).min() * counts.shape[1])


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.9, False), (1.1, False)])
def test_counts_are_unbiased_over_seeds(factor: float, accepted: bool) -> None:
    """Twenty thousand tables of 7 rows catch 10% too much or too little weight on one value of `a`."""
    steps, domain = star()
    counts = count_cells(steps, domain, rows=7, tables=20_000)
    claimed = [Step((), ("a",), steps[0].weights * [factor, 1.0]), *steps[1:]]
    assert (smallest_p_value(counts, 7 * joint(claimed, domain)) > ALPHA) == accepted


@pytest.mark.parametrize("seed", range(5))
def test_tables_match_the_joint_distribution(seed: int) -> None:
    """Rounding makes no cell vary more than independent rows do, so the binomial error bounds the real one."""
    domain, rng, rows = domain_of(a=3, b=2, c=4, d=3, e=2), rng_of(seed), 400_000
    steps = [
        Step((), ("b", "d"), rng.random((1, 6))),
        Step(("d",), ("a",), rng.random((3, 3))),
        Step(("d", "a"), ("e",), rng.random((9, 2))),
        Step(("b",), ("c",), rng.random((2, 4))),
    ]
    expected = joint(steps, domain)
    counts = np.bincount(cells_of(generate(steps, domain, rows, seed), domain.names, domain), minlength=expected.size)
    z = np.abs(counts - rows * expected) / np.sqrt(rows * expected * (1 - expected))
    assert 2 * norm.sf(z.max()) * z.size > ALPHA


def correlation_p_value(left: Codes, right: Codes) -> float:
    """Of the correlation of two columns, one of them randomly permuted under the null hypothesis."""
    return float(2 * norm.sf(abs(np.corrcoef(left, right)[0, 1]) * np.sqrt(left.size - 1)))


def test_children_of_one_parent_are_independent_given_it() -> None:
    """The smaller group has 39,000 rows, which catches a correlation of 0.04."""
    codes = generate(*star(), BLOCK_ROWS, seed=11)
    for value in range(2):
        group = codes["a"] == value
        assert correlation_p_value(codes["b"][group], codes["c"][group]) > ALPHA


@pytest.mark.parametrize(("draw", "accepted"), [(rng_of(3).random, True), (np.zeros, False)])
def test_independence_is_owed_to_the_shuffle(draw: Callable[[int], Floats], accepted: bool) -> None:
    """Draws of zero leave every row in its place: the test above would notice."""
    cumulative, rows = np.cumsum(rng_of(4).random((1, 6)), axis=1), 20_000
    left, right = (deal(np.zeros(rows, np.int32), cumulative, draw(rows)) for _ in range(2))
    assert (correlation_p_value(left, right) > ALPHA) == accepted


def test_every_order_of_a_group_is_equally_likely() -> None:
    """Three rows that share three cells: 6 orders, 30,000 deals, catching 10% more of one order."""
    cumulative, rng, deals = np.array([[1.0, 2.0, 3.0]]), rng_of(6), 30_000
    dealt = np.array([deal(np.zeros(3, np.int32), cumulative, rng.random(3)) for _ in range(deals)])
    _, counts = np.unique(dealt, axis=0, return_counts=True)
    assert counts.size == 6
    z = np.abs(counts - deals / 6) / np.sqrt(deals * 5 / 36)
    assert 2 * norm.sf(z.max()) * z.size > ALPHA


def test_table_is_its_blocks_in_whatever_order_they_are_made() -> None:
    steps, domain = star()
    rows = [BLOCK_ROWS, BLOCK_ROWS, 5]
    streamed = list(blocks(prepare(steps, domain), sum(rows), 7))
    for index in (2, 0, 1):
        assert_same(make_block(prepare(steps, domain), index, rows[index], 7), streamed[index])
    whole = {name: np.concatenate([codes[name] for codes in streamed]) for name in domain.names}
    assert_same(generate(steps, domain, sum(rows), 7), whole)


def test_longer_table_starts_with_the_full_blocks_of_a_shorter_one() -> None:
    short, long = (generate(*star(), rows, 7) for rows in (BLOCK_ROWS, 2 * BLOCK_ROWS))
    assert_same(short, {name: column[:BLOCK_ROWS] for name, column in long.items()})
    assert (long["b"][BLOCK_ROWS:] != short["b"]).any()


def test_seeds_give_different_tables() -> None:
    left, right = (generate(*star(), 100, seed)["b"] for seed in (0, 1))
    assert (left != right).any()


def test_global_random_state_is_neither_read_nor_changed() -> None:
    before = np.random.get_state()  # noqa: NPY002 - the state to leave alone
    first = generate(*star(), 100, 0)
    after = np.random.get_state()  # noqa: NPY002
    np.testing.assert_equal(after, before)
    np.random.random()  # noqa: NPY002
    assert_same(generate(*star(), 100, 0), first)


@pytest.mark.parametrize("rows", [0, 1])
def test_very_short_tables_are_made(rows: int) -> None:
    codes = generate(*star(), rows, 0)
    assert [column.shape for column in codes.values()] == [(rows,)] * 3
    assert len(list(blocks(prepare(*star()), rows, 0))) == rows


@pytest.mark.parametrize("value", [-1, 1.5, True, "1", None])
@pytest.mark.parametrize("name", ["rows", "seed"])
def test_settings_that_are_no_counts_are_refused(name: str, value: object) -> None:
    settings_ = {"rows": 1, "seed": 1, name: value}
    with pytest.raises(ConfigError, match=f"^Expected {name}="):
        blocks(prepare(*star()), **settings_)
    with pytest.raises(ConfigError, match=f"^Expected {name}="):
        generate(*star(), **settings_)


def test_block_longer_than_a_block_is_refused() -> None:
    with pytest.raises(ConfigError, match=f"at most {BLOCK_ROWS}"):
        make_block(prepare(*star()), 0, BLOCK_ROWS + 1, 0)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([], id="no steps"),
        pytest.param([Step((), ("a",), np.ones((1, 2)))], id="b is missing"),
        pytest.param([Step((), ("a", "b", "c"), np.ones((1, 12)))], id="c is unknown"),
        pytest.param([Step((), ("a", "b"), np.ones((1, 6))), Step((), ("b",), np.ones((1, 3)))], id="b comes twice"),
        pytest.param([Step((), ("a", "a"), np.ones((1, 4))), Step((), ("b",), np.ones((1, 3)))], id="a comes twice"),
        pytest.param([Step(("b",), ("a",), np.ones((3, 2))), Step((), ("b",), np.ones((1, 3)))], id="b comes too late"),
        pytest.param([Step((), ("a", "b"), np.ones((1, 5)))], id="wrong shape"),
        pytest.param([Step((), ("a", "b"), np.ones((1, 6)) - 1.5)], id="negative"),
        pytest.param([Step((), ("a", "b"), np.full((1, 6), np.nan))], id="not a number"),
        pytest.param([Step((), ("a", "b"), np.full((1, 6), np.inf))], id="infinite"),
    ],
)
def test_steps_that_are_no_model_of_the_domain_are_refused(steps: list[Step]) -> None:
    with pytest.raises(InvariantError):
        generate(steps, domain_of(a=2, b=3), 1, 0)
