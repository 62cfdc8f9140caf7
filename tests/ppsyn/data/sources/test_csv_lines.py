"""A line of a CSV file is a row, and what it is read as depends on that line alone."""

import csv
import gzip
import itertools
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.private_tables import CANARY, ROWS, SCHEMA, csv_bytes, put

from ppsyn.data.sources import check_source, read_batches
from ppsyn.data.sources import csv_lines as lines
from ppsyn.data.sources.batches import UNREADABLE_LINE
from ppsyn.data.sources.csv import csv_frames
from ppsyn.data.sources.files import find_fragments
from ppsyn.errors import SourceError
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource

Row = tuple[str | None, ...]

PERSON = PersonUnit(column="who", max_rows=1)
NAMES = ["age", "job.title", "who"]

_numbers = itertools.count()


def place_of(files: dict[str, bytes]) -> Location:
    location = Location(url=f"memory://lines-{next(_numbers)}")
    put(location, files)
    return location


def rows_in(body: bytes, fields: int, name: str = "a.csv", **settings: object) -> list[Row]:
    """All rows of a file with columns 0, 1, ... and this text after the header; the last column is the person's."""
    names = [str(number) for number in range(fields)]
    settings = {"delimiter": ",", "nulls": ()} | settings
    data = ",".join(names).encode() + b"\n" + body
    location = place_of({name: gzip.compress(data) if name.endswith(".gz") else data})
    source = CsvSource.model_validate({"kind": "csv", "path": location, **settings})
    (fragment,) = find_fragments(source)
    frames = [frame.astype(object) for frame in csv_frames(fragment, source, names, names[-1] if fields > 1 else None)]
    return [tuple(None if pd.isna(v) else v for v in row) for frame in frames for row in frame.to_numpy().tolist()]


def reference(line: bytes, fields: int, encoding: str, longest: int) -> list[Row]:
    """The row that one line is, by Python's own reader; or no row."""
    if line in {b"", b"\r"} and fields > 1:
        return []
    broken = (UNREADABLE_LINE,) * (fields - 1) + (None if fields > 1 else UNREADABLE_LINE,)
    line = line.removesuffix(b"\r")
    try:
        text = line.decode(encoding)
        found = next(csv.reader([text], strict=True), []) or [""]
    except (UnicodeDecodeError, csv.Error):
        return [broken]
    is_broken = len(found) != fields or b"\0" in line or line.endswith(b"\r") or len(text.encode()) > longest
    return [broken if is_broken else tuple(found)]


def by_reference(body: bytes, fields: int, encoding: str = "utf-8", longest: int = 2**23) -> list[Row]:
    *whole, last = body.split(b"\n")
    each = [*whole, last] if last else whole
    return [row for line in each for row in reference(line, fields, encoding, longest)]


PIECES = [
    b",",
    b'"',
    b'""',
    b"\r",
    b"\n",
    b"\r\n",
    b"\0",
    b"a",
    b" ",
    b"b7",
    b"\xc3\xa9",
    b"\xff",
    b"\x81",
    b"\xef\xbb\xbf",
]
WELL_FORMED = [b"a,b", b'"a","b"', b'"a,""b","\r"', b",", b'"",', b"a\xc3\xa9,b", b'a"b,c', b"\xef\xbb\xbfa,b"]

one_line = st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join) | st.sampled_from(WELL_FORMED)
bodies = st.lists(one_line, max_size=8).map(b"\n".join) | st.binary(max_size=30)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=bodies,
    fields=st.integers(1, 3),
    encoding=st.sampled_from(["utf-8", "latin-1", "cp1252"]),
    block=st.integers(1, 9),
    longest=st.sampled_from([3, 6, 100]),
    name=st.sampled_from(["a.csv", "a.csv.gz"]),
    batch_rows=st.integers(1, 4),
)
@example(body=b'1,"x\n2,y\n3,"z\n', fields=2, encoding="utf-8", block=9, longest=100, name="a.csv", batch_rows=4)
@example(body=b"\xef\xbb\xbfa,b\na,b\r", fields=2, encoding="utf-8", block=4, longest=100, name="a.csv", batch_rows=4)
@example(body=b"a,bcde\r\na,bc\r\n", fields=2, encoding="utf-8", block=1, longest=4, name="a.csv", batch_rows=4)
def test_each_line_is_read_as_it_would_be_alone(
    monkeypatch: pytest.MonkeyPatch,
    *,
    body: bytes,
    fields: int,
    encoding: str,
    block: int,
    longest: int,
    name: str,
    batch_rows: int,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(lines, "BLOCK", block)
        patch.setattr(lines, "LONGEST", longest)
        found = rows_in(body, fields, name, encoding=encoding, batch_rows=batch_rows)
    assert found == by_reference(body, fields, encoding, longest)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([*WELL_FORMED, b"a", b'1,"x', b"\xff,", b""]), min_size=1, max_size=40), st.booleans())
def test_a_block_with_odd_lines_is_read_like_its_lines(several: list[bytes], ends: bool) -> None:
    body = b"\r\n".join(several) + (b"\r\n" if ends else b"")
    assert rows_in(body, 2) == by_reference(body, 2)


def test_a_line_is_the_same_row_wherever_a_block_of_the_usual_size_ends() -> None:
    line, odd = b'12345678,"ab ""c"" d",9\r\n', b'1,"never closed,3\r\n'
    body = (line * 90_000 + odd) * 2 + line
    assert len(body) > 2 * lines.BLOCK
    found = rows_in(body, 3)
    good: Row = ("12345678", 'ab "c" d', "9")
    assert found == ([good] * 90_000 + [(UNREADABLE_LINE, UNREADABLE_LINE, None)]) * 2 + [good]


def test_a_line_of_30_mb_is_one_row_and_takes_no_memory_of_its_own() -> None:
    endless = b"1,2," + CANARY.encode() * 3_000_000
    assert rows_in(b"1,2,3\n" + endless + b"\n4,5,6", 3) == [
        ("1", "2", "3"),
        (UNREADABLE_LINE, UNREADABLE_LINE, None),
        ("4", "5", "6"),
    ]


def test_a_field_that_is_null_by_its_text_is_so_beside_odd_lines() -> None:
    body = b'NA,"NA"\n"x\n,\n'
    assert rows_in(body, 2, nulls=("", "NA")) == [(None, "NA"), (UNREADABLE_LINE, None), (None, None)]


# Damaged lines in a whole table


def test_an_unclosed_quote_takes_no_other_row_along() -> None:
    good = "".join(f"{number % 90},cook,{number}\n" for number in range(1000)).encode()
    location = place_of({"a.csv": b"age,job.title,who\n" + good[:500] + b'1,"x\n' + good[500:]})
    (batch,) = read_batches(CsvSource(kind="csv", path=location), SCHEMA, PERSON)
    assert len(batch.frame) == 1001
    assert batch.unreadable_lines() == 2  # the line was put into the middle of another


def test_a_row_of_a_file_whose_values_hold_newlines_is_read_where_the_source_says_so() -> None:
    location = place_of({"a.csv": b'age,job.title,who\r\n1,"a\r\n""b",7\r\n2,"","c\n"\r\n'})
    (batch,) = read_batches(CsvSource(kind="csv", path=location, newlines_in_values=True), SCHEMA, PERSON)
    assert batch.frame.to_numpy().tolist() == [["1", 'a\r\n"b', "7"], ["2", "", "c\n"]]
    assert rows_in(b'1,"\xe9\n"\n', 2, newlines_in_values=True, encoding="latin-1") == [("1", "é\n")]
    (batch,) = read_batches(CsvSource(kind="csv", path=location), SCHEMA, PERSON)
    assert batch.unreadable_lines() == len(batch.frame) == 4


@pytest.mark.parametrize("body", [b"1\n", b"1,2,3,4\n", b"1,\xff,3\n", b"1,2," + b"x" * 2**24])
def test_a_row_that_cannot_be_read_stops_a_file_whose_values_hold_newlines(body: bytes) -> None:
    location = place_of({"a.csv": b"age,job.title,who\n" + body})
    source = CsvSource(kind="csv", path=location, newlines_in_values=True)
    with pytest.raises(SourceError, match="Expected every row of") as caught:
        list(read_batches(source, SCHEMA, PERSON))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


# Headers


def test_a_header_with_a_carriage_return_inside_is_refused() -> None:
    source = CsvSource(kind="csv", path=place_of({"a.csv": b"age,job.title,who\r1,cook,2\r"}))
    with pytest.raises(SourceError, match=r"lines to end with \\n or \\r\\n"):
        check_source(source, SCHEMA, PERSON)


@pytest.mark.parametrize(("encoding", "is_read"), [("latin-1", True), ("cp1252", True), ("utf-8", False)])
def test_a_header_is_in_the_encoding_of_the_source(encoding: str, is_read: bool) -> None:
    schema = SCHEMA.model_copy(update={"excluded": ("é",)})
    source = CsvSource.model_validate(
        {"kind": "csv", "path": place_of({"a.csv": "age,job.title,é\n".encode("latin-1")}), "encoding": encoding}
    )
    if is_read:
        check_source(source, schema, None)
        return
    with pytest.raises(SourceError, match="a header in utf-8"):
        check_source(source, schema, None)


# Compressed files

WHOLE = csv_bytes(ROWS, NAMES)


def test_compressed_files_are_read_alone_and_in_folders_in_one_or_more_members(tmp_path: Path) -> None:
    several = b"".join(gzip.compress(WHOLE[at : at + 7]) for at in range(0, len(WHOLE), 7))
    for name, data in {"one.csv.gz": gzip.compress(WHOLE), "deep/more.CSV.GZ": several, "c.csv": WHOLE}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "other.gz").write_bytes(b"")
    source = CsvSource(kind="csv", path=Location(url=str(tmp_path)))
    check_source(source, SCHEMA, PERSON)
    found = {Path(b.fragment).name: b.frame.to_numpy().tolist() for b in read_batches(source, SCHEMA, PERSON)}
    assert set(found) == {"one.csv.gz", "more.CSV.GZ", "c.csv"}
    assert len({str(rows) for rows in found.values()}) == 1
    single = CsvSource(kind="csv", path=Location(url=str(tmp_path / "one.csv.gz")))
    assert len([row for batch in read_batches(single, SCHEMA, PERSON) for row in batch.frame.index]) == len(ROWS)


def _damaged() -> dict[str, bytes]:
    data = gzip.compress(WHOLE, mtime=0)
    changed = bytearray(data)
    changed[-6] ^= 1  # its checksum
    return {
        "cut": data[:-9],
        "cut in the checksum": data[:-2],
        "changed": bytes(changed),
        "a second member cut": data + data[:20],
        "something after it": data + b"age\n",
        "torn": data[:30] + bytes(10) + data[40:],
    }


@pytest.mark.parametrize("name", _damaged())
def test_a_damaged_member_is_a_file_that_cannot_be_read(name: str) -> None:
    source = CsvSource(kind="csv", path=place_of({"a.csv.gz": _damaged()[name]}))
    with pytest.raises(SourceError) as caught:
        list(read_batches(source, SCHEMA, PERSON))
    assert str(caught.value) == (
        f"Expected {source.path.url}/a.csv.gz to be readable to its end. See that it is there, whole, and may be read."
    )
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_file_that_is_not_compressed_is_told_by_its_name() -> None:
    source = CsvSource(kind="csv", path=place_of({"a.csv.gz": WHOLE}))
    with pytest.raises(SourceError, match=r"a\.csv\.gz to be readable"):
        check_source(source, SCHEMA, PERSON)
