"""Claim C8: neighbouring tables have encodings that differ in at most the rows of one person."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy.instruments import Watched, watch_draws
from privacy.releases import SCHEMA, SETTINGS, private_frame
from published import begin
from statistical import ALPHA, frequencies_p_value
from strategies import columns, raw_values

from ppsyn import synthesize
from ppsyn.discretize import domain_of, encode
from ppsyn.errors import SchemaError
from ppsyn.persons import Keys, bound_contributions
from ppsyn.requests import GRID
from schemas.columns import ColumnSchema
from schemas.release import ReleaseConfig
from schemas.table import TableSchema

Bound = Callable[..., pd.DataFrame]

ids = st.sampled_from(["ann", "bob", "eve", None])


@st.composite
def crowds(draw: st.DrawFn) -> pd.DataFrame:
    """A table of a few persons with any number of rows each, and a key that stays with every row."""
    rows = draw(st.lists(st.tuples(ids, st.integers(0, 9)), max_size=14))
    frame = pd.DataFrame(rows, columns=["who", "key"]).astype({"who": object, "key": np.uint64})
    return frame.assign(row=np.arange(len(frame)))


def kept_rows(bound: Bound, crowd: pd.DataFrame, max_rows: int) -> set[int]:
    """The rows that are kept when each has the key it came with, which couples neighbouring tables."""

    def keys_of_rows(_: int) -> Keys:
        return crowd["key"].to_numpy(np.uint64)

    return set(bound(crowd, "who", max_rows, draw=keys_of_rows)["row"])


def is_coupled(bound: Bound, crowd: pd.DataFrame, leaver: str | None, max_rows: int) -> bool:
    """Whether a person who leaves takes at most `max_rows` kept rows along and moves no other."""
    theirs = crowd["who"].isna() if leaver is None else crowd["who"] == leaver
    before, after = kept_rows(bound, crowd, max_rows), kept_rows(bound, crowd[~theirs], max_rows)
    gone = before - after
    return after <= before and len(gone) <= max_rows and gone <= set(crowd["row"][theirs])


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
    crowd: pd.DataFrame, leaver: str | None, max_rows: int
) -> None:
    assert is_coupled(bound_contributions, crowd, leaver, max_rows)


@pytest.mark.parametrize("wrong", [cap_all_rows, keep_frequent_rows])
def test_c8_a_bound_that_lets_one_person_move_another_is_caught(wrong: Bound) -> None:
    crowd = pd.DataFrame({"who": list("aabbccdd"), "key": np.arange(8, dtype=np.uint64), "row": range(8)})
    assert not all(is_coupled(wrong, crowd, leaver, 1) for leaver in "abcd")


@given(crowds(), st.integers(1, 4))
@settings(deadline=None)
def test_c8_every_person_keeps_as_many_rows_as_the_bound_allows(crowd: pd.DataFrame, max_rows: int) -> None:
    owners = crowd.set_index("row")["who"].astype(object).where(crowd["who"].notna().to_numpy(), "nobody")
    kept = Counter(owners[row] for row in kept_rows(bound_contributions, crowd, max_rows))
    assert kept == {who: min(max_rows, count) for who, count in Counter(owners).items()}


def test_c8_which_rows_of_a_person_are_kept_is_an_even_choice() -> None:
    # 30,000 persons of three rows; catches a row favoured by 10%.
    crowd = pd.DataFrame({"who": np.repeat(np.arange(30_000), 3), "place": np.tile([0, 1, 2], 30_000)})
    kept = bound_contributions(crowd, "who", 1)
    assert frequencies_p_value(np.bincount(kept["place"]), [1, 1, 1]) > ALPHA


def test_c8_the_choice_for_one_person_tells_nothing_about_another() -> None:
    # 15,000 pairs of persons; catches a correlation of 0.1 between the choices of neighbours.
    crowd = pd.DataFrame({"who": np.repeat(np.arange(30_000), 2), "place": np.tile([0, 1], 30_000)})
    places = bound_contributions(crowd, "who", 1)["place"].to_numpy().reshape(-1, 2)
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
