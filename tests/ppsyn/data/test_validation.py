import logging
import socket
import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import columns, raw_values

from ppsyn.data import validation
from ppsyn.data.encoding import check_refusals, encode, encode_marked
from ppsyn.data.ingest import ingest
from ppsyn.data.validation import CodeRanges, Expectation, Verdict, judge
from ppsyn.errors import DomainRefusedError, InvariantError
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store

CANARY = "canary-7f3a"

SCHEMA = TableSchema.model_validate(
    {
        "name": "t",
        "columns": [
            {"name": "free", "kind": "categorical", "values": ["x"], "other": "x"},
            {"name": "strict", "kind": "categorical", "values": ["x", "y"], "outside": "refuse", "nullable": True},
            {"name": "number", "kind": "integer", "lower": 0, "upper": 9, "outside": "refuse"},
        ],
    }
)


def frame_of(rows: int, **faults: object) -> pd.DataFrame:
    """A good table, but for a value in the middle of some columns."""
    frame = pd.DataFrame({"free": ["x"] * rows, "strict": ["y"] * rows, "number": [3] * rows}).astype(object)
    for name, value in faults.items():
        frame.loc[rows // 2, name] = value
    return frame


def refusal(frame: pd.DataFrame) -> tuple[str, str] | None:
    """What is refused about a table, if anything."""
    try:
        check_refusals(encode_marked(frame, SCHEMA), SCHEMA)
    except DomainRefusedError as error:
        return error.column, str(error)
    return None


@pytest.mark.parametrize(
    ("faults", "column"),
    [
        ({}, None),
        ({"free": CANARY}, None),
        ({"strict": None}, None),
        ({"strict": CANARY}, "strict"),
        ({"number": CANARY}, "number"),
        ({"number": 10}, "number"),
        ({"number": None}, "number"),
        ({"number": 10, "strict": "z"}, "strict"),
    ],
)
def test_a_refused_value_is_found_and_told_by_column_and_rule(faults: dict[str, object], column: str | None) -> None:
    found = refusal(frame_of(7, **faults))
    assert (found and found[0]) == column
    if found:
        with pytest.raises(DomainRefusedError) as caught:
            encode(frame_of(7, **faults), SCHEMA)
        assert (caught.value.column, str(caught.value)) == found


@settings(max_examples=60, deadline=None)
@given(columns(), st.lists(raw_values, max_size=6), st.integers(0, 6))
def test_the_verdict_over_batches_is_that_on_the_whole(column: ColumnSchema, values: list[object], cut: int) -> None:
    schema = TableSchema(name="t", columns=(column,))

    def is_refused(part: list[object]) -> bool:
        frame = pd.DataFrame({"a": pd.Series(part, dtype=object)})
        try:
            check_refusals(encode_marked(frame, schema), schema)
        except DomainRefusedError:
            return True
        return False

    def is_refused_by_encode() -> bool:
        try:
            encode(pd.DataFrame({"a": pd.Series(values, dtype=object)}), schema)
        except DomainRefusedError:
            return True
        return False

    whole = is_refused(values)
    assert whole == (is_refused(values[:cut]) or is_refused(values[cut:]))
    assert whole == is_refused_by_encode()


def validated(*batches: dict[str, list[int]], schema: TableSchema = SCHEMA) -> None:
    """Validate what was ingested in these batches of codes."""
    ranges = CodeRanges(schema)
    for codes in batches:
        ranges.add({name: np.array(column, np.int32) for name, column in codes.items()})
    ranges.check()


GOOD = {"free": [0, 0], "strict": [0, 2], "number": [9, 0]}


@pytest.mark.parametrize(
    "batches", [(), ({name: [] for name in GOOD},), (GOOD,), (GOOD, {name: [] for name in GOOD}, GOOD)]
)
def test_codes_in_their_ranges_pass(batches: tuple[dict[str, list[int]], ...]) -> None:
    validated(*batches)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize(
    ("bad", "column"),
    [
        ({"number": [3, 10]}, "number"),
        ({"number": [-1, 3]}, "number"),
        ({"strict": [3, 0]}, "strict"),
        ({"number": [10, 0], "strict": [0, 3]}, "strict"),
        ({"free": [0, 1], "number": [-1, 0]}, "free"),
    ],
)
def test_a_code_out_of_its_range_is_refused_in_whatever_batch_it_is(
    at: int, bad: dict[str, list[int]], column: str
) -> None:
    batches = [GOOD, GOOD, GOOD]
    batches[at] = GOOD | bad
    with pytest.raises(DomainRefusedError) as caught:
        validated(*batches)
    assert caught.value.column == column
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize("names", [["free", "strict"], ["free", "strict", "number", "more"], ["free", "strict", "x"]])
def test_a_table_of_other_attributes_is_a_defect(names: list[str]) -> None:
    with pytest.raises(InvariantError):
        validated({name: [0] for name in names})


def test_great_expectations_is_run_once_however_many_batches_there_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls, run = list[int](), validation.judge

    def counted(frame: pd.DataFrame, expectations: Sequence[Expectation]) -> list[Verdict]:
        calls.append(len(frame))
        return run(frame, expectations)

    monkeypatch.setattr(validation, "judge", counted)
    (tmp_path / "t.csv").write_text("free,strict,number\n" + "x,y,3\n" * 10)
    source = CsvSource(kind="csv", path=Location(url=str(tmp_path / "t.csv")), batch_rows=3)
    ingest(source, SCHEMA, None, open_store(Location(url=str(tmp_path / "store"))), "private")
    assert calls == [2]


def test_nothing_of_the_ranges_is_shown() -> None:
    ranges = CodeRanges(SCHEMA)
    ranges.add({"number": np.array([7], np.int32)})
    assert repr(ranges) == "CodeRanges()"


def test_a_check_that_cannot_be_carried_out_is_not_taken_for_a_verdict() -> None:
    unknown = Expectation("expect_column_values_to_be_between", CANARY, {"min_value": 0, "max_value": 1})
    assert [verdict.was_carried_out for verdict in judge(frame_of(2), [unknown])] == [False]


def test_a_validation_that_cannot_be_carried_out_stops_the_ingestion(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Verdict(success=True, was_carried_out=False)
    monkeypatch.setattr(validation, "judge", lambda _, expectations: [failed] * len(expectations))
    with pytest.raises(InvariantError):
        validated(GOOD)


def test_nothing_of_the_table_is_told_written_or_sent(
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no network")

    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", refuse)
    validation._asset.cache_clear()
    frame = frame_of(6131, strict=CANARY, free=CANARY)
    with pytest.raises(DomainRefusedError) as caught:
        check_refusals(encode_marked(frame, SCHEMA), SCHEMA)
    with pytest.raises(DomainRefusedError):
        validated({"free": [0], "strict": [6131], "number": [0]})
    told = "".join(traceback.format_exception(caught.value)) + caplog.text + "".join(capfd.readouterr())
    for secret in (CANARY, "6131", "6130", str(6131 // 2)):
        assert secret not in told
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert list(tmp_path.iterdir()) == []
