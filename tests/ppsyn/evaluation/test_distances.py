import numpy as np
import pytest

from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Domain
from ppsyn.evaluation import workload_error

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
