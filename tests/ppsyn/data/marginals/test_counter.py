"""Every marginal is counted exactly, however many there are and however little room."""

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppsyn.arrays import Codes, Ints
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.data.marginals.counter import fitting, group_under_supersets
from ppsyn.data.marginals.kernel import Layout, add_block, count_blocks
from ppsyn.domain import Attribute, Clique, Domain, downward_closure
from ppsyn.errors import ConfigError, InvariantError

_MB = 2**20
_CELL = 8 / _MB


def table_of(sizes: Sequence[int], rows: int, seed: int = 0) -> EncodedTable:
    rng = np.random.Generator(np.random.PCG64(seed))
    domain = Domain(tuple(Attribute(f"a{place}", size) for place, size in enumerate(sizes)))
    return EncodedTable(domain, {a.name: rng.integers(0, a.size, rows).astype(np.int32) for a in domain.attributes})


def plainly(table: EncodedTable, clique: Clique) -> list[int]:
    """The counts as numpy makes them."""
    counts = np.zeros(table.domain.shape(clique), np.int64)
    np.add.at(counts, tuple(table.columns[name] for name in clique), 1)
    return counts.ravel().tolist()


class Watched:
    """Rows that note what every pass was asked for."""

    def __init__(self, table: EncodedTable) -> None:
        self.table, self.domain, self.passes = table, table.domain, list[list[Clique]]()

    def count(self, cliques: Sequence[Clique]) -> list[Ints]:
        self.passes.append(list(cliques))
        return count_blocks(self.domain, [self.table.columns], cliques)


@st.composite
def asked(draw: st.DrawFn) -> tuple[EncodedTable, list[Clique]]:
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    table = table_of(sizes, draw(st.sampled_from([0, 1, 7, 4095, 4096, 4097, 9000])), draw(st.integers(0, 99)))
    every = downward_closure([table.domain.names])
    return table, draw(st.lists(st.sampled_from(every), min_size=1, max_size=20))


@settings(max_examples=60, deadline=None)
@given(asked(), st.sampled_from([0.0, 20 * _CELL, 100 * _CELL, 1.0]))
def test_counts_are_those_of_numpy_whatever_the_room(case: tuple[EncodedTable, list[Clique]], room_mb: float) -> None:
    table, cliques = case
    counter = TableCounter(table, room_mb)
    for _ in range(2):
        found = list(counter.marginals(cliques))
        assert sorted(clique for clique, _ in found) == sorted(set(cliques))
        for clique, counts in found:
            assert counts.dtype == np.int64
            assert counts.tolist() == plainly(table, clique)
    assert counter.counts(cliques[0]).tolist() == plainly(table, cliques[0])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 9000), st.lists(st.integers(0, 9000), max_size=4))
def test_blocks_add_up_to_the_table(rows: int, cuts: list[int]) -> None:
    table = table_of([3, 2, 4], rows)
    ends = [0, *sorted(min(cut, rows) for cut in cuts), rows]
    blocks = [{n: c[a:b] for n, c in table.columns.items()} for a, b in pairwise(ends)]
    cliques = downward_closure([table.domain.names])
    found = count_blocks(table.domain, blocks, cliques)
    assert [counts.tolist() for counts in found] == [plainly(table, clique) for clique in cliques]


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.int32, np.int64])
def test_codes_of_any_width_are_counted(kind: type[np.integer]) -> None:
    table = table_of([200, 3], 1000)
    block = {name: column.astype(kind) for name, column in table.columns.items()}
    assert count_blocks(table.domain, [block], [("a0", "a1")])[0].tolist() == plainly(table, ("a0", "a1"))


@pytest.mark.parametrize("code", [-1, 3, 2**31 - 1])
def test_a_code_that_is_none_is_not_counted(code: int) -> None:
    domain = Domain((Attribute("a", 3), Attribute("b", 2)))
    layout = Layout(domain, (("a", "b"),))
    block: dict[str, Codes] = {"a": np.array([0, code], np.int32), "b": np.array([1, 1], np.int32)}
    counts = layout.empty()
    with pytest.raises(InvariantError):
        add_block(layout, block, counts)
    assert not counts.any()


def test_a_marginal_that_nobody_can_hold_is_refused_by_name() -> None:
    domain = Domain((Attribute("big", 2**16), Attribute("bigger", 2**15)))
    with pytest.raises(ConfigError, match="big, bigger"):
        Layout(domain, (("big", "bigger"),))


def test_all_that_fit_are_counted_in_one_pass_and_never_again() -> None:
    rows = Watched(table_of([2, 3, 4, 5], 100))
    every = downward_closure(list(combinations(rows.domain.names, 3)))
    counter = TableCounter(rows)
    dict(counter.marginals(every))
    dict(counter.marginals(every))
    assert counter.counts(("a1",)).sum() == 100
    assert [sorted(asked) for asked in rows.passes] == [sorted(combinations(rows.domain.names, 3))]


def test_a_lower_marginal_is_the_sum_of_one_that_is_kept() -> None:
    rows = Watched(table_of([2, 3, 4], 50))
    counter = TableCounter(rows)
    counter.counts(("a0", "a1", "a2"))
    assert counter.counts(("a0", "a2")).tolist() == plainly(rows.table, ("a0", "a2"))
    assert len(rows.passes) == 1


def test_what_cannot_be_kept_is_counted_when_it_is_asked_for() -> None:
    rows = Watched(table_of([4] * 6, 50))
    triples = list(combinations(rows.domain.names, 3))
    counter = TableCounter(rows, room_mb=(5 * 64 + 1) * _CELL)
    dict(counter.marginals(triples))
    assert list(map(len, rows.passes)) == [5, *[1] * 15]
    rows.passes.clear()
    dict(counter.marginals(triples))
    assert list(map(len, rows.passes)) == [1] * 15


def test_the_smallest_marginals_are_kept_as_far_as_the_room_goes() -> None:
    domain = table_of([2, 3, 50], 0).domain
    every = downward_closure([domain.names])
    assert fitting(domain, every, 11 * _CELL) == (("a0",), ("a1",), ("a0", "a1"))
    assert fitting(domain, every, 10 * _CELL) == (("a0",), ("a1",))
    assert set(fitting(domain, every, 1.0)) == set(every)


@given(asked())
def test_every_marginal_is_under_one_that_holds_it(case: tuple[EncodedTable, list[Clique]]) -> None:
    table, cliques = case
    tops = group_under_supersets(table.domain, cliques)
    assert sorted(c for top, below in tops.items() for c in (top, *below)) == sorted(set(cliques))
    assert all(set(clique) < set(top) for top, below in tops.items() for clique in below)
    assert not any(set(top) < set(clique) for top in tops for clique in cliques)


def test_counts_cannot_be_changed_by_who_gets_them() -> None:
    counter = TableCounter(table_of([2, 3], 10))
    for clique in (("a0", "a1"), ("a1",)):
        with pytest.raises(ValueError, match="read-only"):
            counter.counts(clique)[0] = 7
