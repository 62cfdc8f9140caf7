"""Private rows and rules: repaired, made null or left out, each by itself."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.ruled import POLICIES, private_rows, ruled_schema

from ppsyn.data.encoding import encode, encode_rows, rows_broken
from ppsyn.domain import domain_of
from ppsyn.generation.decoding import decode
from ppsyn.possible import broken
from ppsyn.schemas.table import TableSchema

ROW = {
    "age": 40, "status": "married", "role": "other", "sex": "male", "grown": True, "start": "2020-03-05",
    "end": "2020-09-01", "days": 180, "office": "kiel", "region": "north",
}  # fmt: skip


def rows_with(**values: object) -> pd.DataFrame:
    """A row that breaks no rule, but for these values."""
    return pd.DataFrame({name: pd.Series([values.get(name, value)], dtype=object) for name, value in ROW.items()})


def meant(schema: TableSchema, **values: object) -> dict[str, Any]:
    """What a row becomes, as a table shows it; none if it is left out."""
    rows = encode_rows(rows_with(**values), schema)
    if not rows.is_kept.all():
        return {}
    made = decode(rows.codes, schema, np.random.default_rng(0)).astype(object)
    return {name: None if pd.isna(value) else value for name, value in made.iloc[0].to_dict().items()}


@pytest.mark.parametrize("policy", POLICIES)
def test_no_row_that_is_kept_breaks_a_rule(policy: str) -> None:
    schema = ruled_schema(policy)
    codes = encode(private_rows(3000), schema).columns
    assert not any(broken(codes, zeros).any() for zeros in domain_of(schema).zeros)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_row_that_breaks_no_rule_stays_as_it_is(policy: str) -> None:
    made = meant(ruled_schema(policy))
    assert [made[name] for name in ("status", "role", "sex", "office", "region")] == [
        "married", "other", "male", "kiel", "north",
    ]  # fmt: skip


def test_repair_changes_as_few_columns_as_it_can() -> None:
    made = meant(ruled_schema(), role="husband", sex="female")
    # One change is enough: another role, or another sex; codes are as near, and the role's column comes first.
    assert (made["role"], made["sex"], made["status"]) == ("wife", "female", "married")


def test_repair_computes_what_follows_and_lets_the_private_column_say_what_it_likes() -> None:
    schema = ruled_schema()
    made = meant(schema, region="south", days=7, grown=False)
    assert (made["office"], made["region"], made["grown"]) == ("kiel", "north", True)
    without = rows_with().drop(columns=["region", "days", "grown"])
    assert encode(without, schema).columns.keys() == encode(rows_with(), schema).columns.keys()


def test_null_forgets_what_the_rule_names_and_what_a_column_follows_from() -> None:
    schema = ruled_schema("null")
    made = meant(schema, age=4, status="widowed")
    assert (made["grown"], made["status"]) == (False, None)
    made = meant(schema, region="south")
    assert (made["office"], made["region"]) == (None, None)


def test_drop_leaves_the_row_out() -> None:
    schema = ruled_schema("drop")
    assert meant(schema, region="south") == {}
    assert meant(schema, start="2020-12-01", end="2020-02-01") == {}


def test_rows_that_break_rules_are_found_by_their_values() -> None:
    schema = ruled_schema()
    found = {
        name: bool(is_broken[0])
        for name, is_broken in rows_broken(rows_with(start="2020-03-05", end="2020-03-04", days=-1), schema)
    }
    assert found == {
        "children are single": False, "husbands": False, "in time": True, "no wives in ulm": False,
        "grown": False, "days": True, "region": False,
    }  # fmt: skip
    found = {
        name
        for name, is_broken in rows_broken(rows_with(grown=False, role="wife", office="ulm"), schema)
        if is_broken[0]
    }
    assert found == {"no wives in ulm", "grown", "region"}
