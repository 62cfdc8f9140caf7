"""Statistical tests raise a false alarm once in 10^9 runs; there is no seed to fix."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from ppsyn.errors import ConfigError, SchemaError
from ppsyn.persons import Keys, bound_contributions, draw_keys

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


def test_a_bound_of_no_rows_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_rows=0"):
        bound_contributions(table_of(["a"]), "who", 0)
