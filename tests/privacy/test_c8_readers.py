"""Claim C8, from the source on: what one row is read as depends on no other row, and changing it changes no other."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from support.private_tables import SCHEMA, put, sqlite_source

from ppsyn.data.encoding import encode, encode_marked
from ppsyn.data.encoding.parsing import Fit
from ppsyn.data.encoding.table import Fate, fate_of
from ppsyn.data.ingest import encoded_batches, ingest
from ppsyn.data.snapshot import Fragment, Shelf, open_snapshot, read_codes, read_contents
from ppsyn.data.sources import read_batches
from ppsyn.domain import domain_of
from ppsyn.errors import DomainRefusedError, SourceError
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource, ParquetSource, Source
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store

Row: TypeAlias = tuple[object, ...]
Read: TypeAlias = Callable[[Sequence[bytes]], list[Row]]

PERSON = PersonUnit(column="who", max_rows=2)
LINES = [b"31,cook,1", b'"44","nurse",2', b",,", b'"1", "x",3', b"200,clown,3", b"7,cook,"]
BROKEN = [b'1,"x,2', b"1,2", b"1,2,3,4", b'1,"a"b,3', b"\xff,cook,1", b"1,\0,2", b"1,a\rb,2", b'"']
each_line = st.sampled_from([*LINES, *BROKEN, b""]) | st.binary(max_size=9).map(lambda line: line.replace(b"\n", b""))

_numbers = itertools.count()


def memory() -> Location:
    return Location(url=f"memory://c8-readers-{next(_numbers)}")


def rows_of(source: Source, schema: TableSchema = SCHEMA) -> list[Row]:
    """The codes of each row, and whose it is."""
    rows: list[Row] = []
    for batch in read_batches(source, schema, PERSON):
        codes = encode_marked(batch.frame, schema)
        owners = [None if pd.isna(who) else who for who in batch.frame["who"].astype(object)]
        rows += zip(*(column.tolist() for column in codes.values()), owners, strict=True)
    return rows


def csv_of(lines: Sequence[bytes], **settings: object) -> CsvSource:
    place = memory()
    put(place, {"a.csv": b"\n".join([b"age,job.title,who", *lines]) + b"\n"})
    return CsvSource.model_validate({"kind": "csv", "path": place, "batch_rows": 3, **settings})


def read_lines(lines: Sequence[bytes]) -> list[Row]:
    return rows_of(csv_of(lines))


def read_newlines(lines: Sequence[bytes]) -> list[Row]:
    """A wrong way, unless the file is well formed: quotes reach over the ends of lines."""
    return rows_of(csv_of(lines, newlines_in_values=True))


def moves_itself_alone(read: Read, lines: Sequence[bytes], place: int, other: bytes) -> bool:
    """Whether adding, removing or changing the line at a place does that to its own row and to no other."""
    before, own, rest = read(lines[:place]), read(lines[place : place + 1]), read(lines[place + 1 :])
    changed, added = [*lines[:place], other, *lines[place + 1 :]], [*lines[:place], other, *lines[place:]]
    return (
        max(len(own), len(read([other]))) <= 1
        and read(lines) == before + own + rest
        and read([*lines[:place], *lines[place + 1 :]]) == before + rest
        and read(changed) == before + read([other]) + rest
        and read(added) == before + read([other]) + own + rest
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(each_line, min_size=1, max_size=8), st.data(), each_line)
def test_c8_a_line_of_a_csv_file_moves_its_own_row_alone(lines: list[bytes], data: st.DataObject, other: bytes) -> None:
    assert moves_itself_alone(read_lines, lines, data.draw(st.integers(0, len(lines) - 1)), other)


def test_c8_a_reader_whose_quotes_reach_over_lines_is_caught() -> None:
    lines = [LINES[0], b'1,"x', b"44,nurse,2", b'2,y",3', LINES[0]]
    with_it, without_it = read_newlines(lines), read_newlines([*lines[:1], *lines[2:]])
    assert (len(with_it), len(without_it)) == (3, 4)
    assert sum((Counter(without_it) - Counter(with_it)).values()) > 1
    assert moves_itself_alone(read_lines, lines, 1, LINES[0])


@pytest.mark.parametrize("line", BROKEN)
def test_c8_every_column_of_a_line_that_cannot_be_read_gets_its_policy(line: bytes) -> None:
    policies = [
        {"kind": "integer", "lower": 0, "upper": 9},
        {"kind": "real", "lower": 0, "upper": 9, "bins": 3, "nullable": True},
        {"kind": "integer", "lower": 0, "upper": 9, "other": 4, "outside": "other"},
        {"kind": "categorical", "values": ["x"], "other": "z"},
        {"kind": "boolean", "nullable": True},
        {"kind": "date", "lower": "2020-01-01", "upper": "2020-01-09", "unit": "day", "nullable": True},
        {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-01-09", "unit": "day"},
    ]
    for policy in policies:
        schema = TableSchema.model_validate(
            {"name": "t", "columns": [policy | {"name": "age"}], "excluded": ["job.title", "who"]}
        )
        (column,) = schema.columns
        fit = Fit.OUTSIDE if policy["kind"] in {"categorical", "boolean"} else Fit.MISFIT
        targets = {Fate.OTHER: column.other_code, Fate.NULL: column.null_code, Fate.FIRST: 0}
        assert rows_of(csv_of([line]), schema) == [(targets[fate_of(fit, column)], None)]
        refusing = TableSchema.model_validate(
            {"name": "t", "columns": [policy | {"name": "age", "outside": "refuse"}], "excluded": ["job.title", "who"]}
        )
        with pytest.raises(DomainRefusedError, match="'age'"):
            list(encoded_batches(csv_of([line]), refusing, PERSON))


@pytest.mark.parametrize("broken", [0, 1, 5, 50])
def test_c8_all_lines_that_cannot_be_read_are_one_person_together(broken: int) -> None:
    store, good = open_store(memory()), [b"31,cook,1", b"32,cook,2", b"33,cook,2", b"34,cook,2"]
    lines = [*good[:2], *(BROKEN * 7)[:broken], *good[2:]]
    ingest(csv_of(lines), SCHEMA, PERSON, store, "private")
    shelf, domain = Shelf(store, "private"), domain_of(SCHEMA)
    kept = sum(read_codes(shelf, part, domain)["age"].size for part in read_contents(shelf).fragments)
    assert kept == 3 + min(broken, PERSON.max_rows)


def test_c8_a_broken_line_in_a_folder_named_by_a_person_is_that_persons() -> None:
    place = memory()
    put(place, {f"who={who}/a.csv": b"age,job.title\n1,cook\n" + b'1,"x\n' * 3 for who in (1, 2)})
    source = CsvSource(kind="csv", path=place)
    assert Counter(row[-1] for row in rows_of(source)) == {"1": 4, "2": 4}


# Tables of values

VALUES: list[Row] = [
    (31, "cook", 1),
    (None, None, None),
    (200, "clown", 2),
    (0, "", 2),
    (-(2**62), "nurse", 3),
]
values = st.lists(st.sampled_from(VALUES), min_size=1, max_size=9)


def record(row: Row) -> dict[str, object]:
    return dict(zip(("age", "job.title", "who"), row, strict=True))


def parquet_of(rows: Sequence[Row], kinds: Sequence[pa.DataType], group: int, *, has_dictionary: bool) -> Source:
    sink, place = pa.BufferOutputStream(), memory()
    fields = zip(("age", "job.title", "who"), kinds, strict=True)
    columns = {name: pa.array([record(row)[name] for row in rows], kind) for name, kind in fields}
    parquet.write_table(pa.table(columns), sink, row_group_size=group, use_dictionary=has_dictionary)
    put(place, {"a.parquet": sink.getvalue().to_pybytes()})
    return ParquetSource(kind="parquet", path=place, batch_rows=2)


def each_alone(rows: Sequence[Row]) -> list[Row]:
    """The codes of every row, encoded by itself as plain objects, and whose it is."""
    found: list[Row] = []
    for row in rows:
        frame = pd.DataFrame({name: pd.Series([value], dtype=object) for name, value in record(row).items()})
        found.append((*(int(column[0]) for column in encode_marked(frame, SCHEMA).values()), row[-1]))
    return found


@settings(max_examples=80, deadline=None)
@given(
    values,
    st.sampled_from([pa.int64(), pa.dictionary(pa.int8(), pa.int64()), pa.decimal128(25, 1)]),
    st.sampled_from([pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.string_view()]),
    st.integers(1, 4),
    st.booleans(),
)
def test_c8_a_row_of_a_parquet_file_is_read_as_it_would_be_alone(
    rows: list[Row], number: pa.DataType, text: pa.DataType, group: int, has_dictionary: bool
) -> None:
    kinds = (number, text, pa.int64())
    assert rows_of(parquet_of(rows, kinds, group, has_dictionary=has_dictionary)) == each_alone(rows)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values)
def test_c8_a_row_of_a_query_is_read_as_it_would_be_alone(tmp_path: Path, rows: list[Row]) -> None:
    assert rows_of(sqlite_source(tmp_path, [record(row) for row in rows])) == each_alone(rows)


@settings(max_examples=80, deadline=None)
@given(values, st.sampled_from(["object", "Int64", "int64[pyarrow]"]), st.data())
def test_c8_a_row_of_a_dataframe_is_encoded_as_it_would_be_alone_whatever_the_index(
    rows: list[Row], dtype: str, data: st.DataObject
) -> None:
    labels = data.draw(st.lists(st.sampled_from(["x", 0, None]), min_size=len(rows), max_size=len(rows)))
    columns = list(zip(*rows, strict=True))
    frame = pd.DataFrame(
        {
            "age": pd.Series(columns[0], dtype=dtype),
            "job.title": pd.Series(columns[1], dtype=object),
            "who": pd.Series(columns[2], dtype=object),
        }
    )
    frame.index = pd.Index(labels, dtype=object)
    found = encode(frame, SCHEMA).columns
    expected = np.array([row[:-1] for row in each_alone(rows)])
    assert np.array_equal(np.column_stack(list(found.values())), expected)


# Copies


def test_c8_copies_of_a_table_that_two_processes_make_at_once_are_never_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each process chooses other rows of the nine persons, one of five: together they could be two.
    lines = [f"{who},cook,{who}".encode() for _ in range(5) for who in range(9)]
    person, write, outcomes = PersonUnit(column="who", max_rows=1), Shelf.write, Counter[str]()
    for turn in range(1, 32):
        store, writes = open_store(memory()), itertools.count(1)

        def written(shelf: Shelf, name: str, data: bytes) -> Fragment:
            done = write(shelf, name, data)
            if next(writes) == turn:  # noqa: B023  # it is called within the turn
                ingest(csv_of(lines, batch_rows=3), SCHEMA, person, shelf.store, "private")
            return done

        monkeypatch.setattr(Shelf, "write", written)
        with suppress(SourceError):
            ingest(csv_of(lines, batch_rows=3), SCHEMA, person, store, "private")
        try:
            (counts,) = open_snapshot(Shelf(store, "private"), SCHEMA).count([("age",)])
        except SourceError:
            outcomes["refused"] += 1
            continue
        assert counts[:9].tolist() == [1] * 9
        outcomes["whole"] += 1
    assert outcomes.keys() == {"refused", "whole"}
