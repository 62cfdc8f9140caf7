"""Junction trees hold every clique, have the running intersection property, and are as large as predicted."""

import math
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.small_models import UNHURRIED, cliques_of, domain_of, domains

from ppsyn.domain import Clique, Domain
from ppsyn.model.junction_tree import BYTES_PER_CELL, JunctionTree, interaction_graph, junction_tree

Case = tuple[Domain, tuple[Clique, ...]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    domain = draw(domains(most=7, size=9))
    return domain, draw(cliques_of(domain))


def cells_of(tree: JunctionTree) -> int:
    return sum(tree.domain.size(node) for node in tree.nodes)


def predicted_cells(domain: Domain, cliques: Sequence[Clique]) -> float:
    return interaction_graph(domain, cliques).model_mb() * 2**20 / BYTES_PER_CELL


def cells_by_least_weight(domain: Domain, cliques: Sequence[Clique]) -> int:
    """Cells after eliminating, again and again, the attribute whose clique is the smallest."""
    near = {name: {other for c in cliques if name in c for other in c} - {name} for name in domain.names}
    formed: list[set[str]] = []
    while near:
        name = min(near, key=lambda name: (round(math.log(domain.size({name, *near[name]})), 9), domain.rank[name]))
        around = near.pop(name)
        formed.append({name, *around})
        for other in around:
            near[other] = (near[other] | around) - {name, other}
    return sum(domain.size(c) for i, c in enumerate(formed) if not any(c <= earlier for earlier in formed[:i]))


def components_of(domain: Domain, cliques: Sequence[Clique]) -> int:
    parts = [{name} for name in domain.names]
    for clique in cliques:
        touched = [part for part in parts if part & set(clique)]
        parts = [part for part in parts if part not in touched] + [set[str]().union(*touched)]
    return len(parts)


@UNHURRIED
@given(cases())
def test_every_clique_has_a_home_and_every_attribute_a_node(case: Case) -> None:
    domain, cliques = case
    tree = junction_tree(domain, cliques)
    homes = [tree.home(clique) for clique in cliques]
    assert all(home is not None and set(c) <= set(tree.nodes[home]) for c, home in zip(cliques, homes, strict=True))
    assert {name for node in tree.nodes for name in node} == set(domain.names)


@UNHURRIED
@given(cases())
def test_the_nodes_of_an_attribute_are_connected(case: Case) -> None:
    domain, cliques = case
    tree = junction_tree(domain, cliques)
    for name in domain.names:
        nodes = sum(name in node for node in tree.nodes)
        edges = sum(name in tree.separator(index) for index in range(len(tree.nodes)))
        assert nodes - edges == 1


@UNHURRIED
@given(cases())
def test_parents_stand_before_children_and_neighbours_mirror_them(case: Case) -> None:
    tree = junction_tree(*case)
    assert all(-1 <= parent < index for index, parent in enumerate(tree.parents))
    edges = {(index, parent) for index, parent in enumerate(tree.parents) if parent >= 0}
    found = {(max(i, j), min(i, j)) for i, row in enumerate(tree.neighbours) for j in row}
    assert found == edges


@UNHURRIED
@given(cases())
def test_no_node_holds_another_and_each_is_in_the_domains_order(case: Case) -> None:
    tree = junction_tree(*case)
    assert not any(set(a) <= set(b) or set(b) <= set(a) for a, b in combinations(tree.nodes, 2))
    assert all(tree.domain.clique(node) == node for node in tree.nodes)


@UNHURRIED
@given(cases(), st.randoms())
def test_the_order_and_number_of_equal_cliques_decide_nothing(case: Case, random: "st.Random") -> None:
    domain, cliques = case
    shuffled = [*cliques, *cliques]
    random.shuffle(shuffled)
    assert junction_tree(domain, shuffled) == junction_tree(domain, cliques)


@UNHURRIED
@given(cases())
def test_the_predicted_size_is_the_size_of_the_tree(case: Case) -> None:
    assert predicted_cells(*case) == pytest.approx(cells_of(junction_tree(*case)), rel=1e-12)


@UNHURRIED
@given(cases())
def test_a_tree_is_never_larger_than_plain_elimination_by_least_weight(case: Case) -> None:
    assert cells_of(junction_tree(*case)) <= cells_by_least_weight(*case)


def test_a_chain_stays_a_chain_where_elimination_by_least_weight_would_fill_it_in() -> None:
    domain = domain_of(a=8, b=7, c=3, d=2, e=2)
    chain = [("a", "d"), ("d", "e"), ("c", "e"), ("b", "c")]
    assert cells_by_least_weight(domain, chain) == 49
    assert cells_of(junction_tree(domain, chain)) == sum(map(domain.size, chain)) == 47


@UNHURRIED
@given(cases())
def test_each_component_of_the_graph_is_a_tree_of_its_own(case: Case) -> None:
    tree = junction_tree(*case)
    assert tree.parents.count(-1) == components_of(*case)
    assert all(tree.separator(index) for index, parent in enumerate(tree.parents) if parent >= 0)


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")],
        [("a", "c"), ("b", "c"), ("c", "d"), ("c", "e")],
        [("a", "b"), ("c", "d")],
    ],
)
def test_pairs_without_a_cycle_are_the_nodes_themselves(pairs: list[Clique]) -> None:
    domain = domain_of(a=2, b=30, c=4, d=50, e=6)
    tree = junction_tree(domain, pairs)
    single = {(name,) for name in domain.names} - {(name,) for pair in pairs for name in pair}
    assert set(tree.nodes) == set(pairs) | single


def test_a_cycle_of_four_is_cut_along_its_cheaper_diagonal() -> None:
    domain = domain_of(a=2, b=10, c=3, d=10)
    tree = junction_tree(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    assert set(tree.nodes) == {("a", "b", "c"), ("a", "c", "d")}


def test_one_attribute_is_one_node() -> None:
    tree = junction_tree(domain_of(only=7), [("only",)])
    assert tree == JunctionTree(tree.domain, (("only",),), (-1,))
    assert predicted_cells(tree.domain, []) == pytest.approx(7, rel=1e-12)


def test_attributes_of_one_value_cost_one_cell_each() -> None:
    domain = domain_of(a=1, b=1, c=5)
    tree = junction_tree(domain, [("a", "c")])
    assert set(tree.nodes) == {("a", "c"), ("b",)}
    assert cells_of(tree) == 6


def test_home_is_the_smallest_node_that_fits() -> None:
    domain = domain_of(a=9, b=2, c=3)
    tree = junction_tree(domain, [("a", "b"), ("b", "c")])
    assert tree.nodes[tree.home(("b",)) or 0] == ("b", "c")
    assert tree.home(("a", "c")) is None


def test_a_graph_holds_what_adds_no_edge_and_grows_by_what_does() -> None:
    graph = interaction_graph(domain_of(a=2, b=3, c=5), [("a", "b"), ("b", "c")])
    grown = graph.with_clique(("a", "c"))
    assert graph.holds(("b",))
    assert graph.holds(("a", "b"))
    assert not graph.holds(("a", "c"))
    assert grown.holds(("a", "b", "c"))
    assert grown.maximal_cliques() == (("a", "b", "c"),)
    assert graph.maximal_cliques() == (("a", "b"), ("b", "c"))
