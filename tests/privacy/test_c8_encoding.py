"""Claim C8: neighbouring tables have encodings that differ in at most the rows of one person."""

from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from uuid import uuid4
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy.instruments import Watched, watch_draws
from privacy.releases import SCHEMA, SETTINGS, private_frame
from support.published import begin
from support.ruled import POLICIES, private_rows, ruled_schema
from support.statistical import ALPHA, frequencies_p_value
from support.strategies import columns, raw_values

from ppsyn import synthesize
from ppsyn.data.contributions import ContributionBounder, Keys, bound_contributions
from ppsyn.data.encoding import encode, encode_marked, encode_rows
from ppsyn.domain import domain_of
from ppsyn.errors import SchemaError
from ppsyn.privacy.requests import GRID
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.table import TableSchema

Bound = Callable[..., pd.DataFrame]

ids = st.sampled_from(["ann", "bob", "eve", None])


@st.composite
def crowds(draw: st.DrawFn) -> pd.DataFrame:
    """A table of a few persons with any number of rows each, and a key that stays with every row."""
    rows = draw(st.lists(st.tuples(ids, st.integers(0, 9)), max_size=14))
    frame = pd.DataFrame(rows, columns=["who", "key"]).astype({"who": object, "key": np.uint64})
    return frame.assign(row=np.arange(len(frame)))


def kept_rows(bound: Bound, bounder: pd.DataFrame, max_rows: int) -> set[int]:
    """The rows that are kept when each has the key it came with, which couples neighbouring tables."""

    def keys_of_rows(_: int) -> Keys:
        return bounder["key"].to_numpy(np.uint64)

    return set(bound(bounder, "who", max_rows, draw=keys_of_rows)["row"])


def is_coupled(bound: Bound, bounder: pd.DataFrame, leaver: str | None, max_rows: int) -> bool:
    """Whether a person who leaves takes at most `max_rows` kept rows along and moves no other."""
    theirs = bounder["who"].isna() if leaver is None else bounder["who"] == leaver
    before, after = kept_rows(bound, bounder, max_rows), kept_rows(bound, bounder[~theirs], max_rows)
    gone = before - after
    return after <= before and len(gone) <= max_rows and gone <= set(bounder["row"][theirs])


def cap_all_rows(
    frame: pd.DataFrame, person_column: str, max_rows: int, *, draw: Callable[[int], Keys]
) -> pd.DataFrame:
    """A wrong way: so many rows in all, however many persons there are."""
    return frame.iloc[np.argsort(draw(len(frame)), kind="stable")[: 2 * max_rows]].drop(columns=person_column)


def keep_frequent_rows(
    frame: pd.DataFrame, person_column: str, max_rows: int, *, draw: Callable[[int], Keys]
) -> pd.DataFrame:
    """A wrong way: every person keeps rows, but which depends on how many rows the table has."""
    shifted = draw(len(frame)) + np.uint64(len(frame)) * np.arange(len(frame), dtype=np.uint64)
    return bound_contributions(frame, person_column, max_rows, draw=lambda _: shifted % np.uint64(7))


@given(column=columns(may_refuse=False), values=st.lists(raw_values, min_size=1, max_size=6), data=st.data())
@settings(deadline=None)
def test_c8_a_row_is_encoded_alike_whatever_the_other_rows_are(
    column: ColumnSchema, values: list[object], data: st.DataObject
) -> None:
    schema = TableSchema(name="one", columns=(column,))
    frame = pd.DataFrame({column.name: pd.Series(values, dtype=object)})
    place = data.draw(st.integers(0, len(values) - 1))
    codes = encode(frame, schema).columns[column.name]
    assert np.delete(codes, place).tolist() == encode(frame.drop(index=place), schema).columns[column.name].tolist()
    assert codes[[place]].tolist() == encode(frame.iloc[[place]], schema).columns[column.name].tolist()


@pytest.mark.parametrize("rows", [0, 1, 12])
def test_c8_the_domain_is_read_off_the_schema_and_not_off_the_table(rows: int) -> None:
    assert encode(private_frame(rows), SCHEMA).domain == domain_of(SCHEMA)


@given(crowds(), ids, st.integers(1, 4))
@settings(deadline=None)
def test_c8_a_person_who_leaves_takes_at_most_max_rows_along_and_moves_no_other(
    bounder: pd.DataFrame, leaver: str | None, max_rows: int
) -> None:
    assert is_coupled(bound_contributions, bounder, leaver, max_rows)


@pytest.mark.parametrize("wrong", [cap_all_rows, keep_frequent_rows])
def test_c8_a_bound_that_lets_one_person_move_another_is_caught(wrong: Bound) -> None:
    bounder = pd.DataFrame({"who": list("aabbccdd"), "key": np.arange(8, dtype=np.uint64), "row": range(8)})
    assert not all(is_coupled(wrong, bounder, leaver, 1) for leaver in "abcd")


@given(crowds(), st.integers(1, 4))
@settings(deadline=None)
def test_c8_every_person_keeps_as_many_rows_as_the_bound_allows(bounder: pd.DataFrame, max_rows: int) -> None:
    owners = bounder.set_index("row")["who"].astype(object).where(bounder["who"].notna().to_numpy(), "nobody")
    kept = Counter(owners[row] for row in kept_rows(bound_contributions, bounder, max_rows))
    assert kept == {who: min(max_rows, count) for who, count in Counter(owners).items()}


def test_c8_which_rows_of_a_person_are_kept_is_an_even_choice() -> None:
    # 30,000 persons of three rows; catches a row favoured by 10%.
    bounder = pd.DataFrame({"who": np.repeat(np.arange(30_000), 3), "place": np.tile([0, 1, 2], 30_000)})
    kept = bound_contributions(bounder, "who", 1)
    assert frequencies_p_value(np.bincount(kept["place"]), [1, 1, 1]) > ALPHA


def test_c8_the_choice_for_one_person_tells_nothing_about_another() -> None:
    # 15,000 pairs of persons; catches a correlation of 0.1 between the choices of neighbours.
    bounder = pd.DataFrame({"who": np.repeat(np.arange(30_000), 2), "place": np.tile([0, 1], 30_000)})
    places = bound_contributions(bounder, "who", 1)["place"].to_numpy().reshape(-1, 2)
    assert frequencies_p_value(np.bincount(places @ [2, 1], minlength=4), [1, 1, 1, 1]) > ALPHA


def test_c8_the_bound_on_rows_reaches_both_mechanisms(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch_draws(monkeypatch, Watched())
    synthesize(private_frame(), SCHEMA, rho=0.5, person=("who", 3), **SETTINGS)
    assert {draw.sensitivity for draw in watched.draws} == {3, 3 * GRID}


def test_c8_no_more_rows_of_a_person_are_counted_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch_draws(monkeypatch, Watched())
    frame = private_frame(12).assign(who="the same")
    synthesize(frame, SCHEMA, rho=0.5, person=("who", 3), **SETTINGS)
    measured = [draw for draw in watched.draws if draw.sensitivity == 3]
    assert {sum(draw.exact) for draw in measured} == {3}


def test_c8_ids_that_cannot_be_told_apart_are_refused_without_naming_one() -> None:
    frame = pd.DataFrame({"who": pd.Series([["canary"], ["canary"]], dtype=object)})
    with pytest.raises(SchemaError) as caught:
        bound_contributions(frame, "who", 1)
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("max_rows", [1, 3])
def test_c8_what_a_run_measures_is_bounded_and_scaled_by_the_rows_of_a_person(
    max_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person whose rows lie in many batches, from the table to what the mechanisms are given."""
    watched = watch_draws(monkeypatch)
    frame = private_frame(12).assign(who=["a", "b"] * 5 + ["a", "c"])
    frame.to_csv(tmp_path / "table.csv", index=False)
    config = ReleaseConfig.model_validate(
        {
            "dataset": "toy",
            "source": {"kind": "csv", "path": str(tmp_path / "table.csv"), "batch_rows": 2},
            "schema": "given-elsewhere.yaml",
            "privacy": {"rho": 0.5, "person": {"column": "who", "max_rows": max_rows}},
            "account": {"cap": {"rho": 1.0}},
            "stores": {"root": {"url": f"memory://{uuid4().hex}"}},
        }
    )
    run = begin(config, SCHEMA)
    run.ask()
    (draw,) = watched.draws
    assert (sum(draw.exact), draw.sensitivity) == (2 * max_rows + 1, max_rows)


_offsets = st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
_unfolded = st.datetimes(datetime(1700, 1, 1), datetime(2250, 1, 1))  # as far as nanoseconds reach


@st.composite
def same_times(draw: st.DrawFn) -> list[object]:
    """A time of a clock, with one offset or another."""
    offset, other = draw(_offsets), draw(_offsets)
    first = draw(st.times()).replace(tzinfo=offset)
    moved = datetime.combine(date(2020, 6, 15), first).astimezone(other)
    is_same_day = moved.date() == date(2020, 6, 15)  # a time past midnight is another, to Python too
    return [first, moved.timetz()] if is_same_day else [first]


@st.composite
def same_moments(draw: st.DrawFn) -> list[object]:
    """A moment with an offset or without, of several types."""
    local = draw(_unfolded)
    stamp = pd.Timestamp(local)
    plain = [local, stamp, stamp.as_unit("ns"), np.datetime64(local, "us"), np.datetime64(local, "ns")]
    aware = local.replace(tzinfo=draw(_offsets))
    moved = aware.astimezone(draw(_offsets))
    return plain if draw(st.booleans()) else [aware, moved, pd.Timestamp(moved), pd.Timestamp(aware).as_unit("ns")]


@st.composite
def same_numbers(draw: st.DrawFn) -> list[object]:
    """A number of several types."""
    whole = draw(st.integers(-128, 127))
    exact = [
        whole,
        float(whole),
        Decimal(whole),
        Fraction(whole),
        np.int8(whole),
        np.float16(whole),
        np.longdouble(whole),
    ]
    half = whole / 2 + 0.5
    parted = [half, Decimal(half), Fraction(half), np.float32(half), np.float64(half), np.longdouble(half)]
    truths: list[object] = [bool(whole), np.bool_(whole)] if whole in (0, 1) else []
    return exact + truths if draw(st.booleans()) else parted


def same_days(day: date) -> list[object]:
    return [
        day,
        datetime(day.year, day.month, day.day),
        pd.Timestamp(day),
        np.datetime64(day, "D"),
        np.datetime64(day, "s"),
    ]


same_ids = st.one_of(same_times(), same_moments(), same_numbers(), _unfolded.map(datetime.date).map(same_days))
"""Ids that are equal, in all the types in which a batch may have them."""


def kept_of(batches: list[list[object]]) -> int:
    """How many rows are kept in all where a person keeps one."""
    with ContributionBounder("who", 1) as bounder:
        for batch in batches:
            bounder.add(pd.Series(batch, dtype=object))
        return sum(int(is_kept.sum()) for is_kept in bounder.kept_rows())


@given(same_ids, st.data())
@settings(deadline=None)
def test_c8_equal_ids_are_one_person_whatever_the_batch_and_the_type(same: list[object], data: st.DataObject) -> None:
    ids = data.draw(st.permutations(same))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(ids)), max_size=3)))
    assert kept_of([ids[a:b] for a, b in pairwise([0, *cuts, len(ids)])]) == 1
    assert kept_of([[each] for each in ids]) == 1


@given(st.lists(same_ids, min_size=2, max_size=5))
@settings(deadline=None)
def test_c8_ids_that_python_tells_apart_are_as_many_persons(different: list[list[object]]) -> None:
    ids = [same[0] for same in different]
    persons = {_canonical(each) for each in ids}
    assert kept_of([[each] for each in ids]) == len(persons)


def _canonical(each: object) -> object:
    """A day as its first moment: the one kind of equality that is NumPy's and not Python's."""
    return datetime(each.year, each.month, each.day) if type(each) is date else each


@pytest.mark.parametrize("offset", [0, 2])
def test_c8_a_time_with_an_offset_is_one_person_over_batches_and_dtypes(offset: int) -> None:
    zones = [timezone(timedelta(hours=hours)) for hours in (offset, offset + 1)]
    times = [time(12 + at, 30, tzinfo=zone) for at, zone in enumerate(zones)]
    assert times[0] == times[1]
    assert kept_of([times[:1], times[1:]]) == kept_of([times]) == 1


@pytest.mark.parametrize("fold", [0, 1])
def test_c8_a_time_that_the_clock_shows_twice_is_one_person_as_it_is_to_python(fold: int) -> None:
    twice = datetime(2020, 10, 25, 1, 30, tzinfo=ZoneInfo("Europe/London"))
    assert twice == twice.replace(fold=1)
    ids = [twice, twice.replace(fold=fold), pd.Timestamp(twice), pd.Timestamp(twice.replace(fold=1))]
    assert kept_of([[each] for each in ids]) == kept_of([ids]) == 1


@pytest.mark.parametrize(
    ("raw", "dtypes"),
    [
        ([1, 2], ["int8", "Int64", "float32", "Float64", "int64[pyarrow]", "double[pyarrow]", "category", object]),
        (
            [pd.Timestamp(2020, 1, 1), pd.Timestamp(2020, 1, 2)],
            ["datetime64[s]", "datetime64[ns]", "timestamp[us][pyarrow]", "date32[day][pyarrow]", "category", object],
        ),
        (
            [pd.Timestamp("2020-01-01T00Z"), pd.Timestamp("2020-06-01T00Z")],
            ["datetime64[us, UTC]", "datetime64[ns, Europe/Rome]", "timestamp[ms, tz=Asia/Tokyo][pyarrow]", object],
        ),
        (["a", "b"], ["str", "string[pyarrow]", "category", object]),
    ],
)
def test_c8_equal_ids_are_one_person_whatever_the_dtype_of_the_batch(raw: list[object], dtypes: list[str]) -> None:
    with ContributionBounder("who", 1) as bounder:
        for dtype in dtypes:
            bounder.add(pd.Series(raw).astype(dtype))
        assert sum(int(is_kept.sum()) for is_kept in bounder.kept_rows()) == 2


def test_c8_persons_are_counted_no_further_than_their_marks_can_tell_them_apart() -> None:
    with ContributionBounder("who", 1) as bounder:
        bounder.add(pd.Series(["a"]))
        bounder._sizes.append(2**37 - 3)  # as if so many rows had come in between
        bounder.add(pd.Series(["b"]))
        with pytest.raises(SchemaError, match=r"fewer than 2\^37 rows"):
            bounder.add(pd.Series(["c"]))


def test_c8_a_mark_has_so_many_bits_that_no_two_persons_share_one() -> None:
    # n^2 / 2^(bits + 1) over fewer than 2^37 persons: the term that the claim adds to delta is 2^-119.
    with ContributionBounder("who", 1) as bounder:
        marks = bounder._marks(pd.Series(["a", "b", None], dtype=object))
    assert 2 * 37 - (8 * marks.itemsize * marks.shape[1] + 1) == -119
    assert all(len({int(mark) for mark in part}) == 3 for part in marks.T)


@pytest.mark.parametrize(
    "odd", [np.timedelta64(5, "D"), np.timedelta64(5), np.timedelta64(3, "Y"), np.timedelta64("NaT")]
)
@given(column=columns(may_refuse=False))
@settings(deadline=None, max_examples=20)
def test_c8_a_duration_stops_no_encoding_and_is_no_number(odd: object, column: ColumnSchema) -> None:
    schema = TableSchema(name="one", columns=(column,))

    def codes_of(value: object) -> list[int]:
        frame = pd.DataFrame({column.name: pd.Series([value], dtype=object)})
        return encode(frame, schema).columns[column.name].tolist()

    assert codes_of(odd) == codes_of(None if np.isnat(odd) else object())


@pytest.mark.parametrize("odd", [np.timedelta64(5), np.timedelta64(5, "D"), timedelta(5)])
def test_c8_a_duration_is_no_id_and_is_refused(odd: object) -> None:
    with pytest.raises(SchemaError, match="plain identifiers"):
        kept_of([[odd]])


@pytest.mark.parametrize("policy", POLICIES)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 30), place=st.integers(0, 29))
@settings(deadline=None, max_examples=30)
def test_c8_what_becomes_of_a_row_that_breaks_a_rule_depends_on_no_other_row(
    policy: str, seed: int, rows: int, place: int
) -> None:
    schema, frame, gone = ruled_schema(policy), private_rows(rows, seed), place % rows
    whole, fewer = encode_rows(frame, schema), encode_rows(frame.drop(index=gone), schema)
    alone = encode_rows(frame.iloc[[gone]], schema)
    assert np.delete(whole.is_kept, gone).tolist() == fewer.is_kept.tolist()
    assert whole.is_kept[gone] == alone.is_kept[0]
    at = int(whole.is_kept[:gone].sum())
    for name, codes in whole.codes.items():
        assert codes[at : at + alone.codes[name].size].tolist() == alone.codes[name].tolist()
        assert np.delete(codes, range(at, at + alone.codes[name].size)).tolist() == fewer.codes[name].tolist()


def test_c8_rules_stop_no_encoding_and_leave_persons_their_rows() -> None:
    schema = ruled_schema("drop").model_copy(update={"excluded": ("who",)})
    frame = private_rows(400).assign(who=np.arange(400) % 40)
    release = synthesize(frame, schema, rho=1.0, person=("who", 3), progress=False, rounds=2)
    assert all((codes >= 0).all() for codes in encode(frame, schema).columns.values())
    assert release.rho == 1


def forget_rows_of_the_first(schema: TableSchema, frame: pd.DataFrame) -> list[int]:
    """A wrong way: every row that breaks a rule becomes what the first such row becomes."""
    codes = encode(frame, schema).columns["status"].copy()
    raw = encode_marked(frame, schema)["status"]
    moved = np.flatnonzero(codes != raw)
    codes[moved] = codes[moved[0]] if moved.size else 0
    return codes.tolist()


def test_c8_a_repair_that_looks_at_other_rows_is_caught() -> None:
    schema, frame = ruled_schema(), private_rows(60, 4)
    whole = forget_rows_of_the_first(schema, frame)
    assert any(
        whole[:gone] + whole[gone + 1 :] != forget_rows_of_the_first(schema, frame.drop(index=gone))
        for gone in range(60)
    )
