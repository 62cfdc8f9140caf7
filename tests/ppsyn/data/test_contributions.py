"""Statistical tests raise a false alarm once in 10^9 runs; there is no seed to fix."""

import math
import tracemalloc
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain, islice
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from ppsyn.data.contributions import ContributionBounder, Keys, bound_contributions, draw_keys
from ppsyn.errors import ConfigError, SchemaError, StoreError

ALPHA = 1e-9

ids = st.lists(st.sampled_from(["a", "b", "c", None]), max_size=20)
bounds = st.integers(1, 4)
seeds = st.integers(0, 2**32)


def table_of(persons: list[object]) -> pd.DataFrame:
    """A table whose rows are told apart by their number, with an index that is of no use."""
    frame = pd.DataFrame({"row": np.arange(len(persons)), "who": pd.Series(persons, dtype=object)})
    return frame.set_axis([0] * len(persons))


def keys_of(seed: int) -> Callable[[int], Keys]:
    """Keys that repeat; the first ones are the same for a longer table."""
    return lambda count: np.random.Generator(np.random.PCG64(seed)).integers(0, 2**64, count, np.uint64)


@given(ids, bounds)
def test_no_person_keeps_more_rows_than_the_bound_nor_fewer_than_they_may(persons: list[object], bound: int) -> None:
    kept = bound_contributions(table_of(persons), "who", bound)["row"]
    counts = pd.Series(persons, dtype=object).value_counts(dropna=False)
    left = pd.Series(persons, dtype=object).iloc[kept].value_counts(dropna=False)
    assert left.to_dict() == counts.clip(upper=bound).to_dict()


@given(ids, bounds)
def test_rows_keep_their_order_and_lose_the_person(persons: list[object], bound: int) -> None:
    frame = table_of(persons)
    before = frame.copy(deep=True)
    kept = bound_contributions(frame, "who", bound)
    assert list(kept.columns) == ["row"]
    assert kept["row"].is_monotonic_increasing
    pd.testing.assert_frame_equal(frame, before)


@given(ids, st.integers(1, 6), bounds, seeds)
def test_adding_a_person_changes_that_persons_rows_only(
    persons: list[object], rows: int, bound: int, seed: int
) -> None:
    without = bound_contributions(table_of(persons), "who", bound, draw=keys_of(seed))["row"].tolist()
    added = bound_contributions(table_of(persons + ["new"] * rows), "who", bound, draw=keys_of(seed))["row"].tolist()
    assert [row for row in added if row < len(persons)] == without
    assert len(added) - len(without) == min(rows, bound)


@given(ids, st.permutations(range(20)), bounds, seeds)
def test_the_choice_depends_on_keys_and_not_on_where_rows_stand(
    persons: list[object], order: list[int], bound: int, seed: int
) -> None:
    order = [row for row in order if row < len(persons)]
    frame, keys = table_of(persons), keys_of(seed)(len(persons))
    kept = bound_contributions(frame, "who", bound, draw=lambda _: keys)["row"]
    moved = bound_contributions(frame.iloc[order], "who", bound, draw=lambda _: keys[order])["row"]
    assert sorted(moved) == kept.tolist()


def test_every_choice_is_equally_likely() -> None:
    people = 30_000  # enough to catch a choice made 5% too often
    rows = bound_contributions(table_of([who for who in range(people) for _ in range(3)]), "who", 2)["row"].to_numpy()
    dropped = np.setdiff1d(np.arange(3 * people), rows)
    assert dropped.size == people
    assert chisquare(np.bincount(dropped % 3, minlength=3)).pvalue > ALPHA


def test_keys_come_anew_each_time() -> None:
    assert draw_keys(4).shape == (4,)
    assert not np.array_equal(draw_keys(4), draw_keys(4))


@pytest.mark.parametrize("nulls", [[None] * 5, [None, np.nan, pd.NA, pd.NaT, None]])
def test_rows_without_a_person_count_as_one_person(nulls: list[object]) -> None:
    assert len(bound_contributions(table_of(["a", *nulls, "b"]), "who", 2)) == 4


@pytest.mark.parametrize("dtype", ["int64", "Int64", "str", "category", "int64[pyarrow]"])
def test_persons_may_be_named_in_any_dtype(dtype: str) -> None:
    frame = pd.DataFrame({"who": pd.Series([3, 1, 3, 3]).astype(dtype), "row": range(4)})
    assert len(bound_contributions(frame, "who", 1)) == 2


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"row": [1]}), pd.DataFrame([[1, 1]], columns=["who", "who"]), table_of([["canary"]])]
)
def test_a_table_that_does_not_tell_persons_apart_is_refused(frame: pd.DataFrame) -> None:
    with pytest.raises(SchemaError, match="'who'") as caught:
        bound_contributions(frame, "who", 1)
    assert "canary" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


# In batches


class Text(str):
    """A string of another class, equal to the plain one."""

    __slots__ = ()


_HALF = timedelta(minutes=30)

_SAME = [
    ["1", Text("1")],
    [1, 1.0, True, np.True_, Decimal("1.00"), Fraction(1), np.float32(1), np.int8(1), np.longdouble(1)],
    [0.0, -0.0, 0],
    [0.5, Decimal("0.5")],
    [2**70, float(2**70), Decimal(2**70)],
    [math.inf, Decimal("Infinity")],
    [b"1"],
    [UUID(int=1)],
    [
        date(2020, 1, 1),
        datetime(2020, 1, 1),
        pd.Timestamp("2020-01-01"),
        np.datetime64("2020-01-01"),
        np.datetime64("2020-01", "M"),
        np.datetime64("2020-01-01T00", "ns"),
    ],
    [pd.Timestamp("2020-01-01T00:00:00.000000001"), np.datetime64("2020-01-01T00:00:00.000000001", "ns")],
    [datetime(2020, 1, 1, tzinfo=UTC), pd.Timestamp("2020-01-01 02:00", tz=timezone(timedelta(hours=2)))],
    [datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))],
    [time(1)],
    [time(1, tzinfo=UTC), time(3, tzinfo=timezone(timedelta(hours=2))), time(0, 30, tzinfo=timezone(-_HALF))],
    [time(23, tzinfo=timezone(timedelta(hours=2)))],
    [time(21, tzinfo=timezone(timedelta(hours=3)))],
    [Decimal("1e400")],
    [None, math.nan, pd.NA, pd.NaT, Decimal("NaN")],
]
"""Ids that are one person, and others in other lines."""


def chosen(batches: Iterable[list[object]], max_rows: int, draw: Callable[[int], Keys] = draw_keys) -> list[list[bool]]:
    """Of each batch, which rows are kept."""
    with ContributionBounder("who", max_rows, draw=draw) as bounder:
        for batch in batches:
            bounder.add(pd.Series(batch, dtype=object))
        return [is_kept.tolist() for is_kept in bounder.kept_rows()]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few buckets that hold few rows, so that most go to the disk."""
    monkeypatch.setattr("ppsyn.data.contributions._BUCKETS", 3)
    monkeypatch.setattr("ppsyn.data.contributions._BUCKET_ROWS", 4)


@pytest.mark.usefixtures("tiny")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([None, "a", "b", 1, 1.0, 2, "1", 3, 4, 5]), max_size=40), max_size=6),
    bounds,
    seeds,
    st.sampled_from([3, 2**64]),
)
def test_batches_keep_the_rows_of_smallest_key_of_each_person(
    batches: list[list[object]], bound: int, seed: int, most: int
) -> None:
    persons = [person for batch in batches for person in batch]
    keys = np.random.Generator(np.random.PCG64(seed)).integers(0, most, len(persons), np.uint64).tolist()
    rows: dict[object, list[tuple[int, int]]] = {}
    for row, person in enumerate(persons):
        rows.setdefault(person, []).append((keys[row], row))
    expected = {row for theirs in rows.values() for _, row in sorted(theirs)[:bound]}
    left = iter(keys)
    kept = chosen(batches, bound, lambda count: np.array(list(islice(left, count)), np.uint64))
    assert [len(batch) for batch in kept] == [len(batch) for batch in batches]
    assert {row for row, is_kept in enumerate(chain.from_iterable(kept)) if is_kept} == expected


def test_equal_ids_are_one_person_over_all_batches_and_others_are_not() -> None:
    ways = max(map(len, _SAME))
    batches = [[same[way % len(same)] for same in _SAME] for way in range(ways)]
    kept = chosen(batches, 1)
    assert [sum(column) for column in zip(*kept, strict=True)] == [1] * len(_SAME)


@pytest.mark.parametrize("dtype", ["float64[pyarrow]", "float32", "Float64", "string[pyarrow]", "category"])
def test_persons_without_an_id_are_one_over_all_batches(dtype: str) -> None:
    raw = pd.Series([None, None, "7"], dtype=object)
    batch = raw.astype(float if "float" in dtype.lower() else object).astype(dtype)
    with ContributionBounder("who", 2) as bounder:
        for _ in range(3):
            bounder.add(batch)
        assert np.concatenate(list(bounder.kept_rows())).sum() == 4


def test_a_float_that_is_not_a_number_is_no_id() -> None:
    with ContributionBounder("who", 1) as bounder:
        for _ in range(3):
            bounder.add(pd.Series(pd.arrays.ArrowExtensionArray(pa.array([float("nan"), None]))))
        assert np.concatenate(list(bounder.kept_rows())).sum() == 1


@pytest.mark.parametrize("persons", [1_000_000, 1], ids=["many", "one"])
def test_memory_does_not_grow_with_the_rows(persons: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ppsyn.data.contributions._BUCKET_ROWS", 2**7)  # 1 MB in all
    batch = 8_000

    def peak(batches: int) -> int:
        rng = np.random.Generator(np.random.PCG64(1))
        tracemalloc.start()
        with ContributionBounder("who", 2) as bounder:
            for _ in range(batches):
                bounder.add(pd.Series(rng.integers(0, persons, batch)))
            assert sum(is_kept.size for is_kept in bounder.kept_rows()) == batches * batch
            most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few, many = peak(12), peak(24)  # 96,000 rows more, which have 3.1 MB of marks and keys
    assert (few < 16_000_000, many - few < 1_000_000) == (True, True)


def test_a_disk_that_is_full_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tiny: None) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", partial(open, "/dev/full", "r+b"))
    with pytest.raises(StoreError, match=r"No space left on device.*TMPDIR"), ContributionBounder("who", 1) as bounder:
        bounder.add(pd.Series(range(100)))


def test_a_folder_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StoreError, match=r"nowhere.*TMPDIR"):
        ContributionBounder("who", 1)


@pytest.mark.parametrize("bad", [["canary"], ("canary",), object(), 1j])
def test_ids_that_cannot_be_told_apart_are_refused_without_being_told(bad: object) -> None:
    with (
        ContributionBounder("who", 1) as bounder,
        pytest.raises(SchemaError, match=r"'who'.*plain identifiers") as caught,
    ):
        bounder.add(pd.Series([bad], dtype=object))
    assert "canary" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert repr(bounder) == "ContributionBounder()"


def test_a_bound_of_no_rows_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_rows=0"):
        bound_contributions(table_of(["a"]), "who", 0)
