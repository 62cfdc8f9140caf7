import numpy as np
import pytest
from support.benchmark_tables import toy_table

from ppsyn.benchmark.runs import FOLDS, TARGETS, cross_validate, targets_of
from ppsyn.benchmark.tables import open_table
from ppsyn.data.encoding import EncodedTable
from ppsyn.domain import Attribute, Domain
from ppsyn.evaluation.metrics import Target, classes_of, misclassified

DOMAIN = Domain((Attribute("x", 4), Attribute("copy", 2), Attribute("y", 2)))
TARGET = Target("y", "y", 1)


def table_of(x: list[int], y: list[int]) -> EncodedTable:
    columns = {"x": np.array(x, np.int32), "copy": np.array(y, np.int32), "y": np.array(y, np.int32)}
    return EncodedTable(DOMAIN, columns)


def test_what_can_be_learned_is_learned_though_it_follows_no_order() -> None:
    table = table_of([0, 1, 2, 3] * 20, [0, 1, 0, 1] * 20)
    assert misclassified(table, table, Target("y", "y", 1, hidden=("copy",))) == 0


def test_hidden_attributes_are_not_looked_at() -> None:
    table = table_of([0] * 40, [0, 0, 0, 1] * 10)
    assert misclassified(table, table, TARGET) == 0
    assert misclassified(table, table, Target("y", "y", 1, hidden=("copy",))) == pytest.approx(0.25)


def test_a_target_may_be_some_values_in_the_middle() -> None:
    table = table_of([0, 1, 2, 3], [0, 0, 0, 0])
    assert classes_of(table, Target("x", "x", 1, most=2)).tolist() == [False, True, True, False]


@pytest.mark.parametrize(("learned", "error"), [([1, 1], 0.75), ([0, 0], 0.25), ([], 0.25)])
def test_with_one_class_to_learn_from_that_is_the_answer(learned: list[int], error: float) -> None:
    tested = table_of([0, 1, 2, 3], [0, 0, 0, 1])
    assert misclassified(table_of(learned, learned), tested, TARGET) == pytest.approx(error)


def test_every_row_is_tested_once_and_never_learned_from_in_its_fold() -> None:
    table = toy_table(103)
    seen: list[int] = []

    def make(learned: EncodedTable, fold: int) -> EncodedTable:
        assert fold == len(seen)
        seen.append(len(learned.columns["a"]))
        return learned

    rates = cross_validate(table, [Target("c", "c", 1)], make, seed=3)
    assert len(seen) == FOLDS
    assert sum(103 - learned for learned in seen) == 103
    assert 0 < rates["c"] < 0.4


def test_folds_depend_on_the_seed_alone() -> None:
    table = toy_table(200)
    first, again, other = (cross_validate(table, [Target("c", "c", 1)], lambda rows, _: rows, s) for s in (1, 1, 2))
    assert first == again != other


def test_known_tables_have_three_targets_and_others_none() -> None:
    domain = open_table(None, "adult").domain
    assert [target.name for target in targets_of("adult", domain)] == [
        "income above 50K",
        "male",
        "bachelor's degree or more",
    ]
    assert len(TARGETS["br2000"]) == 3
    assert targets_of("toy", domain) == ()
    assert targets_of("adult", toy_table().domain) == ()
