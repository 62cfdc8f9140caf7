"""Rules: what they say, in sentences and in codes, and which cannot be kept."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from ppsyn.schemas.table import TableSchema

COLUMNS = """
name: people
columns:
  - {name: age, kind: integer, lower: 0, upper: 99, step: 5}
  - {name: status, kind: categorical, values: [never, married, widowed], outside: refuse}
  - {name: grade, kind: categorical, values: [low, middle, high], ordered: true, outside: refuse}
  - {name: job, kind: categorical, values: [nurse, miner], nullable: true}
  - {name: employed, kind: boolean, outside: refuse}
  - {name: start, kind: date, lower: 2020-01-01, upper: 2020-12-31, unit: month}
  - {name: end, kind: date, lower: 2020-01-01, upper: 2021-06-30, unit: quarter, nullable: true}
  - {name: left, kind: date, lower: 2020-01-01, upper: 2021-06-30, unit: quarter}
  - {name: pay, kind: real, lower: 0, upper: 10, bins: 5}
  - {name: adult, kind: boolean, outside: refuse, follows: {by: cut, of: age, at: [20]}}
  - {name: days, kind: integer, lower: -365, upper: 600, nullable: true, follows: {by: elapsed, of: [start, end]}}
"""


def schema_with(*rules: str) -> TableSchema:
    """The columns above, with rules."""
    document: dict[str, Any] = yaml.safe_load(COLUMNS)
    return TableSchema.model_validate({**document, "rules": [yaml.safe_load(rule) for rule in rules]})


def problem_of(*rules: str) -> str:
    """What is said of rules that cannot be kept."""
    with pytest.raises(ValidationError) as error:
        schema_with(*rules)
    return str(error.value)


def broken_cells(schema: TableSchema) -> set[tuple[int, ...]]:
    """The cells that the only rule forbids."""
    (table,) = schema.tables
    return {tuple(cell) for cell in np.argwhere(~table.allowed).tolist()}


def test_a_rule_forbids_what_breaks_it_and_nothing_else() -> None:
    schema = schema_with("{name: r, when: {age: {below: 15}}, then: {status: never}}")
    assert schema.tables[0].attributes == ("age", "status")
    assert broken_cells(schema) == {(age, status) for age in range(3) for status in (1, 2)}


@pytest.mark.parametrize(
    ("condition", "codes"),
    [
        ("{at_least: 15}", range(3, 20)),
        ("{above: 14, below: 20}", {3}),
        ("{at_most: 4}", {0}),
        ("{at_least: 5, at_most: 14}", {1, 2}),
    ],
)
def test_a_span_means_the_bins_that_lie_in_it(condition: str, codes: "set[int] | range") -> None:
    schema = schema_with(f"{{name: r, never: {{age: {condition}, status: married}}}}")
    assert broken_cells(schema) == {(age, 1) for age in codes}


@pytest.mark.parametrize(
    ("condition", "codes"),
    [("nurse", {0}), ("[nurse, null]", {0, 2}), ("{other_than: nurse}", None), ("{other_than: [nurse]}", {1, 2}),
     ("{other_than: [nurse, null]}", {1}), ("null", {2})],
)  # fmt: skip
def test_null_is_meant_where_it_is_listed_or_left_over(condition: str, codes: set[int] | None) -> None:
    rule = f"{{name: r, never: {{job: {condition}, status: married}}}}"
    if codes is None:
        assert "other_than" in problem_of(rule)
    else:
        assert broken_cells(schema_with(rule)) == {(1, job) for job in codes}


def test_labels_with_an_order_have_spans_too() -> None:
    schema = schema_with("{name: r, never: {grade: {at_least: middle}, employed: false}}")
    assert broken_cells(schema) == {(1, 0), (2, 0)}


def test_a_condition_on_a_column_that_follows_is_one_on_what_it_follows_from() -> None:
    schema = schema_with("{name: r, when: {adult: false}, then: {status: never}}")
    assert schema.tables[0].attributes == ("age", "status")
    assert broken_cells(schema) == {(age, status) for age in range(4) for status in (1, 2)}


def test_an_order_forbids_bins_that_cannot_be_in_order_and_lets_null_be() -> None:
    (table,) = schema_with("{name: r, order: [start, end]}").tables
    # March 2020 and the first quarter may be in order, April and the first quarter not; null is always allowed.
    assert table.allowed[2, 0]
    assert not table.allowed[3, 0]
    assert table.allowed[:, -1].all()


def test_orders_add_up_and_a_rule_that_follows_is_known_too() -> None:
    schema = schema_with("{name: r, order: [start, left], strict: true}", "{name: s, order: [left, end], strict: true}")
    found = {(step.before, step.after): step.gap for step in schema.precedences}
    assert found == {("start", "left"): 1, ("left", "end"): 1, ("start", "end"): 2}


def test_a_null_policy_allows_null() -> None:
    rule = "{name: r, when: {employed: false}, then: {job: nurse}, broken: null}"
    assert broken_cells(schema_with(rule)) == {(1, 0)}


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("{name: r, when: {age: {below: 17}}, then: {status: never}}", "bins of 'age' not to be parted by below 17"),
        ("{name: r, when: {age: 17}, then: {status: never}}", "bins of 'age' not to be parted by 17"),
        ("{name: r, when: {age: {at_least: 16, below: 18}}, then: {status: never}}", "not to be parted"),
        ("{name: r, when: {nobody: 1}, then: {status: never}}", "got 'nobody'"),
        ("{name: r, when: {status: divorced}, then: {job: nurse}}", "'status' can have, got 'divorced'"),
        ("{name: r, when: {age: 100}, then: {status: never}}", "Expected values of 'age', got 100"),
        ("{name: r, when: {status: {below: married}}, then: {job: nurse}}", "whose values have no order"),
        ("{name: r, when: {employed: null}, then: {job: nurse}}", "Expected 'employed' to be nullable"),
        ("{name: r, when: {days: 3}, then: {job: nurse}}", "'days' follows from several"),
        ("{name: r, when: {employed: true}, then: {status: never}, broken: null}", "'status' to be nullable"),
        ("{name: r, never: {employed: true, job: nurse}, broken: null}", "names nothing to null"),
        ("{name: r, order: [start, pay]}", "to be of one kind"),
        ("{name: r, order: [pay, status]}", "'status' is not"),
        ("{name: r, order: [start, days]}", "'days' is not"),
        ("{name: r, order: [start, start]}", "each column once"),
        ("{name: r, when: {employed: true}}", "Expected `when` and `then`, or `never`, or `order`"),
        ("{name: r, never: {employed: true, job: nurse}, strict: true}", "Expected `strict` with `order`"),
        ("{name: r, never: {age: {at_least: 1, above: 3}}}", "from where to where"),
        ("{name: r, when: {status: never, adult: true}, then: {nothing: 1}}", "'r' cannot be kept"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused_in_a_sentence_that_names_it(rule: str, told: str) -> None:
    problem = problem_of(rule)
    assert told in problem
    assert "rule 'r'" in problem or "Expected" in problem


def test_orders_in_a_circle_are_refused() -> None:
    problem = problem_of("{name: r, order: [start, left]}", "{name: s, order: [left, start]}")
    assert "contradict each other" in problem


def test_names_of_rules_differ() -> None:
    rule = "{name: r, never: {employed: true, job: nurse}}"
    assert "names of rules to differ" in problem_of(rule, rule)


def test_rules_and_columns_come_back_from_a_file_and_from_json(tmp_path: Path) -> None:
    schema = schema_with(
        "{name: r, when: {job: [nurse, null], age: {below: 15}}, then: {status: {other_than: [married]}}}",
        "{name: s, order: [start, end], broken: null}",
    )
    file = tmp_path / "schema.yaml"
    file.write_text(schema.to_yaml())
    assert TableSchema.load(file) == schema == TableSchema.model_validate_json(schema.model_dump_json())
    assert TableSchema.load(file).digest() == schema.digest()


def test_a_rule_is_told_in_words() -> None:
    schema = schema_with(
        "{name: r, when: {age: {below: 15}}, then: {status: never}}",
        "{name: s, order: [start, end]}",
        "{name: t, never: {job: null, employed: true}}",
    )
    assert [rule.words for rule in schema.rules] == [
        "where age is below 15, status is never",
        "start is at most end, where both are there",
        "it never holds that job is null and employed is true",
    ]
