from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import columns, every_code

from ppsyn.generation.decoding import decode
from ppsyn.releases.validation import validate
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.manifest import Validation
from ppsyn.schemas.table import TableSchema

SCHEMA = TableSchema.model_validate(
    {
        "name": "t",
        "columns": [
            {"name": "job", "kind": "categorical", "values": ["cook", "nurse"], "outside": "refuse"},
            {"name": "grade", "kind": "categorical", "values": ["a", "b"], "nullable": True, "dtype": "category"},
            {"name": "old", "kind": "boolean", "other": False},
            {"name": "age", "kind": "integer", "lower": 17, "upper": 90},
            {"name": "share", "kind": "real", "lower": 0, "upper": 1, "bins": 4, "nullable": True},
            {"name": "born", "kind": "date", "lower": "1950-01-01", "upper": "2000-12-31", "unit": "year"},
            {"name": "seen", "kind": "datetime", "edges": ["2020-01-01", "2021-01-01"], "timezone": "Europe/Dublin"},
        ],
    }
)


def rng_of(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def table() -> pd.DataFrame:
    rows = np.arange(60)
    return decode({c.name: (rows % c.size).astype(np.int32) for c in SCHEMA.columns}, SCHEMA, rng_of(0))


def failed(validation: Validation) -> set[tuple[str | None, str]]:
    return {(result.column, result.about) for result in validation.results if not result.success}


@settings(max_examples=25, deadline=None)
@given(st.data(), columns(), st.integers(0, 2**32))
def test_what_is_decoded_is_valid(data: st.DataObject, column: ColumnSchema, seed: int) -> None:
    schema = TableSchema(name="t", columns=(column,))
    frame = decode({"a": data.draw(every_code(column))}, schema, rng_of(seed))
    for block in (frame, frame.iloc[:0]):
        validation = validate(iter([block]), schema)
        assert failed(validation) == set()
        assert validation.success


Spoil = Callable[[pd.DataFrame], pd.DataFrame]


def put(name: str, value: object) -> Spoil:
    """A table with another value at one place of a column, of whatever dtype that needs."""

    def spoil(frame: pd.DataFrame) -> pd.DataFrame:
        values = frame[name].astype(object)
        values.iloc[3] = value
        return frame.assign(**{name: values.astype(frame[name].dtype)})

    return spoil


FAULTS: dict[str, tuple[Spoil, set[tuple[str | None, str]]]] = {
    "below": (put("age", 16), {("age", "values")}),
    "above": (put("age", 91), {("age", "values")}),
    "unlisted": (put("job", "clown"), {("job", "values")}),
    "infinite": (put("share", np.inf), {("share", "values")}),
    "too early": (put("born", pd.Timestamp("1949-12-31").date()), {("born", "values")}),
    "too late": (put("seen", pd.Timestamp("2021-01-01T00:00:01", tz="Europe/Dublin")), {("seen", "values")}),
    "null text": (put("job", None), {("job", "nulls")}),
    "null date": (put("born", None), {("born", "nulls")}),
    "dtype": (lambda frame: frame.astype({"age": "Int64"}), {("age", "dtype")}),
    "unit": (lambda frame: frame.astype({"seen": "datetime64[ns, Europe/Dublin]"}), {("seen", "dtype")}),
    "order": (lambda frame: frame[frame.columns[::-1]], {(None, "columns")}),
    "more": (lambda frame: frame.assign(more=1), {(None, "columns")}),
    "text": (lambda frame: frame.assign(age="x"), {("age", "dtype"), ("age", "values")}),
    "missing": (
        lambda frame: frame.drop(columns="age"),
        {(None, "columns"), ("age", "dtype"), ("age", "nulls"), ("age", "values")},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_one_block_fails_the_table(name: str) -> None:
    spoil, faults = FAULTS[name]
    validation = validate(iter([table(), spoil(table()), table()]), SCHEMA)
    assert failed(validation) == faults
    assert not validation.success


def test_the_index_of_a_block_does_not_matter() -> None:
    assert validate(iter([table().set_axis([7] * 60)]), SCHEMA).success


def test_equal_tables_give_equal_bytes_which_can_be_read_back() -> None:
    written = [validate(iter(blocks), SCHEMA).model_dump_json() for blocks in ([table()], [table()])]
    assert written[0] == written[1]
    assert Validation.model_validate_json(written[0]) == validate(iter([table()]), SCHEMA)


def test_what_was_expected_is_told_as_the_schema_writes_it() -> None:
    told = {(r.column, r.about): r.kwargs for r in validate(iter([table()]), SCHEMA).results}
    assert told["age", "values"] == {"min_value": 17, "max_value": 90}
    assert told["born", "values"] == {"min_value": "1950-01-01", "max_value": "2000-12-31"}
    assert told["seen", "values"] == {"min_value": "2020-01-01T00:00:00", "max_value": "2021-01-01T00:00:00"}
    assert told["job", "values"] == {"value_set": ["cook", "nurse"]}
    assert told["age", "dtype"] == {"value_set": ["int64"]}
    assert told["age", "nulls"] == {}
    assert ("share", "nulls") not in told


def test_bounds_that_no_double_holds_are_not_missed_by_much() -> None:
    column = {"name": "a", "kind": "integer", "lower": -(2**62) - 1, "upper": 2**62 + 1, "bins": 2}
    schema = TableSchema.model_validate({"name": "t", "columns": [column]})
    for value, success in ((2**62 + 1, True), (-(2**62) - 1, True), (2**62 + 2**12, False), (-(2**62) - 2**12, False)):
        assert validate(iter([pd.DataFrame({"a": [value]})]), schema).success == success


LONG = TableSchema.model_validate(
    {
        "name": "t",
        "columns": [
            {"name": "zip", "kind": "categorical", "values": [f"z{i}" for i in range(2_000)], "nullable": True},
            {"name": "code", "kind": "categorical", "values": list(range(0, 4_000, 2)), "outside": "refuse"},
        ],
    }
)


@pytest.mark.parametrize("dtype", ["str", "category"])
def test_long_lists_of_values_are_held_against_without_being_repeated(dtype: str) -> None:
    codes = {"zip": np.array([0, 2_000, 1_999], np.int32), "code": np.array([0, 1, 9], np.int32)}
    frame = decode(codes, LONG, rng_of(0))
    typed = frame.astype({"zip": dtype})
    assert failed(validate(iter([frame]), LONG)) == set()
    for name, value in (("zip", "z2000"), ("code", 3)):
        spoiled = frame.copy()
        spoiled[name] = pd.Series([value, *frame[name][1:]], dtype=frame[name].dtype)
        assert failed(validate(iter([frame, spoiled]), LONG)) == {(name, "values")}
    assert ("zip", "values") not in failed(validate(iter([typed]), LONG))
    assert len(validate(iter([frame]), LONG).model_dump_json()) < 3_000
