"""Numbers, dates and truth values as a CSV source says that they are written."""

import itertools
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.private_tables import put

from ppsyn.data.encoding import encode_marked
from ppsyn.data.encoding.parsing import Fit
from ppsyn.data.encoding.table import place_column
from ppsyn.data.sources import read_batches
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource, load_release
from ppsyn.schemas.table import TableSchema

_numbers = itertools.count()

REAL = {"kind": "real", "lower": -2000, "upper": 2000, "bins": 400}
WHOLE = {"kind": "integer", "lower": -1500, "upper": 1500}
DAY = {"kind": "date", "lower": "1990-01-01", "upper": "2030-12-31", "unit": "day"}
MOMENT = {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-12-31", "unit": "hour", "timezone": "Europe/Berlin"}
TRUTH = {"kind": "boolean", "nullable": True}
WORDS = {"kind": "categorical", "values": ["1.000", "ja", "01.02.2020"], "nullable": True}


def source_of(texts: list[str], encoding: str = "utf-8", **settings: object) -> CsvSource:
    place = Location(url=f"memory://writing-{next(_numbers)}")
    put(place, {"a.csv": "\n".join(["a;b", *(f"{text};x" for text in texts)]).encode(encoding)})
    return CsvSource.model_validate({"kind": "csv", "path": place, "delimiter": ";", "encoding": encoding, **settings})


def read(column: dict[str, object], texts: list[str], **settings: object) -> list[tuple[int, Fit]]:
    """The code of each text, and how it fits."""
    schema = TableSchema.model_validate({"name": "t", "columns": [column | {"name": "a"}], "excluded": ["b"]})
    (batch,) = read_batches(source_of(texts, **settings), schema, None)  # type: ignore[arg-type]
    placed = place_column(batch.frame["a"], schema.columns[0])
    codes = encode_marked(batch.frame, schema)["a"]
    return [(int(code), Fit(fit)) for code, fit in zip(codes, placed.fits, strict=True)]


def fits(column: dict[str, object], texts: list[str], **settings: object) -> list[Fit]:
    return [fit for _, fit in read(column, texts, **settings)]


def column_of(fields: dict[str, object]) -> ColumnSchema:
    return TableSchema.model_validate({"name": "t", "columns": [fields | {"name": "a"}]}).columns[0]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(-250_000, 250_000), min_size=1, max_size=5),
    st.sampled_from([(",", "."), (",", " "), (".", ","), (".", "'"), (",", None)]),
    st.sampled_from(["", " ", "+"]),
)
def test_a_number_is_the_same_with_any_marks(hundredths: list[int], marks: tuple[str, str | None], before: str) -> None:
    decimal, thousands = marks
    plain = [f"{number / 100:.2f}" for number in hundredths]
    grouped = [f"{number / 100:,.2f}" for number in hundredths]
    table = str.maketrans({",": thousands or "", ".": decimal})
    written = [(before if not text.startswith("-") else "") + text.translate(table) for text in grouped]
    told = {"decimal": decimal, "thousands": thousands}
    assert read(REAL, written, **told) == read(REAL, plain)
    assert read(WHOLE, written, **told) == read(WHOLE, plain)


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        ("1.234,5", Fit.INSIDE),
        ("1234,5", Fit.INSIDE),
        (",5", Fit.INSIDE),
        ("1,5e2", Fit.INSIDE),
        ("-1.000", Fit.INSIDE),
        ("1.5", Fit.MISFIT),
        ("12.34,5", Fit.MISFIT),
        ("1.2345", Fit.MISFIT),
        ("1,2,3", Fit.MISFIT),
        (",", Fit.MISFIT),
        ("abc", Fit.MISFIT),
        ("", Fit.NULL),
        ("inf", Fit.OUTSIDE),
    ],
)
def test_a_number_that_is_written_in_another_way_fits_no_domain(text: str, fit: Fit) -> None:
    assert fits(REAL, [text, "1"], decimal=",", thousands=".") == [fit, Fit.INSIDE]


def test_a_space_between_digits_may_be_one_that_breaks_no_line() -> None:
    texts = ["1 234,5", "1\u00a0234,5", "1\u202f234,5"]
    assert len(set(read(REAL, texts, decimal=",", thousands=" "))) == 1
    assert fits(REAL, ["1\u2019234.5", "1'234.5"], thousands="'") == [Fit.INSIDE] * 2


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.dates(date(1990, 1, 1), date(2030, 12, 31)), min_size=1, max_size=4),
    st.sampled_from(["%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d-%b-%Y", "%d %B %Y", "%Y-%j", "%y-%m-%d", "%d.%m.%Y %H:%M"]),
)
def test_a_date_is_the_same_in_any_form(days: list[date], form: str) -> None:
    assert read(DAY, [day.strftime(form) for day in days], dates=form) == read(DAY, [day.isoformat() for day in days])


def test_a_moment_is_the_same_in_any_form_local_or_with_an_offset() -> None:
    moments = [datetime(2020, 3, 29, 2, 30), datetime(2020, 10, 25, 2, 30), datetime(2020, 7, 1, 23)]
    plain = read(MOMENT, [moment.isoformat() for moment in moments])
    assert read(MOMENT, [f"{moment:%d.%m.%Y %H:%M}" for moment in moments], datetimes="%d.%m.%Y %H:%M") == plain
    aware = [moment.replace(tzinfo=UTC) for moment in moments]
    form = "%m/%d/%Y %I:%M:%S %p %z"
    expected = read(MOMENT, [moment.isoformat() for moment in aware])
    assert read(MOMENT, [moment.strftime(form) for moment in aware], datetimes=form) == expected


@pytest.mark.parametrize("text", ["2020-12-31", "31.13.2020", "31.12.20", "31.12.2020 x", "31/12/2020", "30.02.2020"])
def test_a_date_that_is_written_in_another_way_fits_no_domain(text: str) -> None:
    assert fits(DAY, [text, "31.12.2020", ""], dates="%d.%m.%Y") == [Fit.MISFIT, Fit.INSIDE, Fit.NULL]


def test_words_for_true_and_false_are_read_beside_the_usual_ones() -> None:
    texts = ["ja", "nein", "true", "0", "JA", ""]
    found = read(TRUTH, texts, trues=["ja"], falses=["nein"])
    assert [code for code, _ in found] == [1, 0, 1, 0, 2, 2]
    assert [fit for _, fit in found][-2:] == [Fit.OUTSIDE, Fit.NULL]


def test_text_is_left_as_it_is() -> None:
    told = {"decimal": ",", "thousands": ".", "dates": "%d.%m.%Y", "trues": ["ja"], "falses": ["nein"]}
    assert [code for code, _ in read(WORDS, ["1.000", "ja", "01.02.2020", "1000"], **told)] == [0, 1, 2, 3]


@pytest.mark.parametrize(("kind", "fit"), [(REAL, Fit.MISFIT), (DAY, Fit.MISFIT), (TRUTH, Fit.OUTSIDE)])
def test_a_line_that_cannot_be_read_is_one_whatever_is_written(kind: dict[str, object], fit: Fit) -> None:
    schema = TableSchema.model_validate({"name": "t", "columns": [kind | {"name": "a"}], "excluded": ["b"]})
    told = {"decimal": ",", "thousands": ".", "dates": "%d.%m.%Y", "trues": ["ja"], "falses": ["nein"]}
    (batch,) = read_batches(source_of(['"x', "nothing"], **told), schema, None)  # type: ignore[arg-type]
    assert batch.unreadable_lines() == 1
    assert place_column(batch.frame["a"], schema.columns[0]).fits[0] == fit


def test_windows_and_latin_text_is_read_in_its_encoding() -> None:
    column = {"kind": "categorical", "values": ["Zoë", "€"], "nullable": True}
    assert [code for code, _ in read(column, ["Zoë", "€"], encoding="cp1252")] == [0, 1]
    assert [code for code, _ in read(column, ["Zoë"], encoding="latin-1")] == [0]


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ("thousands=.", "another mark than decimal"),
        ("decimal=;", "decimal"),
        ("dates='%d.%m'", "year, month and day"),
        ("dates='%d.%m.%Y %Z'", "made of"),
        ("datetimes='%x'", "made of"),
        ("dates='no form'", "year, month and day"),
        ("trues=[yes]", "put it in quotes"),
        ("{trues: [a], falses: [a]}", "both trues and falses"),
        ("encoding=utf-16", "encoding"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(setting: str, rule: str, tmp_path: Path) -> None:
    file = tmp_path / "release.yaml"
    text = "dataset: d\nsource: {kind: csv, path: t.csv}\nschema: s.yaml\nprivacy: {rho: 0.1}\nstores: {root: out}\n"
    file.write_text(text, encoding="utf-8")
    given_settings = ["source.trues=[a]", "source.falses=[a]"] if setting.startswith("{") else [f"source.{setting}"]
    with pytest.raises(ValueError, match=rule):
        load_release(file, given_settings)


def test_forms_are_checked_when_a_source_is_made() -> None:
    with pytest.raises(ValidationError):
        CsvSource(kind="csv", path=Location(url="memory://x"), dates="%Y")
