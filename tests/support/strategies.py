"""Hypothesis strategies: schemas, codes of them, and raw values of every sort."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from hypothesis import reject
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ppsyn.arrays import Codes
from ppsyn.schemas.columns import KINDS, ColumnSchema
from ppsyn.schemas.table import TableSchema

ZONES = ("UTC", "America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo")

Fields = dict[str, object]

_LARGEST = 2**63 - 2
_COLUMN: TypeAdapter[ColumnSchema] = TypeAdapter(ColumnSchema)

texts = st.text(st.characters(codec="utf-8"), max_size=4)
wholes = st.integers(-50, 50) | st.integers(-_LARGEST, _LARGEST)
reals = st.floats(-1e6, 1e6) | st.floats(allow_nan=False, allow_infinity=False)
days = st.dates(date(1960, 1, 1), date(2040, 1, 1)) | st.dates()
moments = st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)) | st.datetimes(
    datetime(2, 1, 1), datetime(9998, 1, 1)
)
bins = st.integers(1, 30)


@st.composite
def _categorical(draw: st.DrawFn) -> Fields:
    labels = draw(st.sampled_from([texts, wholes]))
    values = draw(st.lists(labels, min_size=1, max_size=8, unique=True))
    other = draw(st.none() | st.sampled_from(values) | labels)
    return {"values": values, "ordered": draw(st.booleans()), "other": other}


@st.composite
def _boolean(draw: st.DrawFn) -> Fields:
    return {"other": draw(st.none() | st.booleans())}


@st.composite
def _integer(draw: st.DrawFn) -> Fields:
    if draw(st.booleans()):
        edges = sorted(draw(st.lists(wholes, min_size=2, max_size=6, unique=True)))
        return {"edges": edges, "other": draw(st.none() | st.integers(edges[0], edges[-1]))}
    lower, width = draw(wholes), draw(st.integers(0, 60) | st.integers(0, 2**64))
    upper = min(_LARGEST, lower + width)
    width = upper - lower
    dividers = [{"bins": min(width + 1, draw(bins))}, {"step": max(1, width // draw(bins))}]
    divider = draw(st.sampled_from([*dividers, {}] if width <= 60 else dividers))
    return {"lower": lower, "upper": upper, "other": draw(st.none() | st.integers(lower, upper)), **divider}


@st.composite
def _real(draw: st.DrawFn) -> Fields:
    if draw(st.booleans()):
        edges = sorted(draw(st.lists(reals, min_size=2, max_size=6, unique=True)))
        return {"edges": edges, "other": draw(st.none() | st.sampled_from(edges))}
    lower, upper = sorted((draw(reals), draw(reals)))
    step = (upper / draw(bins) - lower / draw(bins)) or 1.0
    divider = draw(st.sampled_from([{"bins": draw(bins)}, {"step": max(step, (upper / 2 - lower / 2) / 20)}]))
    return {"lower": lower, "upper": upper, "other": draw(st.none() | st.just(lower)), **divider}


@st.composite
def _date(draw: st.DrawFn) -> Fields:
    if draw(st.booleans()):
        edges = sorted(draw(st.lists(days, min_size=2, max_size=6, unique=True)))
        return {"edges": edges, "other": draw(st.none() | st.sampled_from(edges))}
    unit, reach = draw(
        st.sampled_from([("day", 60), ("week", 400), ("month", 2000), ("quarter", 4000), ("year", 9000)])
    )
    lower, width = draw(days), draw(st.integers(0, reach))
    upper = date.fromordinal(min(date.max.toordinal(), lower.toordinal() + width))
    count = min(draw(bins), upper.toordinal() - lower.toordinal() + 1)
    divider = draw(st.sampled_from([{"unit": unit}, {"bins": count}]))
    return {"lower": lower, "upper": upper, "other": draw(st.none() | st.just(upper)), **divider}


@st.composite
def _datetime(draw: st.DrawFn) -> Fields:
    zone = {"timezone": draw(st.none() | st.sampled_from(ZONES))}
    if draw(st.booleans()):
        edges = sorted(draw(st.lists(moments, min_size=2, max_size=6, unique=True)))
        return {"edges": edges, "other": draw(st.none() | st.sampled_from(edges)), **zone}
    units = {"minute": 90, "hour": 3000, "day": 10**5, "week": 10**5, "month": 10**6, "quarter": 10**7, "year": 10**7}
    unit = draw(st.sampled_from(list(units)))
    lower = draw(moments)
    upper = min(lower + timedelta(minutes=draw(st.floats(0, units[unit]))), datetime(9998, 12, 31))
    divider = draw(st.sampled_from([{"unit": unit}, {"bins": 1}]))
    return {"lower": lower, "upper": upper, "other": draw(st.none() | st.just(lower)), **divider, **zone}


_FIELDS = {
    "categorical": _categorical(),
    "boolean": _boolean(),
    "integer": _integer(),
    "real": _real(),
    "date": _date(),
    "datetime": _datetime(),
}


@st.composite
def columns(
    draw: st.DrawFn, *, kinds: tuple[str, ...] = KINDS, may_refuse: bool = True, name: str = "a"
) -> ColumnSchema:
    """A column of any of the kinds, with any policy and dtype."""
    kind = draw(st.sampled_from(kinds))
    fields: Fields = {"name": name, "kind": kind, "nullable": draw(st.booleans()), **draw(_FIELDS[kind])}
    policies = [{"outside": "refuse"}] if may_refuse else []
    if kind not in ("categorical", "boolean"):
        policies.append({"outside": "clip"})
    if fields["nullable"]:
        policies.append({"outside": "null"})
    if fields["other"] is not None:
        policies.append({"outside": "other"})
    if not policies:
        policies, fields["nullable"] = [{"outside": "null"}], True
    fields |= draw(st.sampled_from(policies))
    try:
        column = _COLUMN.validate_python(fields)
        return _COLUMN.validate_python(fields | {"dtype": draw(st.sampled_from([None, *column.dtypes]))})
    except ValidationError:  # bins too narrow to tell apart, or to hold a value of the dtype
        reject()


@st.composite
def schemas(draw: st.DrawFn) -> TableSchema:
    """A table of one to three columns."""
    names = draw(st.lists(texts.filter(bool), min_size=1, max_size=4, unique=True))
    kept = names[: draw(st.integers(1, len(names)))]
    return TableSchema(
        name=draw(st.from_regex(r"[a-z0-9]{1,3}([-_][a-z0-9]{1,3})?", fullmatch=True)),
        columns=tuple(draw(columns(name=name)) for name in kept),
        excluded=tuple(names[len(kept) :]),
    )


@st.composite
def every_code(draw: st.DrawFn, column: ColumnSchema) -> Codes:
    """All codes of a column, a few times over, in any order."""
    codes = np.tile(np.arange(column.size, dtype=np.int32), 3)
    return np.random.Generator(np.random.PCG64(draw(st.integers(0, 2**32)))).permutation(codes)


_offsets = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_stamps = st.builds(
    lambda ticks, unit: pd.Timestamp(np.datetime64(ticks, unit)),
    st.integers(-(2**62), 2**62),
    st.sampled_from(["s", "ms", "us", "ns"]),
)

nulls = st.sampled_from([None, pd.NA, pd.NaT, float("nan"), Decimal("NaN"), np.datetime64("NaT"), np.float32("nan")])
"""Every way to be missing."""

raw_values = st.one_of(
    nulls,
    st.booleans(),
    st.booleans().map(np.bool_),
    wholes,
    wholes.map(np.int64),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.floats(width=32).map(np.float32),
    st.decimals(),
    st.sampled_from([Decimal("sNaN"), Decimal("1e999999"), Decimal("-1e-999999"), Fraction(10**400, 3), 2j]),
    st.text(),
    st.sampled_from(
        ["", " ", "true", "FALSE", "nan", "-inf", "9" * 5000, "1e999999999", "2020-01-01T00:00:00Z", "3.0"]
    ),
    st.one_of(wholes, reals, days, moments).map(str),
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=_offsets),
    moments.map(lambda moment: moment.replace(tzinfo=ZoneInfo("Europe/Dublin"), fold=1)),
    st.times(),
    st.timedeltas(),
    _stamps,
    st.integers(-(2**60), 2**60).map(lambda ticks: np.datetime64(ticks, "D")),
    st.builds(np.timedelta64, st.integers(-(2**40), 2**40), st.sampled_from(["Y", "D", "us", "ns"])),
    st.just(np.timedelta64("NaT", "s")),
    st.just([]).map(lambda _: np.timedelta64(5)),  # cannot be hashed
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=1),
    st.just(object()),
)
"""Anything at all that a column of objects may hold."""


def frames(*, max_rows: int = 8) -> st.SearchStrategy[pd.DataFrame]:
    """A table of one column `a` of any objects."""
    values = st.lists(raw_values, max_size=max_rows)
    return values.map(lambda rows: pd.DataFrame({"a": pd.Series(rows, dtype=object)}))
