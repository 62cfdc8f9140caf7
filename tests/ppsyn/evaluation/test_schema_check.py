"""What becomes of values, counted: the same as encoding makes of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.private_tables import CANARY, ROWS, csv_bytes, csv_source, parquet_source, sqlite_source
from support.private_tables import SCHEMA as PEOPLE

from ppsyn.data.encoding import REFUSED, encode_marked
from ppsyn.data.encoding.parsing import Fit
from ppsyn.data.encoding.table import Fate, fate_of, place_column
from ppsyn.errors import SchemaError
from ppsyn.evaluation.schema_check import lost_columns, summarize_encoding
from ppsyn.schemas.columns import CategoricalColumn, IntegerColumn
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource
from ppsyn.schemas.table import TableSchema

COLUMNS = [
    IntegerColumn(name="a", lower=0, upper=9),
    IntegerColumn(name="a", lower=0, upper=9, nullable=True),
    IntegerColumn(name="a", lower=0, upper=9, other=4),
    IntegerColumn(name="a", lower=0, upper=9, other=4, outside="other", nullable=True),
    IntegerColumn(name="a", lower=0, upper=9, outside="null", nullable=True),
    IntegerColumn(name="a", lower=0, upper=9, outside="refuse"),
    IntegerColumn(name="a", lower=0, upper=9, outside="refuse", nullable=True),
    CategoricalColumn(name="a", values=(1, 2, 3), nullable=True),
    CategoricalColumn(name="a", values=("x", "1"), other="z"),
    CategoricalColumn(name="a", values=("x", "1"), outside="refuse"),
]
RAW = st.lists(st.sampled_from([None, "1", "9", "-1", "99", "1.5", "x", "", "nan", 3, 2.0, True]), max_size=8)


@pytest.mark.parametrize("column", COLUMNS, ids=str)
@settings(deadline=None, max_examples=40)
@given(raw=RAW)
def test_the_fate_of_a_value_is_what_encoding_makes_of_it(
    column: IntegerColumn | CategoricalColumn, raw: list[object]
) -> None:
    series = pd.Series(raw, dtype=object)
    place = place_column(series, column)
    codes = encode_marked(pd.DataFrame({"a": series}), TableSchema(name="t", columns=(column,)))["a"]
    for code, fit, nearest in zip(codes.tolist(), place.fits.tolist(), place.values.tolist(), strict=True):
        fate = fate_of(Fit(fit), column)
        expected = {
            Fate.KEPT: column.null_code if fit == Fit.NULL else nearest,
            Fate.CLIPPED: nearest,
            Fate.OTHER: column.other_code,
            Fate.NULL: column.null_code,
            Fate.FIRST: 0,
            Fate.REFUSED: REFUSED,
        }
        assert code == expected[fate]


@pytest.mark.parametrize("make", [csv_source, parquet_source], ids=["csv", "parquet"])
def test_values_are_counted_over_all_batches_and_fragments(tmp_path: Path, make: type) -> None:
    summary = summarize_encoding(make(Location(url=str(tmp_path)), ROWS), PEOPLE, PersonUnit(column="who", max_rows=1))
    assert (summary.rows, summary.kept) == (5, 4)
    assert summary.fits["age"] == {Fit.INSIDE: 4, Fit.NULL: 1}
    assert summary.fits["job.title"] == {Fit.INSIDE: 3, Fit.NULL: 1, Fit.OUTSIDE: 1}
    assert summary.outcomes("job.title") == {Fate.KEPT: 4, Fate.NULL: 1}
    assert (summary.names.excluded, summary.is_refused) == (("who",), False)


def test_lines_that_cannot_be_read_are_counted_with_the_policy_of_each_column(tmp_path: Path) -> None:
    data = csv_bytes(ROWS, ["age", "job.title", "who"]) + b'1,"x,7\n1,2\n' * 3
    (tmp_path / "t.csv").write_bytes(data)
    source = CsvSource(kind="csv", path=Location(url=str(tmp_path)))
    summary = summarize_encoding(source, PEOPLE, PersonUnit(column="who", max_rows=1))
    assert (summary.rows, summary.unreadable, summary.kept) == (11, 6, 4)
    assert summary.fits["age"] == {Fit.INSIDE: 4, Fit.NULL: 1, Fit.MISFIT: 6}
    assert summary.fits["job.title"] == {Fit.INSIDE: 3, Fit.NULL: 1, Fit.OUTSIDE: 7}


def test_a_query_is_counted_too(tmp_path: Path) -> None:
    assert summarize_encoding(sqlite_source(tmp_path, ROWS), PEOPLE, None).rows == 5


def test_a_refused_value_and_columns_that_do_not_fit_would_stop_a_release(tmp_path: Path) -> None:
    columns = (
        IntegerColumn(name="age", lower=0, upper=40, outside="refuse", nullable=True),
        IntegerColumn(name="height", lower=0, upper=3),
    )
    schema = TableSchema(name="t", columns=columns, excluded=("who", "gone"))
    summary = summarize_encoding(csv_source(Location(url=str(tmp_path)), ROWS), schema, None)
    assert summary.outcomes("age") == {Fate.KEPT: 3, Fate.REFUSED: 2}
    names = summary.names
    assert (names.missing, names.absent, names.unknown) == (("height",), ("gone",), ("job.title",))
    assert summary.is_refused


def test_a_person_column_that_is_not_there_is_told_and_counts_nobody(tmp_path: Path) -> None:
    source = csv_source(Location(url=str(tmp_path)), ROWS, names=("age", "job.title"))
    summary = summarize_encoding(source, PEOPLE, PersonUnit(column="who", max_rows=1))
    assert (summary.kept, summary.names.absent) == (None, ("who",))


def test_a_table_without_a_header_has_nothing_of_its_first_row_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(csv_bytes([], [CANARY, "31", "x"]))
    with pytest.raises(SchemaError) as caught:
        summarize_encoding(CsvSource(kind="csv", path=Location(url=str(tmp_path / "t.csv"))), PEOPLE, None)
    assert CANARY not in str(caught.value)


def test_counts_do_not_show_in_a_repr(tmp_path: Path) -> None:
    summary = summarize_encoding(csv_source(Location(url=str(tmp_path)), ROWS), PEOPLE, None)
    assert repr(summary) == "EncodingSummary()"
    assert np.sum([sum(counts.values()) for counts in summary.fits.values()]) == 10


VISITS = TableSchema.model_validate(
    {
        "name": "visits",
        "columns": [
            {"name": "cost", "kind": "real", "lower": 0, "upper": 1000, "bins": 10, "nullable": True},
            {"name": "weight", "kind": "real", "lower": 0, "upper": 200, "bins": 10},
            {"name": "day", "kind": "date", "lower": "2020-01-01", "upper": "2020-12-31", "unit": "month"},
            {"name": "city", "kind": "categorical", "values": ["Rom", "Wien"], "other": "other"},
            {"name": "rooms", "kind": "integer", "lower": 0, "upper": 9, "nullable": True},
        ],
    }
)


def visits(folder: Path, lines: list[str], **said: object) -> CsvSource:
    (folder / "visits.csv").write_text("\n".join(["cost;weight;day;city;rooms", *lines, ""]), encoding="utf-8")
    path = Location(url=str(folder / "visits.csv"))
    return CsvSource.model_validate({"kind": "csv", "path": path, "delimiter": ";", "batch_rows": 4, **said})


EUROPEAN = ["1,5;70,5;31.12.2020;Rom;3", "20,25;8,5;01.02.2020;Wien;", "3,5;9,5;03.04.2020;Rom;"]


def test_columns_written_in_another_way_than_was_said_are_lost_until_it_is_said(tmp_path: Path) -> None:
    assert lost_columns(visits(tmp_path, EUROPEAN * 5), VISITS) == ["cost", "weight", "day"]
    assert lost_columns(visits(tmp_path, EUROPEAN * 5, decimal=",", dates="%d.%m.%Y"), VISITS) == []


@pytest.mark.parametrize(("bad", "lost"), [(5, []), (6, ["cost"])], ids=["half", "most"])
def test_a_column_is_lost_if_most_of_its_values_are_over_all_batches(tmp_path: Path, bad: int, lost: list[str]) -> None:
    lines = ["1.5;70.5;2020-12-31;Rom;3"] * (10 - bad) + ["1,5;70.5;2020-12-31;Rom;3"] * bad
    assert lost_columns(visits(tmp_path, lines), VISITS) == lost


def test_the_first_rows_alone_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = ["1.5;70.5;2020-12-31;Rom;3"] * 4, ["x;70.5;2020-12-31;Rom;3"] * 40
    monkeypatch.setattr("ppsyn.evaluation.schema_check._FIRST_ROWS", 3)
    assert lost_columns(visits(tmp_path, good + bad), VISITS) == []
    assert lost_columns(visits(tmp_path, bad + good), VISITS) == ["cost"]


def test_a_table_without_rows_has_lost_nothing(tmp_path: Path) -> None:
    assert lost_columns(visits(tmp_path, []), VISITS) == []
