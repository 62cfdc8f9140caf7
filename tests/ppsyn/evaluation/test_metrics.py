import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.benchmark_tables import toy_table

from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Domain
from ppsyn.evaluation.metrics import (
    MAX_CELLS,
    RANGES_A_SET,
    RangeQuery,
    all_marginals,
    fitting_cliques,
    range_error,
    range_fractions,
    range_queries,
    workload_error,
)

sizes = st.lists(st.integers(1, 12), min_size=3, max_size=8)


def domain_of(found: list[int]) -> Domain:
    return Domain(tuple(Attribute(f"a{number}", size) for number, size in enumerate(found)))


@given(sizes, st.integers(1, 5), st.integers(1, 2_000))
def test_fitting_cliques_are_all_that_fit(found: list[int], degree: int, max_cells: int) -> None:
    domain = domain_of(found)
    expected = [clique for clique in combinations(domain.names, degree) if domain.size(clique) <= max_cells]
    assert fitting_cliques(domain, degree, max_cells) == expected


@st.composite
def asked(draw: st.DrawFn) -> tuple[EncodedTable, RangeQuery]:
    domain = domain_of(draw(sizes))
    rows = draw(st.integers(0, 30))
    columns = {
        a.name: np.array(draw(st.lists(st.integers(0, a.size - 1), min_size=rows, max_size=rows)), np.int32)
        for a in domain.attributes
    }
    clique = domain.clique(draw(st.sets(st.sampled_from(domain.names), min_size=1)))
    ends = [sorted(draw(st.tuples(*[st.integers(0, domain[name].size - 1)] * 2))) for name in clique]
    return EncodedTable(domain, columns), RangeQuery(clique, tuple(a for a, _ in ends), tuple(b for _, b in ends))


@given(asked())
def test_the_share_of_a_range_is_that_of_the_rows_in_it(case: tuple[EncodedTable, RangeQuery]) -> None:
    table, query = case
    rows = list(zip(*(table.columns[name].tolist() for name in query.clique), strict=True))
    inside = [
        all(low <= code <= high for code, low, high in zip(row, query.lows, query.highs, strict=True)) for row in rows
    ]
    assert range_fractions(TableCounter(table), table.domain, [query])[0] == pytest.approx(
        sum(inside) / max(1, len(rows))
    )


@given(sizes, st.sampled_from([3, 5]), st.integers(0, 5))
def test_range_queries_lie_in_the_domain_and_depend_on_their_seed(found: list[int], degree: int, seed: int) -> None:
    domain = domain_of(found)
    queries = range_queries(domain, degree, seed)
    assert queries == range_queries(domain, degree, seed)
    assert len(queries) == RANGES_A_SET * min({3: 210, 5: 37}[degree], len(fitting_cliques(domain, degree, MAX_CELLS)))
    for query in queries:
        assert query.clique == domain.clique(query.clique)
        assert domain.size(query.clique) <= MAX_CELLS
        ends = zip(query.lows, query.highs, domain.shape(query.clique), strict=True)
        assert all(0 <= low <= high < size for low, high, size in ends)


def test_no_set_of_attributes_is_asked_for_twice_and_heavy_ones_come_up_more_often() -> None:
    domain = domain_of([2] * 20)
    sets = [query.clique for query in range_queries(domain, 3, 0)[::RANGES_A_SET]]
    assert len(set(sets)) == len(sets) == 210
    counts = sorted(sum(name in clique for clique in sets) for name in domain.names)
    assert counts[-1] > 3 * max(1, counts[0])  # with equal weights 1.5 to 2.4 times, over 50 seeds


def test_adult_as_the_paper_encodes_it_has_the_numbers_of_sets_that_the_paper_names() -> None:
    domain = domain_of([85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2])
    assert len(fitting_cliques(domain, 3, MAX_CELLS)) == 210
    assert len(fitting_cliques(domain, 5, MAX_CELLS)) == 37


def test_the_range_error_is_the_mean_square_of_the_differences() -> None:
    domain = domain_of([2])
    real = EncodedTable(domain, {"a0": np.array([0, 0, 0, 1], np.int32)})
    made = EncodedTable(domain, {"a0": np.array([0, 1], np.int32)})
    queries = [RangeQuery(("a0",), (0,), (0,)), RangeQuery(("a0",), (0,), (1,))]
    assert range_error(real, made, queries) == pytest.approx(0.25**2 / 2)
    assert range_error(real, real, queries) == 0
    assert range_error(real, made, []) is None


def test_marginals_are_all_of_a_degree_or_three_hundred_always_the_same() -> None:
    domain = toy_table().domain
    assert all_marginals(domain, 1) == [(name,) for name in domain.names]
    assert len(all_marginals(domain, 2)) == math.comb(4, 2)
    wide = domain_of([5] * 20)
    assert len(all_marginals(wide, 3)) == 300
    assert all_marginals(wide, 3) == all_marginals(wide, 3)


def test_single_attributes_count_however_large_and_pairs_within_the_limit() -> None:
    domain = domain_of([20_000, 2, 2])
    assert len(all_marginals(domain, 1)) == 3
    assert all_marginals(domain, 2) == [("a1", "a2")]


def test_there_is_nothing_to_ask_where_no_set_fits() -> None:
    assert range_queries(domain_of([3, 3]), 3, 0) == ()


# Marginals

DOMAIN = Domain((Attribute("a", 2), Attribute("b", 3)))


def table(a: list[int], b: list[int]) -> EncodedTable:
    return EncodedTable(DOMAIN, {"a": np.array(a, np.int32), "b": np.array(b, np.int32)})


def test_a_table_is_at_no_distance_from_itself() -> None:
    assert workload_error(table([0, 1], [2, 0]), table([0, 1], [2, 0]), [("a",), ("a", "b")]) == 0


def test_disjoint_tables_are_at_distance_one_and_means_are_taken() -> None:
    real, made = table([0, 0], [0, 0]), table([1, 1], [0, 0])
    assert workload_error(real, made, [("a",)]) == 1
    assert workload_error(real, made, [("a",), ("b",)]) == pytest.approx(0.5)


def test_row_numbers_do_not_matter_and_empty_tables_do_not_divide_by_zero() -> None:
    assert workload_error(table([0, 1], [0, 0]), table([0, 1, 0, 1], [0] * 4), [("a",)]) == 0
    assert np.isfinite(workload_error(table([], []), table([0], [0]), [("a",)]))


def test_counts_are_in_the_order_of_the_domain() -> None:
    counts = TableCounter(table([0, 1, 1], [2, 0, 0])).counts(("a", "b"))
    assert counts.reshape(2, 3).tolist() == [[0, 0, 1], [2, 0, 0]]
