"""Attributes keep their order, and sets of cliques have one spelling."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppsyn.domain import Attribute, Clique, Domain, downward_closure, maximal
from ppsyn.errors import ConfigError, SchemaError

DOMAIN = Domain((Attribute("sex", 2), Attribute("age", 9), Attribute("job", 5, is_ordered=False)))
cliques = st.lists(
    st.sets(st.sampled_from("abcde"), min_size=1, max_size=4).map(lambda names: tuple(sorted(names))), max_size=6
)


def is_inside(clique: Clique, other: Clique) -> bool:
    return set(clique) <= set(other)


def test_names_shapes_and_ranks_follow_the_tables_order() -> None:
    assert DOMAIN.names == ("sex", "age", "job")
    assert DOMAIN.rank == {"sex": 0, "age": 1, "job": 2}
    assert DOMAIN.shape(("job", "sex")) == (5, 2)
    assert DOMAIN.size(("sex", "age", "job")) == 90
    assert DOMAIN.size(()) == 1
    assert DOMAIN["job"] == Attribute("job", 5, is_ordered=False)


def test_a_clique_is_brought_into_the_domains_order() -> None:
    assert DOMAIN.clique(["job", "sex"]) == ("sex", "job")
    assert DOMAIN.clique(iter(("age",))) == ("age",)


@pytest.mark.parametrize("names", [("sex", "height"), ("sex", "sex"), ()])
def test_a_clique_with_unknown_repeated_or_no_attributes_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError):
        DOMAIN.clique(names)


def test_the_error_names_the_unknown_attribute_and_those_there_are() -> None:
    with pytest.raises(ConfigError, match="'height'; it has sex, age, job"):
        DOMAIN.clique(["height"])


@pytest.mark.parametrize(
    "attributes", [(), (Attribute("a", 2), Attribute("a", 3)), (Attribute("a", 0),), (Attribute("a", -1),)]
)
def test_a_domain_with_no_repeated_or_empty_attributes_is_refused(attributes: tuple[Attribute, ...]) -> None:
    with pytest.raises(SchemaError):
        Domain(attributes)


@given(cliques)
def test_the_downward_closure_is_every_non_empty_subset_once(cliques: list[Clique]) -> None:
    closure = downward_closure(cliques)
    expected = {
        subset for clique in cliques for degree in range(1, 5) for subset in combinations(clique, degree) if subset
    }
    assert set(closure) == expected
    assert len(closure) == len(expected)


@given(cliques)
def test_the_downward_closure_of_itself_is_itself(cliques: list[Clique]) -> None:
    closure = downward_closure(cliques)
    assert downward_closure(closure) == closure


@given(cliques, st.randoms())
def test_the_order_of_cliques_decides_nothing(cliques: list[Clique], random: "st.Random") -> None:
    shuffled = [*cliques, *cliques[:2]]
    random.shuffle(shuffled)
    assert downward_closure(shuffled) == downward_closure(cliques)
    assert maximal(shuffled) == maximal(cliques)


@given(cliques)
def test_small_cliques_come_first_in_a_closure_and_last_among_the_maximal(cliques: list[Clique]) -> None:
    lengths = [len(clique) for clique in downward_closure(cliques)]
    assert lengths == sorted(lengths)
    lengths = [len(clique) for clique in maximal(cliques)]
    assert lengths == sorted(lengths, reverse=True)


@given(cliques)
def test_maximal_cliques_hold_all_and_none_holds_another(cliques: list[Clique]) -> None:
    kept = maximal(cliques)
    assert set(kept) <= set(cliques)
    assert all(any(is_inside(clique, other) for other in kept) for clique in cliques)
    assert not any(is_inside(left, right) or is_inside(right, left) for left, right in combinations(kept, 2))
