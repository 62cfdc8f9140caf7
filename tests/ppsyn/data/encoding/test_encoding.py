import traceback
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from support.strategies import columns, every_code, frames, nulls, raw_values, schemas

from ppsyn.arrays import Codes
from ppsyn.data.encoding import EncodedTable, encode
from ppsyn.domain import domain_of
from ppsyn.errors import DomainRefusedError, SchemaError
from ppsyn.generation.decoding import decode
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.table import TableSchema

ALPHA = 1e-9
CANARY = "canary-7f3a"
BOOLEAN = {"name": "a", "kind": "boolean", "other": False}


def rng_of(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def table_of(*columns: ColumnSchema, **fields: object) -> TableSchema:
    """A table of the columns, or of one column `a` with these fields."""
    described = list(columns) or [{"name": "a", **fields}]
    return TableSchema.model_validate({"name": "t", "columns": described})


def codes_of(rows: object, /, **fields: object) -> list[int]:
    """The codes of one column of values; a list becomes a column of objects."""
    raw = pd.Series(rows, dtype=object) if isinstance(rows, list) else rows
    return encode(pd.DataFrame({"a": raw}), table_of(**fields)).columns["a"].tolist()


def assert_equal(table: EncodedTable, expected: EncodedTable) -> None:
    assert tuple(table.columns) == tuple(expected.columns)
    for name, codes in expected.columns.items():
        np.testing.assert_array_equal(table.columns[name], codes)


# Both ways


@settings(max_examples=100, deadline=None)
@given(st.data(), columns(), st.integers(0, 2**32))
def test_every_code_survives_decoding_and_encoding(data: st.DataObject, column: ColumnSchema, seed: int) -> None:
    codes = data.draw(every_code(column))
    frame = decode({"a": codes}, table_of(column), rng_of(seed))
    np.testing.assert_array_equal(encode(frame, table_of(column)).columns["a"], codes)


@settings(max_examples=100, deadline=None)
@given(st.data(), columns())
def test_decoded_columns_have_the_declared_dtype(data: st.DataObject, column: ColumnSchema) -> None:
    for codes in (data.draw(every_code(column)), np.empty(0, np.int32)):
        decoded = decode({"a": codes}, table_of(column), rng_of(0))["a"]
        assert decoded.dtype == column.decoded_dtype
        assert decoded.isna().tolist() == (codes == column.null_code).tolist()


@settings(max_examples=50, deadline=None)
@given(schemas(), st.integers(0, 2**32))
def test_decoding_repeats_with_the_generator_and_leaves_the_global_one_alone(schema: TableSchema, seed: int) -> None:
    codes = {name: np.zeros(5, np.int32) for name in reversed(domain_of(schema).names)}
    before = np.random.get_state(legacy=False)  # noqa: NPY002 - it is what must not change
    first, second = (decode(codes, schema, rng_of(seed)) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    assert tuple(first.columns) == domain_of(schema).names
    np.testing.assert_equal(np.random.get_state(legacy=False), before)  # noqa: NPY002


@pytest.mark.parametrize(
    ("fields", "cells"),
    [
        ({"kind": "integer", "lower": 0, "upper": 9, "bins": 1}, lambda values: values),
        ({"kind": "real", "lower": -3.0, "upper": 7.0, "bins": 1}, lambda values: np.floor(values + 3)),
        ({"kind": "real", "lower": -3.0, "upper": 7.0, "bins": 1, "dtype": "float32"}, lambda v: np.floor(v + 3)),
        ({"kind": "date", "lower": "2020-02-25", "upper": "2020-03-05", "bins": 1}, lambda v: v.dt.dayofyear - 56),
        ({"kind": "datetime", "lower": "2020-02-01", "upper": "2020-02-10", "bins": 1}, lambda v: v.dt.day - 1),
    ],
)
def test_draws_are_uniform_within_a_bin(fields: dict[str, object], cells: Callable[[pd.Series], pd.Series]) -> None:
    values = decode({"a": np.zeros(50_000, np.int32)}, table_of(**fields), rng_of(20240601))["a"]
    counts = np.bincount(np.asarray(cells(values), np.int64), minlength=10)
    assert counts.size == 10
    assert chisquare(counts).pvalue > ALPHA


@pytest.mark.parametrize("codes", [{}, {"a": np.array([2], np.int32)}, {"a": np.array([-1], np.int32)}])
def test_codes_that_do_not_fit_the_schema_are_refused(codes: dict[str, Codes]) -> None:
    with pytest.raises(SchemaError, match="Expected codes of"):
        decode(codes, table_of(kind="boolean", other=False), rng_of(0))


def test_columns_of_unequal_length_are_refused() -> None:
    schema = TableSchema.model_validate({"name": "t", "columns": [BOOLEAN, BOOLEAN | {"name": "b"}]})
    with pytest.raises(SchemaError, match="as many codes"):
        decode({"a": np.zeros(1, np.int32), "b": np.zeros(2, np.int32)}, schema, rng_of(0))


# Row by row


@settings(max_examples=150, deadline=None)
@given(columns(may_refuse=False), frames(), frames())
def test_a_code_depends_on_no_other_row(column: ColumnSchema, left: pd.DataFrame, right: pd.DataFrame) -> None:
    schema = table_of(column)
    whole = encode(pd.concat([left, right]), schema).columns["a"]
    parts = [encode(part, schema).columns["a"] for part in (left, right)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


@settings(max_examples=100, deadline=None)
@given(columns(may_refuse=False), frames())
def test_no_value_stops_a_column_that_does_not_refuse(column: ColumnSchema, frame: pd.DataFrame) -> None:
    codes = encode(frame, table_of(column)).columns["a"]
    assert codes.dtype == np.int32
    assert ((codes >= 0) & (codes < column.size)).all()


@settings(max_examples=60, deadline=None)
@given(columns(may_refuse=False), nulls)
def test_null_goes_to_its_code_or_to_other_or_to_the_first(column: ColumnSchema, null: object) -> None:
    fallback = 0 if column.other_code is None else column.other_code
    expected = fallback if column.null_code is None else column.null_code
    assert encode(pd.DataFrame({"a": pd.Series([null], dtype=object)}), table_of(column)).columns["a"] == expected


@settings(max_examples=80, deadline=None)
@given(st.data(), columns())
def test_the_dtype_a_column_comes_in_does_not_matter(data: st.DataObject, column: ColumnSchema) -> None:
    codes, schema = data.draw(every_code(column)), table_of(column)
    frame = decode({"a": codes}, schema, rng_of(1))
    for raw in (
        frame["a"].astype(object),
        frame["a"].astype("category"),
        frame["a"].convert_dtypes(dtype_backend="pyarrow"),
    ):
        np.testing.assert_array_equal(encode(pd.DataFrame({"a": raw}), schema).columns["a"], codes)


ODD_COLUMNS = [
    pd.Series([pd.Timedelta(1), None]),
    pd.Series(pd.period_range("2020", periods=2, freq="M")),
    pd.Series(pd.interval_range(0, 2)),
    pd.Series([1j, 2]),
    pd.Series([1, 2], dtype=np.float16),
    pd.Series([True, False], dtype="Sparse[bool]"),
    pd.Series(pd.Categorical([1, "x", None, 2.5])),
    pd.Series(pd.Categorical(pd.to_datetime(["2020-01-01", None]))),
    pd.Series([True, None], dtype="bool[pyarrow]"),
    pd.Series([b"x", None], dtype=pd.ArrowDtype(pa.binary())),
    pd.Series([[1], None], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    pd.Series([{"x": 1}, None], dtype=pd.ArrowDtype(pa.struct([("x", pa.int64())]))),
    pd.Series(["x", None], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
    pd.Series([time(1), None], dtype=pd.ArrowDtype(pa.time64("us"))),
    pd.Series([pd.Timedelta(1), None], dtype=pd.ArrowDtype(pa.duration("us"))),
    pd.Series([None, None], dtype=pd.ArrowDtype(pa.null())),
]


@pytest.mark.parametrize("raw", ODD_COLUMNS, ids=lambda raw: str(raw.dtype))
@settings(max_examples=15, deadline=None)
@given(column=columns(may_refuse=False))
def test_a_column_of_any_dtype_is_read_like_its_values(raw: pd.Series, column: ColumnSchema) -> None:
    expected = encode(pd.DataFrame({"a": pd.Series(raw.tolist(), dtype=object)}), table_of(column))
    assert_equal(encode(pd.DataFrame({"a": raw}), table_of(column)), expected)


@pytest.mark.parametrize("index", [[7, 7, -1], [None, "x", 2.5], pd.MultiIndex.from_tuples([(1, 1), (1, 1), (2, 0)])])
def test_the_index_does_not_matter_and_the_table_is_left_as_it_was(index: list[object] | pd.MultiIndex) -> None:
    frame = pd.DataFrame({"a": [3, 1, 2]})
    expected = encode(frame, table_of(kind="integer", lower=0, upper=5))
    odd = frame.set_axis(index)
    before = odd.copy(deep=True)
    assert_equal(encode(odd, table_of(kind="integer", lower=0, upper=5)), expected)
    pd.testing.assert_frame_equal(odd, before)


@pytest.mark.parametrize(
    "raw", [pd.Series([], dtype=object), pd.Series([None, None]), pd.Series([1, 1]), pd.Series([2.0])]
)
def test_empty_null_and_constant_columns_are_encoded(raw: pd.Series) -> None:
    assert len(codes_of(raw, kind="integer", lower=0, upper=2, nullable=True)) == len(raw)


# Refusal


@settings(max_examples=150, deadline=None)
@given(columns(), st.lists(raw_values, min_size=1, max_size=6))
def test_a_table_is_refused_exactly_if_one_of_its_rows_is(column: ColumnSchema, values: list[object]) -> None:
    def is_refused(rows: list[object]) -> bool:
        try:
            encode(pd.DataFrame({"a": pd.Series(rows, dtype=object)}), table_of(column))
        except DomainRefusedError:
            return True
        return False

    assert is_refused(values) == any(is_refused([value]) for value in values)
    assert column.outside == "refuse" or not is_refused(values)


REFUSALS = {
    "categorical": ({"values": ["x", "y"]}, ["x", "y"], [CANARY, 3, b"x", "X", " x"]),
    "boolean": ({}, [True, 0, 1.0, "TRUE", "false", np.bool_(True)], [CANARY, 2, 0.5, "yes"]),
    "integer": ({"lower": 1, "upper": 3}, [1, 3.0, "2", Decimal(2), np.int8(1)], [CANARY, 0, 4, 1.5, "inf", 10**30]),
    "real": ({"lower": 0, "upper": 1, "bins": 2}, [0, 1, 0.5, "1e-3"], [CANARY, -1e-9, 1.1, float("inf"), "nan"]),
    "date": (
        {"lower": "2020-01-01", "upper": "2020-01-31", "unit": "day"},
        [date(2020, 1, 31)],
        [CANARY, "2020-02-01"],
    ),
    "datetime": ({"lower": "2020-01-01", "upper": "2020-01-31", "unit": "day"}, ["2020-01-31T23:59"], [CANARY, 5]),
}


@pytest.mark.parametrize("kind", REFUSALS)
@pytest.mark.parametrize("nullable", [False, True])
def test_insiders_pass_and_outsiders_are_refused(kind: str, nullable: bool) -> None:
    fields, insiders, outsiders = REFUSALS[kind]
    column = {"kind": kind, "outside": "refuse", "nullable": nullable, **fields}
    insiders = [*insiders, None] if nullable else insiders
    outsiders = outsiders if nullable else [*outsiders, None, float("nan")]
    assert len(codes_of(insiders, **column)) == len(insiders)
    for outsider in outsiders:
        with pytest.raises(DomainRefusedError):
            codes_of([*insiders, outsider], **column)


@pytest.mark.parametrize("kind", REFUSALS)
@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_a_refusal_tells_neither_value_nor_count(kind: str, dtype: type | str) -> None:
    raw = pd.Series([CANARY] * 613, dtype=dtype)
    with pytest.raises(DomainRefusedError) as caught:
        codes_of(raw, kind=kind, outside="refuse", **REFUSALS[kind][0])
    assert (caught.value.column, caught.value.__cause__, caught.value.__context__) == ("a", None, None)
    told = "".join(traceback.format_exception(caught.value))
    assert CANARY not in told
    assert "613" not in str(caught.value)


def test_a_category_that_no_row_has_is_not_refused() -> None:
    raw = pd.Series(pd.Categorical(["x"], categories=["x", CANARY]))
    assert codes_of(raw, kind="categorical", values=["x"], outside="refuse") == [0]


# Where values go


@pytest.mark.parametrize(
    "raw",
    [
        [1, 3, 5, None],
        [1.0, 3.0, 5.0, float("nan")],
        ["1", "3", "5", None],
        [Decimal(1), Decimal("3.0"), Decimal("5"), Decimal("NaN")],
        pd.Series([1.0, 3.0, 5.0, np.nan]),
        pd.Series([1, 3, 5, None], dtype="UInt8"),
        pd.Series(["1", "3", "5", None], dtype="str"),
        pd.Series(["1", "3", "5", None], dtype="category"),
        pd.Series([1, 3, 5, None], dtype="int16[pyarrow]"),
        pd.Series([1, 3, 5, None], dtype="Sparse[float]"),
        pd.Series([Decimal(1), Decimal(3), Decimal(5), None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        pd.Series(["1", "3", "5", None], dtype=pd.ArrowDtype(pa.string())),
    ],
)
@pytest.mark.parametrize("kind", ["integer", "real", "categorical", "text"])
def test_numbers_are_read_in_every_guise(raw: pd.Series | list[object], kind: str) -> None:
    fields = {
        "integer": {"kind": "integer", "edges": [1, 3, 5, 6]},
        "real": {"kind": "real", "edges": [1, 3, 5, 6]},
        "categorical": {"kind": "categorical", "values": [1, 3, 5]},
        "text": {"kind": "categorical", "values": ["1", "3", "5"]},
    }[kind]
    assert codes_of(raw, nullable=True, **fields) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("fields", "value", "code"),
    [
        ({"kind": "integer", "edges": [0, 1, 10, 20]}, 0, 0),
        ({"kind": "integer", "edges": [0, 1, 10, 20]}, 1, 1),
        ({"kind": "integer", "edges": [0, 1, 10, 20]}, 9, 1),
        ({"kind": "integer", "edges": [0, 1, 10, 20]}, 20, 2),
        ({"kind": "integer", "lower": 0, "upper": 9, "bins": 3}, 3, 1),
        ({"kind": "integer", "lower": 0, "upper": 9, "step": 4}, 9, 2),
        ({"kind": "real", "edges": [0, 0.1, 1]}, np.nextafter(0.1, 0), 0),
        ({"kind": "real", "edges": [0, 0.1, 1]}, 0.1, 1),
        ({"kind": "real", "lower": 0, "upper": 1, "step": 0.1}, 0.3, 3),
        ({"kind": "real", "lower": 0, "upper": 1, "step": 0.1}, 1, 9),
        ({"kind": "real", "lower": 0, "upper": 1, "bins": 10}, 0.7, 7),
        ({"kind": "date", "lower": "2020-01-15", "upper": "2020-03-01", "unit": "month"}, "2020-01-31", 0),
        ({"kind": "date", "lower": "2020-01-15", "upper": "2020-03-01", "unit": "month"}, "2020-03-01", 2),
        ({"kind": "datetime", "edges": ["2020-01-01", "2020-02-01T12:00", "2021-01-01"]}, "2020-02-01T11:59:59", 0),
        ({"kind": "datetime", "edges": ["2020-01-01", "2020-02-01T12:00", "2021-01-01"]}, "2020-02-01T12:00:00", 1),
    ],
)
def test_bins_hold_their_start_and_the_last_its_end(fields: dict[str, object], value: object, code: int) -> None:
    assert codes_of([value], outside="refuse", **fields) == [code]


@pytest.mark.parametrize("value", [-1, -(10**30), float("-inf"), "-inf", Decimal("-1e999"), np.float32(-2)])
@pytest.mark.parametrize("kind", ["integer", "real"])
def test_numbers_out_of_bounds_are_clipped(value: object, kind: str) -> None:
    assert codes_of([value], kind=kind, edges=[0, 5, 9]) == [0]


@pytest.mark.parametrize(
    "raw",
    [
        pd.Series([-(2**63), 2**63 - 1]),
        pd.Series([0, 2**64 - 1], dtype="uint64"),
        pd.Series([-np.inf, np.inf]),
        pd.Series([-(2.0**63), 2.0**63]),
        pd.Series(["-1e4000", "1e4000"], dtype=np.longdouble),
        pd.Series([False, True]),
    ],
)
@pytest.mark.parametrize("kind", ["integer", "real"])
def test_the_extremes_of_each_dtype_are_told_apart(raw: pd.Series, kind: str) -> None:
    assert codes_of(raw, kind=kind, edges=[0, 1, 2]) == [0, 1]
    assert codes_of(raw.astype(object), kind=kind, edges=[0, 1, 2]) == [0, 1]


@pytest.mark.parametrize(
    "fields", [{"kind": "date"}, {"kind": "datetime"}, {"kind": "datetime", "timezone": "Asia/Tokyo"}]
)
def test_times_out_of_bounds_are_clipped(fields: dict[str, object]) -> None:
    fields = {"lower": "2020-01-01", "upper": "2020-01-09", "bins": 9, **fields}
    far = [pd.Timestamp(np.datetime64(ticks, "s")) for ticks in (-(2**61), 2**61)]
    assert codes_of([date(1, 1, 1), datetime.max], **fields) == [0, 8]
    assert codes_of([far[0], np.datetime64("30000-01-01", "D")], **fields) == [0, 8]
    assert codes_of(pd.Series(far, dtype="datetime64[s]"), **fields) == [0, 8]


@pytest.mark.parametrize(
    ("policy", "codes"),
    [
        ({"outside": "clip"}, [1, 1, 9, 10, 10]),
        ({"outside": "clip", "nullable": False}, [1, 1, 9, 0, 0]),
        ({"outside": "clip", "nullable": False, "other": 5}, [1, 1, 9, 5, 5]),
        ({"outside": "other", "other": 5}, [1, 5, 5, 10, 10]),
        ({"outside": "other", "nullable": False, "other": 5}, [1, 5, 5, 5, 5]),
        ({"outside": "null"}, [1, 10, 10, 10, 10]),
    ],
)
def test_outsiders_of_a_numeric_column_go_where_the_schema_says(policy: dict[str, object], codes: list[int]) -> None:
    values = [1, 1.5, 12, CANARY, None]
    assert codes_of(values, **{"kind": "integer", "lower": 0, "upper": 9, "nullable": True, **policy}) == codes


@pytest.mark.parametrize(
    ("policy", "codes"),
    [
        ({"other": "y"}, [0, 1, 1, 1]),
        ({"other": "z"}, [0, 2, 2, 2]),
        ({"other": "z", "nullable": True}, [0, 2, 2, 3]),
        ({"other": "z", "nullable": True, "outside": "null"}, [0, 3, 3, 3]),
        ({"nullable": True}, [0, 2, 2, 2]),
    ],
)
def test_outsiders_of_a_category_go_where_the_schema_says(policy: dict[str, object], codes: list[int]) -> None:
    assert codes_of(["x", CANARY, [1], None], kind="categorical", values=["x", "y"], **policy) == codes


def test_text_is_found_as_it_stands_and_a_number_by_its_digits() -> None:
    values = ["1", "01", str(2**63 - 1)]
    rows = ["1", 1, 1.0, True, "01", " 1", "1.0", 1.5, 10**30]
    assert codes_of(rows, kind="categorical", values=values, nullable=True) == [0, 0, 0, 0, 1, 3, 3, 3, 3]


def test_the_extra_value_is_a_value_like_others() -> None:
    assert codes_of(["x", "z", 5], kind="categorical", values=["x"], other="z") == [0, 1, 1]


@pytest.mark.parametrize(
    "raw",
    [
        [True, False, None],
        [1, 0, None],
        ["TRUE", "false", None],
        pd.Series([1.0, 0.0, None]),
        pd.Series([True, False, None], dtype="boolean"),
        pd.Series([True, False, None], dtype="bool[pyarrow]"),
        pd.Series(["True", "False", None], dtype="str"),
    ],
)
def test_truth_is_read_in_every_guise(raw: pd.Series | list[object]) -> None:
    assert codes_of(raw, kind="boolean", nullable=True) == [1, 0, 2]


@pytest.mark.parametrize(
    "raw",
    [
        [date(2020, 1, 2), date(2020, 1, 3), None],
        [datetime(2020, 1, 2, 23), datetime(2020, 1, 3), pd.NaT],
        [pd.Timestamp("2020-01-02T23:00"), np.datetime64("2020-01-03", "ns"), np.datetime64("NaT")],
        ["2020-01-02", "20200103T120000Z", ""],
        pd.Series(["2020-01-02", "2020-01-03", None], dtype="str"),
        pd.Series(["2020-01-02", "2020-01-03", None], dtype="datetime64[ns]"),
        pd.Series(["2020-01-02", "2020-01-03", None], dtype="datetime64[s]"),
        pd.Series(["2020-01-02", "2020-01-03", None], dtype="datetime64[ms, UTC]"),
        pd.Series([date(2020, 1, 2), date(2020, 1, 3), None], dtype=pd.ArrowDtype(pa.date32())),
        pd.Series([date(2020, 1, 2), date(2020, 1, 3), None], dtype=pd.ArrowDtype(pa.date64())),
        pd.Series([date(2020, 1, 2), date(2020, 1, 3), None], dtype=pd.ArrowDtype(pa.timestamp("us"))),
        pd.Series([date(2020, 1, 2), date(2020, 1, 3), None], dtype=pd.ArrowDtype(pa.timestamp("ns", "UTC"))),
    ],
)
@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_times_are_read_in_every_guise(raw: pd.Series | list[object], kind: str) -> None:
    assert codes_of(raw, kind=kind, lower="2020-01-01", upper="2020-01-31", unit="day", nullable=True) == [1, 2, 31]


# Time zones

NEW_YORK = {"kind": "datetime", "timezone": "America/New_York", "unit": "hour"}


def test_local_and_universal_times_meet_in_the_column_with_a_zone() -> None:
    fields = NEW_YORK | {"lower": "2020-01-01", "upper": "2020-01-01"}
    values = [
        datetime(2020, 1, 1, 7),
        datetime(2020, 1, 1, 12, tzinfo=UTC),
        "2020-01-01T07:30",
        "2020-01-01T13:00+01:00",
    ]
    assert codes_of(values, **fields) == [7, 7, 7, 7]
    assert codes_of(pd.Series(values[:1], dtype="datetime64[us]"), **fields) == [7]
    assert codes_of(pd.Series(values[1:2], dtype="datetime64[us, Asia/Tokyo]"), **fields) == [7]


def test_times_with_an_offset_become_universal_in_a_column_without_zone() -> None:
    fields = {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-01-01", "unit": "hour"}
    aware = pd.Series(["2020-01-01T07:00"], dtype="datetime64[us, America/New_York]")
    assert codes_of(["2020-01-01T07:00", "2020-01-01T07:00-05:00"], **fields) == [7, 12]
    assert codes_of(aware, **fields) == codes_of(aware.astype(object), **fields) == [12]


def test_the_day_the_clock_goes_forward_has_23_hours() -> None:
    fields = NEW_YORK | {"lower": "2024-03-10", "upper": "2024-03-10"}
    assert domain_of(table_of(**fields))["a"].size == 23
    local = pd.Series(["2024-03-10T01:59", "2024-03-10T02:30", "2024-03-10T03:00"], dtype="datetime64[us]")
    assert codes_of(local, **fields) == codes_of(local.astype(object), **fields) == [1, 2, 2]


def test_the_day_the_clock_goes_back_has_25_hours() -> None:
    fields = NEW_YORK | {"lower": "2024-11-03", "upper": "2024-11-03"}
    assert domain_of(table_of(**fields))["a"].size == 25
    universal = pd.Series(["2024-11-03T05:30", "2024-11-03T06:30", "2024-11-03T07:00"], dtype="datetime64[us, UTC]")
    assert codes_of(universal, **fields) == [1, 2, 3]
    local = pd.Series(["2024-11-03T01:30", "2024-11-03T02:00"], dtype="datetime64[us]")
    assert codes_of(local, **fields) == codes_of(local.astype(object), **fields) == [1, 3]
    assert codes_of(universal, **fields | {"lower": "2024-11-03T01:30"}) == [0, 1, 2]


@settings(max_examples=100, deadline=None)
@given(columns(kinds=("date", "datetime"), may_refuse=False), st.lists(st.datetimes()))
def test_typed_times_are_read_like_single_ones(column: ColumnSchema, values: list[datetime]) -> None:
    typed = pd.Series(values, dtype="datetime64[us]")
    expected = encode(pd.DataFrame({"a": pd.Series(values, dtype=object)}), table_of(column))
    assert_equal(encode(pd.DataFrame({"a": typed}), table_of(column)), expected)


@settings(max_examples=100, deadline=None)
@given(columns(may_refuse=False), st.lists(st.floats()), st.sampled_from(["float64", "Float64", "float64[pyarrow]"]))
def test_typed_numbers_are_read_like_single_ones(column: ColumnSchema, values: list[float], dtype: str) -> None:
    expected = encode(pd.DataFrame({"a": pd.Series(values, dtype=object)}), table_of(column))
    assert_equal(encode(pd.DataFrame({"a": pd.Series(values, dtype=dtype)}), table_of(column)), expected)


# Tables


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"b": [1]}), "Expected no column 'b' in the table; add it to columns or to excluded."),
        (pd.DataFrame({"a": [1], 5: [1]}), "Expected no column 5 in the table; add it to columns or to excluded."),
        (pd.DataFrame({"id": [1]}), "Expected a column 'a' in the table."),
        (pd.DataFrame([[1, 1]], columns=["a", "a"]), "Expected the column 'a' once in the table."),
    ],
)
def test_columns_that_do_not_fit_the_schema_are_named(frame: pd.DataFrame, message: str) -> None:
    schema = TableSchema.model_validate({"name": "t", "columns": [BOOLEAN], "excluded": ["id", "absent"]})
    with pytest.raises(SchemaError) as caught:
        encode(frame, schema)
    assert str(caught.value) == message


def test_excluded_columns_are_left_out() -> None:
    schema = TableSchema.model_validate({"name": "t", "columns": [BOOLEAN], "excluded": ["id", "absent"]})
    assert tuple(encode(pd.DataFrame({"id": [7], "a": [True]}), schema).columns) == ("a",)


def test_the_repr_of_an_encoded_table_shows_names_only() -> None:
    table = encode(pd.DataFrame({"a": [1] * 613}), table_of(kind="integer", lower=0, upper=1))
    assert repr(table) == str(table) == "EncodedTable(a)"


@settings(max_examples=50, deadline=None)
@given(schemas())
def test_the_domain_follows_the_schema(schema: TableSchema) -> None:
    for attribute, column in zip(domain_of(schema).attributes, schema.columns, strict=True):
        assert (attribute.name, attribute.size) == (column.name, column.size)
        assert attribute.is_ordered == (column.kind != "categorical" or column.ordered)


def test_an_encoded_table_holds_codes_of_its_domain_only() -> None:
    domain = domain_of(table_of(kind="boolean", other=True))
    with pytest.raises(SchemaError, match="from 0 to 1"):
        EncodedTable(domain, {"a": np.array([0, 2], np.int32)})


MOMENTS = [
    pa.timestamp("us"),
    pa.timestamp("us", tz="UTC"),
    pa.timestamp("s", tz="Europe/Berlin"),
    pa.date64(),
    pa.time64("us"),
    pa.duration("s"),
]


@given(columns(may_refuse=False), st.sampled_from(MOMENTS), st.lists(st.none() | st.integers(-(2**62), 2**62)))
def test_a_moment_that_python_has_no_object_for_stops_no_column(
    column: ColumnSchema, kind: pa.DataType, ticks: list[int | None]
) -> None:
    arrow = pa.array(ticks, pa.int64()).view(kind)
    encode(
        pd.DataFrame({"a": pd.Series(pd.arrays.ArrowExtensionArray(arrow))}), TableSchema(name="t", columns=(column,))
    )


def test_a_far_moment_with_a_zone_is_read_as_one_without() -> None:
    column = {"name": "a", "kind": "datetime", "lower": "2000-01-01", "upper": "2001-01-01", "bins": 4}
    schema = TableSchema.model_validate({"name": "t", "columns": [column]})
    ticks = pa.array([2**62, -(2**62)], pa.int64())
    codes = [
        encode(pd.DataFrame({"a": pd.Series(pd.arrays.ArrowExtensionArray(ticks.view(kind)))}), schema).columns["a"]
        for kind in (pa.timestamp("us"), pa.timestamp("us", tz="UTC"))
    ]
    assert codes[0].tolist() == codes[1].tolist() == [3, 0]
