"""How numbers, names and groups of values read."""

import numpy as np
import pytest

from ppsyn.reports.formatting import join_names, name_codes, name_group, percent, probability, shorten_middle, truncate
from ppsyn.schemas.table import TableSchema

COLUMNS = {
    column.name: column
    for column in TableSchema.model_validate(
        {
            "name": "t",
            "columns": [
                {"name": "job", "kind": "categorical", "values": ["a", "b", "c", "d", "e"], "nullable": True},
                {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "step": 10},
                {"name": "debt", "kind": "integer", "lower": -20, "upper": 19, "step": 10},
                {"name": "share", "kind": "real", "lower": 0, "upper": 1, "bins": 4},
                {"name": "ok", "kind": "boolean", "outside": "refuse"},
                {"name": "day", "kind": "date", "lower": "2020-01-01", "upper": "2020-03-31", "unit": "month"},
                {"name": "at", "kind": "datetime", "lower": "2020-01-01", "upper": "2020-01-02", "unit": "hour"},
            ],
        }
    ).columns
}


@pytest.mark.parametrize(
    ("part", "text"), [(0, "0%"), (1, "100%"), (0.5, "50%"), (0.0123, "1.2%"), (0.001, "0.1%"), (0.00012, "0.01%")]
)
def test_small_fractions_differ_from_zero(part: float, text: str) -> None:
    assert percent(part) == text


def test_small_numbers_are_short() -> None:
    assert probability(1e-9) == "1e-9"
    assert probability(0.05) == "0.05"


def test_texts_that_are_too_long_are_shorten_middle() -> None:
    assert shorten_middle("attribute number 35") == "attribu\N{HORIZONTAL ELLIPSIS}ber 35"
    assert shorten_middle("native-country") == "native-country"
    assert truncate("abcdef", 4) == "abc\N{HORIZONTAL ELLIPSIS}"
    assert (join_names(["a", "b"]), join_names(["a", "b", "c"], 2)) == ("a, b", "a, b and 1 more")


@pytest.mark.parametrize(
    ("name", "codes", "text"),
    [
        ("job", [0], "a"),
        ("job", [0, 2], "a, c"),
        ("job", [0, 1, 2, 3], "a, b, 2 more"),
        ("job", [5], "no value"),
        ("job", [1, 5], "b, no value"),
        ("job", [0, 1, 2, 3, 4, 5], "any value"),
        ("age", [0, 1, 2], "0\N{EN DASH}29"),
        ("age", [0, 5], "0\N{EN DASH}9, 50\N{EN DASH}59"),
        ("debt", [0, 1], "-20 to -1"),
        ("share", [1], "0.25 to 0.5"),
        ("ok", [1], "true"),
        ("day", [1, 2], "2020-02-01 to 2020-03-31"),
        ("at", [3], "2020-01-01 03:00 to 2020-01-01 03:59"),
    ],
)
def test_codes_are_named_as_the_schema_writes_them(name: str, codes: list[int], text: str) -> None:
    assert name_codes(COLUMNS[name], codes) == text


def test_a_group_is_named_by_the_attributes_that_matter() -> None:
    cells = np.array([0, 1, 2, 3], np.int32)  # both values of ok, for two of debt
    assert name_group(COLUMNS, ("debt", "ok"), cells) == "debt: -20 to -1"
    assert name_group(COLUMNS, ("debt", "ok"), np.array([0, 3], np.int32)) == "2 cells within debt: -20 to -1"
    assert name_group(COLUMNS, ("ok",), np.array([0, 1], np.int32)) == "all rows"
