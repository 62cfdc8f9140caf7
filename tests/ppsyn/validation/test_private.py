import logging
import socket
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import columns, raw_values

from ppsyn.data.encoding import encode, encode_marked
from ppsyn.errors import DomainRefusedError, InvariantError, SourceError
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.table import TableSchema
from ppsyn.validation import check_codes, check_columns, engine, private
from ppsyn.validation.engine import Expectation, judge

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
        check_codes(encode_marked(frame, SCHEMA), SCHEMA)
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
            check_codes(encode_marked(frame, schema), schema)
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


def test_the_largest_code_passes_and_the_next_does_not() -> None:
    codes = {"free": np.zeros(1, np.int32), "strict": np.array([2], np.int32), "number": np.array([9], np.int32)}
    check_codes(codes, SCHEMA)
    with pytest.raises(DomainRefusedError, match="'number'"):
        check_codes(codes | {"number": np.array([10], np.int32)}, SCHEMA)


@pytest.mark.parametrize("names", [["free", "strict"], ["free", "strict", "number", "more"], ["free", "strict", "x"]])
def test_a_batch_with_other_columns_is_refused(names: list[str]) -> None:
    check_columns(frame_of(3), ["number", "free", "strict"], "the query")
    with pytest.raises(SourceError, match="in the query, and no other"):
        check_columns(frame_of(3), names, "the query")


def test_a_check_that_cannot_be_carried_out_is_not_taken_for_a_verdict() -> None:
    unknown = Expectation("expect_column_values_to_be_between", CANARY, {"min_value": 0, "max_value": 1})
    assert [verdict.was_carried_out for verdict in judge(frame_of(2), [unknown])] == [False]
    with pytest.raises(InvariantError):
        private._pass(frame_of(2), [unknown])


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
    engine._asset.cache_clear()
    frame = frame_of(6131, strict=CANARY, free=CANARY)
    with pytest.raises(DomainRefusedError) as caught:
        check_codes(encode_marked(frame, SCHEMA), SCHEMA)
    check_columns(frame, list(frame.columns), "the query")
    told = "".join(traceback.format_exception(caught.value)) + caplog.text + "".join(capfd.readouterr())
    for secret in (CANARY, "6131", "6130", str(6131 // 2)):
        assert secret not in told
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert list(tmp_path.iterdir()) == []
