from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.loops import ScriptedCurator, crowded_plan, steps

from ppsyn.domain import Attribute, Clique, Domain, downward_closure
from ppsyn.errors import ConfigError
from ppsyn.mechanisms import candidates as selection
from ppsyn.mechanisms.base import State
from ppsyn.mechanisms.grid import partition_grid
from ppsyn.mechanisms.loop import make_plan, next_request, start
from ppsyn.mechanisms.ppsyn import PPSynParameters
from ppsyn.model.compression import Compression
from ppsyn.model.graphical_model import calibrate
from ppsyn.model.junction_tree import interaction_graph
from ppsyn.privacy.partition import finest
from ppsyn.privacy.requests import GRID, SelectRequest, noise_scale
from ppsyn.privacy.residuals import degrees
from ppsyn.schemas.config import AlgorithmConfig, WorkloadConfig

DOMAIN = Domain((Attribute("a", 4), Attribute("b", 6, is_ordered=False), Attribute("c", 10), Attribute("d", 2)))
CONFIG = AlgorithmConfig()
LEVELS = PPSynParameters().granularities
STATE = start(make_plan(DOMAIN, Fraction(1), 1, CONFIG))


def test_the_default_workload_is_all_triples_or_pairs_where_those_are_too_many() -> None:
    assert len(selection.workload_cliques(DOMAIN, WorkloadConfig())) == 4
    assert selection.workload_cliques(DOMAIN, WorkloadConfig(max_cells=48)) == (
        ("a", "b", "d"),
        ("a", "c"),
        ("c", "d"),
    )
    wide = Domain(tuple(Attribute(f"x{i}", 2) for i in range(20)))
    assert {len(clique) for clique in selection.workload_cliques(wide, WorkloadConfig())} == {2}


def test_listed_marginals_are_brought_into_the_order_of_the_domain_once_each() -> None:
    workload = WorkloadConfig(cliques=(("c", "a"), ("a", "c"), ("d",)))
    assert selection.workload_cliques(DOMAIN, workload) == (("a", "c"), ("d",))


def test_a_marginal_that_names_an_attribute_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="distinct"):
        selection.workload_cliques(DOMAIN, WorkloadConfig(cliques=(("a", "a"),)))


def test_max_cells_leaves_large_marginals_out() -> None:
    cliques = selection.workload_cliques(DOMAIN, WorkloadConfig(degree=2, max_cells=20))
    assert all(DOMAIN.size(clique) <= 20 for clique in cliques)
    assert ("b", "c") not in cliques


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=7),
    degree=st.integers(1, 4),
    max_cells=st.integers(1, 700),
)
def test_no_marginal_that_fits_is_left_out(sizes: list[int], degree: int, max_cells: int) -> None:
    domain = Domain(tuple(Attribute(f"x{i}", size) for i, size in enumerate(sizes)))
    degree = min(degree, len(sizes))
    fits = tuple(clique for clique in combinations(domain.names, degree) if domain.size(clique) <= max_cells)
    if fits:
        assert selection.workload_cliques(domain, WorkloadConfig(degree=degree, max_cells=max_cells)) == fits


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=2, max_size=7), most=st.integers(2, 3_000))
def test_marginals_take_turns_of_about_the_same_size(sizes: list[int], most: int) -> None:
    domain = Domain(tuple(Attribute(f"x{i}", size) for i, size in enumerate(sizes)))
    cliques = downward_closure(tuple(combinations(domain.names, min(3, len(sizes)))))
    turns = selection.rotate(domain, cliques, most)
    cells = [sum(map(domain.size, turn)) for turn in turns]
    assert set().union(*turns) == set(cliques)
    assert all(list(turn) == [clique for clique in cliques if clique in set(turn)] for turn in turns)
    assert all({(name,) for name in domain.names} <= set(turn) for turn in turns)
    largest = max(map(domain.size, cliques))
    assert max(cells) - min(cells) <= largest
    assert max(cells) <= max(most, sum(sizes) + most // 2) + largest
    if sum(map(domain.size, cliques)) <= most:
        assert turns == (cliques,)


def test_pairs_are_looked_at_in_every_round_where_they_take_half_of_its_room() -> None:
    cliques = downward_closure(tuple(combinations(DOMAIN.names, 3)))
    pairs = {clique for clique in cliques if len(clique) == 2}
    needed = sum(DOMAIN.size(clique) for clique in cliques if len(clique) <= 2)
    assert all(pairs <= set(turn) for turn in selection.rotate(DOMAIN, cliques, 2 * needed))
    assert not all(pairs <= set(turn) for turn in selection.rotate(DOMAIN, cliques, 2 * needed - 2))


def test_marginals_too_large_for_a_round_and_workloads_too_long_are_refused_with_what_to_change() -> None:
    large = Domain((Attribute("zip", 90_000), Attribute("age", 100), *(Attribute(f"x{i}", 2) for i in range(600))))
    with pytest.raises(ConfigError, match=r"got one of 9,000,000: 'zip' has 90,000 values.*fewer bins or values"):
        selection.workload_cliques(large, WorkloadConfig(cliques=(("age", "zip"),)))
    with pytest.raises(ConfigError, match=r"at most 200,000 marginals.*Lower one of them"):
        selection.workload_cliques(large, WorkloadConfig(degree=3))


def test_what_does_not_fit_under_the_cap_is_no_candidate() -> None:
    cells = sum(attribute.size for attribute in DOMAIN.attributes) + 12
    found = selection.within_size_limit(STATE, (("a",), ("c", "d"), ("a", "b", "c")), cells * 8 / 2**20)
    assert found == (("a",), ("c", "d"))
    assert interaction_graph(DOMAIN, [("c", "d")]).model_mb() <= cells * 8 / 2**20


def off_tree_states(**settings: object) -> list[State]:
    """The states of a run with little room, from the first on in which the tree holds pairs."""
    return [s for s, r in steps(crowded_plan(**settings), ScriptedCurator(1)) if isinstance(r, SelectRequest)]


def test_pairs_that_the_tree_has_no_room_for_are_candidates_beside_it_and_larger_marginals_are_not() -> None:
    found = set[Clique]()
    for state in off_tree_states(workload=WorkloadConfig(degree=3)):
        cap, every = state.plan.config.max_model_size_mb, selection.round_candidates(state)
        held, both = selection.within_size_limit(state, every, cap), selection.with_off_tree(state, every, cap)
        beside = set(both) - set(held)
        assert set(held) <= set(both)
        assert {len(clique) for clique in beside} <= {2}
        assert all(selection.is_off_tree(state, clique) == (clique in beside) for clique in both)
        found |= beside
    assert found


@pytest.mark.parametrize("settings", [{"off_tree_pairs": False}, {"swap_refinement": False}])
def test_without_off_tree_pairs_or_swaps_a_candidate_is_one_of_the_tree(settings: dict[str, bool]) -> None:
    for state in off_tree_states(**settings):
        request = next_request(state)
        assert isinstance(request, SelectRequest)
        cap = state.plan.config.max_model_size_mb
        cliques = tuple({candidate.clique for candidate in request.candidates})
        assert set(selection.within_size_limit(state, cliques, cap)) == set(cliques)
        assert not any(m.is_off_tree for m in state.evidence)


@pytest.mark.parametrize("rows", [2_000, 2**21])
def test_tables_of_any_number_of_rows_have_off_tree_pairs(rows: int) -> None:
    asked = steps(crowded_plan(), ScriptedCurator(1, rows=rows))
    assert any(m.is_off_tree for state, _ in asked for m in state.evidence)


def test_a_pair_that_may_still_fit_into_the_tree_waits_for_its_turn() -> None:
    state = off_tree_states()[0]
    pairs = tuple(combinations(state.plan.domain.names, 2))
    assert selection.with_off_tree(state, pairs, state.model.size_mb) == ()
    assert selection.with_off_tree(state, pairs, state.plan.config.max_model_size_mb) == pairs


def test_a_table_is_brought_nearer_to_its_workload_smallest_marginals_first() -> None:
    workload = WorkloadConfig(cliques=(("a", "c", "d"), ("a", "b")))
    assert selection.refined_cliques(DOMAIN, workload) == (("a", "b"), ("a", "c", "d"))


def test_candidates_carry_what_the_model_expects_and_what_noise_costs() -> None:
    model = calibrate(Compression(DOMAIN), {("a",): np.log([8.0, 4.0, 2.0, 2.0])}, 1_600.0, 0.0)
    rho = Fraction(1, 200)
    for candidate in selection.partitioned_candidates(
        replace(STATE, model=model), (("a",), ("a", "d")), rho, partition_grid, LEVELS
    ):
        expected = candidate.partition.sum_expected(model.project(candidate.clique))
        assert np.abs(candidate.expected - expected * GRID).max() <= 0.5
        measured = degrees(candidate.partition.axes) if candidate.partition.axes else candidate.partition.count
        noise = np.sqrt(2 / np.pi) * noise_scale(rho, 1) * measured
        assert expected.min() > noise / candidate.partition.count
        assert candidate.penalty == pytest.approx(noise * GRID, abs=1 + candidate.partition.count)
        assert candidate.weight == 1


def test_when_noise_drowns_everything_single_attributes_at_least_stay() -> None:
    found = selection.partitioned_candidates(STATE, (("a",), ("b", "c")), Fraction(1, 10**30), partition_grid, LEVELS)
    assert [candidate.clique for candidate in found] == [("a",)]
    assert all(candidate.penalty == candidate.expected.sum() for candidate in found)


@settings(deadline=None)
@given(
    expected=st.lists(st.integers(0, 2**40), min_size=1, max_size=20),
    axes=st.sampled_from([(), (2, 3)]),
    sigma=st.floats(1e-3, 1e9),
)
def test_noise_costs_a_group_no_more_than_the_rows_expected_in_it(
    expected: list[int], axes: tuple[int, ...], sigma: float
) -> None:
    partition = replace(finest(6), axes=axes) if axes else finest(len(expected))
    counts = np.resize(np.array(expected, np.int64), partition.count)
    each = selection.noise_l1(partition, sigma) * GRID / partition.count
    cost = selection.noise_cost(counts, partition, sigma)
    assert cost <= counts.sum()
    assert cost == pytest.approx(sum(min(each, count) for count in counts.tolist()), abs=partition.count)
    assert selection.noise_cost(np.zeros_like(counts), partition, sigma) == 0
