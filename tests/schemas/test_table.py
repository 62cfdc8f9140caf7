from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.strategies import ZONES, columns, days, schemas

from ppsyn.schemas.columns import ColumnSchema, DateColumn, DatetimeColumn
from ppsyn.schemas.columns.calendar import local_time
from ppsyn.schemas.files import SchemaFileError
from ppsyn.schemas.table import TableSchema

TABLES = Path(__file__).parents[2] / "schemas" / "tables"

Fields = dict[str, object]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(path: Path) -> tuple[str, ...]:
    with pytest.raises(SchemaFileError) as caught:
        TableSchema.load(path)
    error = caught.value
    assert (error.__cause__, error.__context__, error.path) == (None, None, path)
    assert str(error) == "\n".join(f"{path}: {problem}" for problem in error.problems)
    return error.problems


def column_of(**fields: object) -> ColumnSchema:
    return TableSchema.model_validate({"name": "t", "columns": [{"name": "a", **fields}]}).columns[0]


# Files


@settings(max_examples=60, deadline=None)
@given(schemas())
def test_a_schema_survives_its_file_and_its_json(tmp_path_factory: pytest.TempPathFactory, schema: TableSchema) -> None:
    path = written(tmp_path_factory.mktemp("schema"), schema.to_yaml())
    for copy in (TableSchema.load(path), TableSchema.model_validate_json(schema.model_dump_json())):
        assert copy == schema
        assert copy.digest() == schema.digest()


def test_text_that_looks_like_something_else_stays_text(tmp_path: Path) -> None:
    values = ("yes", "off", "null", "~", "1", "012", "12:30", "1_0", "0x1", "1.5", "1e5", "2020-01-01", "", "<<", "- a")
    schema = TableSchema.model_validate(
        {"name": "t", "columns": [{"name": "no", **TEXT, "values": values, "other": "="}]}
    )
    assert TableSchema.load(written(tmp_path, schema.to_yaml())) == schema


def test_the_digest_tells_schemas_apart_and_never_changes() -> None:
    schema = TableSchema.model_validate({"name": "t", "columns": [{"name": "a", "kind": "boolean", "nullable": True}]})
    other = schema.model_copy(update={"name": "u"})
    assert schema.digest() != other.digest()
    assert schema.digest() == "7eca95f596e2c3fe9acac5ec9e43aba332415577092e2a4988d06da79068971b"


@pytest.mark.parametrize("path", sorted(TABLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_tables_that_come_with_the_library_load(path: Path) -> None:
    assert TableSchema.load(path).name == path.stem


def test_the_adult_table_has_its_columns_and_missing_values() -> None:
    columns = {column.name: column for column in TableSchema.load(TABLES / "adult.yaml").columns}
    sizes = {"age": 74, "workclass": 9, "education": 16, "native-country": 42, "sex": 2, "income": 2}
    assert len(columns) == 15
    assert {name: columns[name].size for name in sizes} == sizes
    assert [name for name, column in columns.items() if column.nullable] == [
        "workclass",
        "occupation",
        "native-country",
    ]


YAML_BOOLEANS = "(as YAML reads yes, no, on and off); put it in quotes."
VALID = "name: t\ncolumns: [{name: a, kind: boolean, nullable: true}]\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: t\nname: u\n" + VALID, "line 2: expected the key 'name' once."),
        ("columns: [{name: a, kind: boolean, kind: real}]", "line 1: expected the key 'kind' once."),
        ("name: [", "line 1: did not find expected node content."),
        (
            "name: t\ncolumns: [{name: a, kind: categorical, values: [12:30]}]",
            "line 2: expected plain decimal digits, got 12:30; put it in quotes if it is text.",
        ),
        (
            "name: t\ncolumns: [{name: a, kind: categorical, values: [012]}]",
            "line 2: expected plain decimal digits, got 012; put it in quotes if it is text.",
        ),
        ("[a]: b", "line 1: found unhashable key."),
        ("name: 2020-13-45", "Expected YAML in UTF-8: month must be in 1..12."),
        ("", "table: Input should be a valid dictionary or instance of TableSchema, got None."),
    ],
)
def test_a_file_that_is_no_clear_yaml_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    assert problems_of(written(tmp_path, text)) == (problem,)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "none.yaml") == ("Expected a readable file: No such file or directory.",)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in problems_of(tmp_path / "x.yaml")[0]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (
            "{name: a, kind: categorical, values: [yes, no], other: x}",
            f"column 'a', field 'values', item 1: Expected text or a whole number, got true {YAML_BOOLEANS}",
        ),
        (
            "{name: a, kind: categorical, values: [x], other: no}",
            f"column 'a', field 'other': Expected text or a whole number, got false {YAML_BOOLEANS}",
        ),
        (
            "{name: a, kind: categorical, values: [x, null], other: x}",
            "column 'a', field 'values', item 2: Expected text or a whole number, "
            "got null (for missing values declare nullable: true); put it in quotes.",
        ),
        (
            "{name: a, kind: categorical, values: [1.5], other: x}",
            "column 'a', field 'values', item 1: Expected text or a whole number, got 1.5; put it in quotes.",
        ),
        (
            "{name: on, kind: boolean, other: true}",
            f"column True, field 'name': Expected text, got true {YAML_BOOLEANS}",
        ),
        ("{kind: boolean, other: true}", "column number 1, field 'name': Expected this field to be given."),
        ("{name: a, kind: boolean, other: true, bin: 3}", "column 'a', field 'bin': Expected no field of this name."),
        (
            "{name: a, kind: text}",
            "column 'a', field 'kind': Expected one of categorical, boolean, integer, real, date, datetime.",
        ),
        ("{name: a}", "column 'a', field 'kind': Expected one of categorical, boolean, integer, real, date, datetime."),
        ("a", "column number 1, field 'kind': Expected one of categorical, boolean, integer, real, date, datetime."),
        (
            "{name: a, kind: integer, lower: 0.5, upper: 3}",
            "column 'a', field 'lower': Input should be a valid integer, got 0.5.",
        ),
        ("{name: a, kind: integer, lower: 9, upper: 3}", "column 'a': Expected lower=9 to be at most upper=3."),
    ],
)
def test_a_fault_is_told_with_its_column_and_field(tmp_path: Path, columns: str, problem: str) -> None:
    assert problem in problems_of(written(tmp_path, f"name: t\ncolumns: [{columns}]"))


def test_every_fault_has_its_sentence_and_no_consequence_has(tmp_path: Path) -> None:
    faults = problems_of(
        written(tmp_path, "name: T\ncolumns:\n- {name: a, kind: categorical, values: [x], other: 1.5}\n- {}")
    )
    assert len(faults) == 3


def test_an_unquoted_null_is_the_policy_of_that_name(tmp_path: Path) -> None:
    column = "{name: a, kind: categorical, values: [x], other: y, nullable: true, outside: null}"
    assert TableSchema.load(written(tmp_path, f"name: t\ncolumns: [{column}]")).columns[0].outside == "null"


# Bad schemas

INTEGER: Fields = {"kind": "integer", "lower": 0, "upper": 9}
REAL: Fields = {"kind": "real", "lower": 0, "upper": 1}
DATE: Fields = {"kind": "date", "lower": "2020-01-01", "upper": "2020-12-31"}
TIME: Fields = {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-12-31"}
TEXT: Fields = {"kind": "categorical", "values": ["x", "y"]}


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        (TEXT | {"values": [], "other": "x"}, "at least one value in values"),
        (TEXT | {"values": ["x", "x"], "other": "x"}, "values to differ"),
        (TEXT | {"values": ["x", 1], "other": "x"}, "all text or all whole numbers"),
        (TEXT | {"other": 1}, "Expected other to be text"),
        (TEXT | {"values": [2**70], "nullable": True}, "64 bits"),
        (TEXT, "declare other, or nullable: true, or outside: refuse"),
        (TEXT | {"outside": "clip", "nullable": True}, "declare other, or nullable: true, or outside: refuse"),
        (TEXT | {"outside": "null"}, "nullable: true with outside: null"),
        (TEXT | {"outside": "other"}, "`other` to be declared"),
        (TEXT | {"outside": "drop"}, "'clip', 'other', 'null' or 'refuse'"),
        (TEXT | {"nullable": "yes"}, "valid boolean"),
        (TEXT | {"nullable": True, "dtype": "int64"}, "one of str; category"),
        ({"kind": "boolean"}, "declare other, or nullable: true, or outside: refuse"),
        ({"kind": "boolean", "other": 1}, "valid boolean"),
        ({"kind": "boolean", "nullable": True, "dtype": "bool"}, "one of boolean"),
        (INTEGER | {"lower": 10}, "lower=10 to be at most upper=9"),
        (INTEGER | {"lower": None}, "lower and upper, or edges"),
        (INTEGER | {"upper": 2**63}, "less than or equal"),
        (INTEGER | {"upper": True}, "valid integer"),
        (INTEGER | {"bins": 2, "step": 2}, "only one of edges, bins, step, got bins and step"),
        (INTEGER | {"bins": 0}, "greater than or equal to 1"),
        (INTEGER | {"bins": 11}, "at most 10"),
        (INTEGER | {"step": -1}, "greater than or equal to 1"),
        (INTEGER | {"upper": 10**6}, "at most 100000 codes, got 1000001; use bins"),
        (INTEGER | {"upper": 99_999, "nullable": True}, "at most 100000 codes, got 100001; use bins"),
        (INTEGER | {"edges": [0, 5, 10]}, "first and the last of edges"),
        (INTEGER | {"other": 10}, "other=10 to lie within the bounds"),
        (INTEGER | {"outside": "null"}, "nullable: true with outside: null"),
        (INTEGER | {"outside": "other"}, "`other` to be declared"),
        (INTEGER | {"upper": 300, "dtype": "int8"}, "dtype=int8 to be one of int64"),
        (INTEGER | {"nullable": True, "dtype": "int64"}, "dtype=int64 to be one of Int64"),
        ({"kind": "integer", "edges": [0, 5, 5]}, "each of edges to be greater"),
        ({"kind": "integer", "edges": [0]}, "at least two edges"),
        (REAL, "one of edges, bins, step"),
        (REAL | {"upper": float("inf"), "bins": 3}, "finite number"),
        (REAL | {"lower": float("nan"), "bins": 3}, "finite number"),
        (REAL | {"lower": True, "bins": 3}, "Expected a number"),
        (REAL | {"step": 0}, "greater than 0"),
        (REAL | {"step": 1e-9}, "at most 100000 codes"),
        (REAL | {"lower": 1, "bins": 2}, "tell apart"),
        (REAL | {"lower": 0.1, "edges": [0.1, 0.1 + 1e-12, 1], "dtype": "float32"}, "hold a value of dtype=float32"),
        (DATE, "one of edges, bins, unit"),
        (DATE | {"unit": "hour"}, "'day', 'week', 'month', 'quarter' or 'year'"),
        (DATE | {"unit": "day", "bins": 3}, "only one of"),
        (DATE | {"lower": 2020, "unit": "day"}, "a date such as"),
        (DATE | {"lower": "2020", "unit": "day"}, "a date such as"),
        (DATE | {"lower": "2020-01-01T10:00", "unit": "day"}, "a date such as"),
        (DATE | {"lower": "0001-01-01", "upper": "9999-12-31", "unit": "day"}, "at most 100000 codes"),
        (DATE | {"upper": "9999-12-31", "bins": 9, "dtype": "datetime64[ns]"}, "to be one of date32"),
        (TIME | {"unit": "minute"}, "at most 100000 codes"),
        (TIME | {"lower": "2020-01-01T00:00:00Z", "unit": "day"}, "without an offset"),
        (TIME | {"lower": 0, "unit": "day"}, "a local time such as"),
        (TIME | {"unit": "day", "timezone": "Mars/Olympus"}, "a time zone such as"),
        (TIME | {"unit": "day", "timezone": "Europe"}, "a time zone such as"),
        (TIME | {"unit": "day", "timezone": "UTC", "upper": "9999-12-31"}, "years from 2 to 9998"),
        (TIME | {"unit": "day", "timezone": "UTC", "dtype": "datetime64[us]"}, "datetime64[us, UTC]"),
        (TIME | {"upper": "2020-01-01T00:00:01", "bins": 2_000, "dtype": "datetime64[ms]"}, "hold a value of dtype"),
    ],
)
def test_a_bad_column_is_refused_with_the_rule(fields: Fields, rule: str) -> None:
    with pytest.raises(ValidationError) as caught:
        column_of(**fields)
    assert rule in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"columns": []}, "at least one column in columns"),
        ({"name": "My table"}, "match pattern"),
        ({"excluded": ["a"]}, "Expected the name 'a' once"),
        ({"excluded": ["b", "b"]}, "Expected the name 'b' once"),
        ({"rows": 5}, "Extra inputs"),
    ],
)
def test_a_bad_table_is_refused_with_the_rule(fields: Fields, rule: str) -> None:
    column = {"name": "a", "kind": "boolean", "nullable": True}
    with pytest.raises(ValidationError) as caught:
        TableSchema.model_validate({"name": "t", "columns": [column]} | fields)
    assert rule in str(caught.value)


# Good ones


@pytest.mark.parametrize(
    ("fields", "outside"),
    [
        (TEXT | {"other": "x"}, "other"),
        (TEXT | {"other": "z", "nullable": True}, "other"),
        (TEXT | {"nullable": True}, "null"),
        ({"kind": "boolean", "other": False}, "other"),
        (INTEGER | {"other": 3}, "clip"),
    ],
)
def test_outsiders_have_a_place_unless_one_is_named(fields: Fields, outside: str) -> None:
    assert column_of(**fields).outside == outside


@pytest.mark.parametrize(
    ("fields", "dtype", "nullable_dtype"),
    [
        (TEXT | {"other": "x"}, "str", "str"),
        (TEXT | {"values": [1], "other": 1}, "int64", "Int64"),
        ({"kind": "boolean", "other": True}, "bool", "boolean"),
        (INTEGER, "int64", "Int64"),
        (REAL | {"bins": 1}, "float64", "float64"),
        (DATE | {"unit": "day"}, "date32[day][pyarrow]", "date32[day][pyarrow]"),
        (TIME | {"unit": "day"}, "datetime64[us]", "datetime64[us]"),
        (TIME | {"unit": "day", "timezone": "UTC"}, "datetime64[us, UTC]", "datetime64[us, UTC]"),
    ],
)
def test_the_dtype_follows_from_the_schema(fields: Fields, dtype: str, nullable_dtype: str) -> None:
    assert column_of(**fields).decoded_dtype == dtype
    assert column_of(**fields, nullable=True).decoded_dtype == nullable_dtype


@pytest.mark.parametrize("fields", [{"kind": "integer"}, {"kind": "real", "bins": 1}, {"kind": "real", "step": 1}])
def test_equal_bounds_make_one_value(fields: Fields) -> None:
    assert column_of(lower=3, upper=3, **fields).size == 1


def test_null_comes_after_other_and_other_after_the_values() -> None:
    column = column_of(**TEXT, other="z", nullable=True)
    assert (column.other_code, column.null_code, column.size) == (2, 3, 4)


def test_a_bare_date_as_upper_bound_includes_the_day() -> None:
    column = column_of(**TIME, unit="month")
    assert isinstance(column, DatetimeColumn)
    assert column.upper == datetime(2020, 12, 31, 23, 59, 59, 999_999)


@settings(max_examples=100, deadline=None)
@given(columns())
def test_bins_follow_each_other_without_gap_or_overlap(column: ColumnSchema) -> None:
    if column.kind in ("categorical", "boolean"):
        return
    starts, ends = column.intervals.starts, column.intervals.ends
    assert (starts <= ends).all()
    gap = np.nextafter(ends[:-1], np.inf) if column.kind == "real" else ends[:-1] + 1
    np.testing.assert_array_equal(gap, starts[1:])


UNITS: dict[str, Callable[[Any], object]] = {
    "minute": lambda moment: moment.replace(second=0, microsecond=0),
    "hour": lambda moment: moment.replace(minute=0, second=0, microsecond=0),
    "day": lambda moment: moment.timetuple()[:3],
    "week": lambda moment: moment.isocalendar()[:2],
    "month": lambda moment: (moment.year, moment.month),
    "quarter": lambda moment: (moment.year, (moment.month - 1) // 3),
    "year": lambda moment: moment.year,
}


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["day", "week", "month", "quarter", "year"]), days, st.integers(0, 1000), st.data())
def test_days_share_a_bin_if_they_share_the_unit(unit: str, lower: date, width: int, data: st.DataObject) -> None:
    upper = date.fromordinal(min(date.max.toordinal(), lower.toordinal() + width))
    column = column_of(kind="date", lower=lower, upper=upper, unit=unit)
    assert isinstance(column, DateColumn)
    first, second = (data.draw(st.dates(lower, upper)) for _ in range(2))
    codes = column.intervals.nearest(np.array([column.position(first), column.position(second)]))
    assert (codes[0] == codes[1]) == (UNITS[unit](first) == UNITS[unit](second))


RECENT = st.datetimes(datetime(1975, 1, 1), datetime(2030, 1, 1))
"""Since clocks have been set by whole minutes."""

DAYS = {"minute": 2, "hour": 60, "day": 400, "week": 400, "month": 2000, "quarter": 4000, "year": 9000}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(UNITS)), st.sampled_from(ZONES), RECENT)
def test_a_bin_is_a_unit_of_the_local_clock(unit: str, zone: str, lower: datetime) -> None:
    upper = lower + timedelta(days=DAYS[unit])
    column = column_of(kind="datetime", lower=lower, upper=upper, unit=unit, timezone=zone)
    assert isinstance(column, DatetimeColumn)
    starts, ends = (
        [local_time(instant, ZoneInfo(zone)) for instant in bounds.tolist()]
        for bounds in (column.intervals.starts, column.intervals.ends)
    )
    assert [UNITS[unit](start) for start in starts] == [UNITS[unit](end) for end in ends]
    for end, start in zip(ends[:-1], starts[1:], strict=True):
        assert (UNITS[unit](end), end.fold) != (UNITS[unit](start), start.fold)
