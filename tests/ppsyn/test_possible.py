"""Which rows rules leave, against all rows there are: the tables are small enough to list them."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.ruled import all_rows, keeps, leaves_all, ruled_domains

from ppsyn.domain import Attribute, Domain, Zeros
from ppsyn.errors import SchemaError
from ppsyn.possible import broken, check_rules, nearest


@given(ruled_domains())
@settings(deadline=None)
def test_rules_are_refused_exactly_if_they_leave_a_value_no_row(domain: Domain) -> None:
    if leaves_all(domain):
        check_rules(domain)
        return
    with pytest.raises(SchemaError) as error:
        check_rules(domain)
    blamed = tuple(zeros for zeros in domain.zeros if repr(zeros.rule) in str(error.value))
    # Those named leave a value no row by themselves, and each of them is needed for it.
    assert not leaves_all(Domain(domain.attributes, blamed))


@given(ruled_domains())
@settings(deadline=None)
def test_a_row_becomes_a_nearest_one_that_breaks_no_rule(domain: Domain) -> None:
    assume(leaves_all(domain))
    rows, kept = all_rows(domain), keeps(domain)
    found = nearest({name: rows[:, place].copy() for place, name in enumerate(domain.names)}, domain)
    settled = np.stack([found[name] for name in domain.names], axis=1)
    possible = rows[kept]
    assert {tuple(row) for row in settled.tolist()} <= {tuple(row) for row in possible.tolist()}
    for row, made, is_kept in zip(rows, settled, kept, strict=True):
        if is_kept:
            assert (row == made).all()
            continue
        changes, distance = (possible != row).sum(axis=1), np.abs(possible - row).sum(axis=1)
        if changes.min() <= 2 and len({frozenset(zeros.clique) for zeros in domain.zeros}) == 1:
            best = min(zip(changes.tolist(), distance.tolist(), strict=True))
            assert ((made != row).sum(), np.abs(made - row).sum()) == best


@given(ruled_domains(), st.integers(0, 99))
@settings(deadline=None)
def test_what_a_row_becomes_depends_on_no_other_row(domain: Domain, seed: int) -> None:
    assume(leaves_all(domain))
    rows = all_rows(domain)
    order = np.random.default_rng(seed).permutation(len(rows))[: len(rows) // 2 + 1]
    together = nearest({name: rows[:, place] for place, name in enumerate(domain.names)}, domain)
    some = nearest({name: rows[order, place] for place, name in enumerate(domain.names)}, domain)
    for name in domain.names:
        assert together[name][order].tolist() == some[name].tolist()


def test_the_rules_that_leave_a_value_impossible_are_named_and_no_others() -> None:
    yes = np.ones((2, 2), np.bool_)
    first, second, other = yes.copy(), yes.copy(), yes.copy()
    first[0, 1], second[1, 0], second[1, 1], other[0, 0] = False, False, False, False
    attributes = (Attribute("a", 2), Attribute("b", 2), Attribute("c", 2))
    domain = Domain(
        attributes,
        (Zeros("other", ("a", "c"), other), Zeros("first", ("a", "b"), first), Zeros("second", ("b", "c"), second)),
    )
    with pytest.raises(SchemaError, match="'second' leaves no row with code 1 of 'b'") as error:
        check_rules(domain)
    assert "'other'" not in str(error.value)


def test_forty_rules_about_sixty_columns_are_checked_in_seconds() -> None:
    rng = np.random.default_rng(0)
    attributes = tuple(Attribute(f"a{place}", 10) for place in range(60))
    zeros = tuple(
        Zeros(f"rule {k}", (f"a{k}", f"a{k + 1}", f"a{k + 3}"), rng.random((10, 10, 10)) < 0.8) for k in range(40)
    )
    domain = Domain(attributes, zeros)
    check_rules(domain)
    codes = {a.name: rng.integers(0, 10, 2000).astype(np.int32) for a in attributes}
    found = nearest(codes, domain)
    assert not any(broken(found, one).any() for one in zeros)


def test_rules_that_join_too_many_columns_are_refused() -> None:
    attributes = tuple(Attribute(f"a{place}", 60) for place in range(5))
    pairs = [(f"a{i}", f"a{j}") for i in range(5) for j in range(i)]
    zeros = tuple(Zeros(f"{i}{j}", (j, i), ~np.eye(60, dtype=np.bool_)) for i, j in pairs)
    with pytest.raises(SchemaError, match="join columns into a table of"):
        check_rules(Domain(attributes, zeros))
