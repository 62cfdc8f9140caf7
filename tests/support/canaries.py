"""Private values that occur nowhere else, and a search for them in everything that a release leaves behind.

A canary is a text or a number of a private table. The search knows the ways in which a value may be written, and
looks into containers whose bytes do not show what they hold: Parquet, npz, gzip, SQLite, JSON.
"""

import base64
import gzip
import importlib
import io
import json
import re
import shutil
import sqlite3
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from pyarrow import parquet

_UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class Canary:
    """A private value, with all the ways in which bytes may hold it."""

    name: str
    needles: tuple[bytes, ...]
    number: int | float | None = None
    """If it is a number: a column or an array may hold it."""
    words: re.Pattern[bytes] | None = None
    """For a number of few digits, which must not be part of a longer one, of a fraction or of an id."""


def text_canary(text: str) -> Canary:
    """A text that is long and odd enough never to occur by chance."""
    plain = [text, json.dumps(text)[1:-1], ascii(text)[1:-1], repr(text)[1:-1], quote(text)]
    written = {part.encode() for part in plain}
    encoded = [text.encode(name) for name in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le")]
    packed = [form for data in encoded for form in (data, *_base64(data), *_hex(data))]
    return Canary(text, tuple(sorted({*written, *packed})))


def number_canary(number: int | float) -> Canary:
    """A number of so many digits that neither its text nor its eight bytes occur by chance."""
    texts = [repr(number), f"{Decimal(number):f}", f"{number:,}", f"{number:_}"]
    layouts = ["<d", ">d"] + (["<q", ">q"] if isinstance(number, int) else [])
    raw = [struct.pack(layout, number) for layout in layouts]
    packed = [form for data in raw for form in (data, *_base64(data)[:1], *_hex(data))]
    return Canary(repr(number), tuple(sorted({*(text.encode() for text in texts), *packed})), number)


def count_canary(count: int) -> Canary:
    """A count of rows: few digits, so it is looked for as a whole number only."""
    forms = "|".join(re.escape(form) for form in (f"{count}", f"{count:,}", f"{count:_}"))
    words = re.compile(rb"(?<![\w.,-])(?:" + forms.encode() + rb")(?![\w]|[.,]\d)")
    return Canary(f"the count {count}", (), count, words)


def _base64(data: bytes) -> list[bytes]:
    """As it is written at each of the three places where it may begin, without the ends that depend on neighbours."""
    return [
        base64.b64encode(bytes(shift) + data + bytes(2))[start:][: len(data) * 4 // 3 - 2]
        for shift, start in ((0, 0), (1, 2), (2, 3))
    ]


def _hex(data: bytes) -> list[bytes]:
    return [data.hex().encode(), data.hex().upper().encode()]


def search(name: str, data: bytes, canaries: Iterable[Canary]) -> list[str]:
    """Where in some bytes, or in what they contain, which canaries are."""
    known = list(canaries)
    found: list[str] = []
    for where, content in contents(name, data):
        found += [f"{canary.name!r} in {where}" for canary in known if _holds(content, canary)]
    return found


def _holds(content: "bytes | np.ndarray", canary: Canary) -> bool:
    if isinstance(content, np.ndarray):
        return canary.number is not None and bool((content == canary.number).any())
    if canary.words is not None:
        return canary.words.search(_UUID.sub(b" ", content)) is not None
    return any(needle in content for needle in canary.needles)


def contents(name: str, data: bytes) -> Iterator[tuple[str, "bytes | np.ndarray"]]:
    """The bytes themselves, and what is in them if they are a container: bytes and arrays of numbers, by name."""
    yield name, data
    try:
        for inner, content in _inside(data):
            where = f"{name} > {inner}"
            if isinstance(content, np.ndarray):
                yield where, content
                yield where, content.tobytes()
            else:
                yield from contents(where, content)
    except (ValueError, OSError, zlib.error, zipfile.BadZipFile, pa.ArrowException, sqlite3.Error, EOFError):
        return  # it only looks like one; its bytes were searched


def _inside(data: bytes) -> Iterator[tuple[str, "bytes | np.ndarray"]]:
    if data.startswith(b"PAR1"):
        yield from _parquet(data)
    elif data.startswith(b"PK\x03\x04"):
        yield from _archive(data)
    elif data.startswith(b"\x1f\x8b"):
        yield "gzip", gzip.decompress(data)
    elif data.startswith(b"\x93NUMPY"):
        yield "array", np.load(io.BytesIO(data), allow_pickle=False)
    elif data.startswith(_SQLITE):
        yield from _sqlite(data)
    elif data.lstrip()[:1] in (b"{", b"["):
        texts = list(_leaves(json.loads(data)))
        yield "json", "\n".join(texts).encode("utf-8", "surrogatepass")
        for text in texts:
            if text.lstrip()[:1] in ("{", "["):
                yield "json", text.encode("utf-8", "surrogatepass")


def _leaves(document: object) -> Iterator[str]:
    """The names and values of a JSON document, as text."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield name
            yield from _leaves(value)
    elif isinstance(document, list):
        for value in document:
            yield from _leaves(value)
    else:
        yield document if isinstance(document, str) else json.dumps(document)


def _parquet(data: bytes) -> Iterator[tuple[str, "bytes | np.ndarray"]]:
    file = parquet.ParquetFile(io.BytesIO(data))
    yield "footer", f"{file.metadata.to_dict()} {file.schema} {file.schema_arrow.metadata}".encode()
    yield "number of rows", np.array([file.metadata.num_rows])
    table = file.read()
    for column in table.column_names:
        values = table[column].combine_chunks()
        while pa.types.is_list(values.type):
            values = values.flatten()
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            yield f"column {column}", values.drop_null().to_numpy(zero_copy_only=False)
        yield f"column {column} as text", "\n".join(map(str, values.to_pylist())).encode()


def _archive(data: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.namelist():
            yield member, archive.read(member)


def _sqlite(data: bytes) -> Iterator[tuple[str, bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy.db"
        path.write_bytes(data)
        yield from sqlite_contents(path)


def sqlite_contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Every value of every row, as text, with the write-ahead log taken in. A value on several pages is whole here."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    try:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            rows = connection.execute(f'SELECT * FROM "{table.decode()}"')
            names = [column[0] for column in rows.description]
            for row in rows:
                for column, value in zip(names, row, strict=True):
                    if value is not None:
                        plain = value if isinstance(value, bytes) else str(value).encode()
                        yield f"{table.decode()}.{column}", plain
    finally:
        connection.close()


def search_all(places: Mapping[str, bytes], canaries: Iterable[Canary]) -> list[str]:
    """Where in any of these which canaries are."""
    known = list(canaries)
    return [found for name, data in places.items() for found in search(name, data, known)]


def search_server(folder: Path, canaries: Iterable[Canary]) -> list[str]:
    """Where in the folder of a Prefect server: its logs, its database's files as bytes, and every value of its rows."""
    known = list(canaries)
    texts = [canary for canary in known if canary.words is None]
    found: list[str] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        is_database = path.name.startswith("prefect.db")
        # Pages of a database are no text; a count of few digits may be there by chance and is looked for in the rows.
        found += [
            f"{canary.name!r} in {path.name}"
            for canary in (texts if is_database else known)
            if _holds(path.read_bytes(), canary)
        ]
    for where, value in sqlite_contents(folder / "prefect.db"):
        found += search(where, value, known)
    return found


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by its path."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _fail_at(point: str, canary: str) -> None:
    """Have the program meet an error that nobody foresaw, whose text is private."""
    records = importlib.import_module("ppsyn.data.ingest")
    counter = importlib.import_module("ppsyn.data.marginals").TableCounter

    def fail(*_: object) -> NoReturn:
        error: BaseException = Panic(canary) if point == "panic" else ValueError(canary)
        error.add_note(f"a note: {canary}")
        raise error from KeyError(canary)

    def lose_the_store(shelf: Any, *arguments: Any) -> Any:  # noqa: ANN401  as the function that it stands before
        shutil.rmtree(shelf.store.location.url)
        Path(shelf.store.location.url).write_text("not a folder any more", encoding="utf-8")
        return write(shelf, *arguments)

    write = records.write_codes
    match point:
        case "encode" | "panic":
            records.encode_rows = fail
        case "count":
            counter.counts = fail
        case "store":
            records.write_codes = lose_the_store
        case _:
            raise ValueError(point)


class Panic(BaseException):
    """As a library in Rust panics."""


if __name__ == "__main__":
    # python tests/canaries.py POINT CANARY release FILE ...    the command, which meets such an error
    _fail_at(sys.argv[1], json.loads(sys.argv[2]))
    sys.argv = ["ppsyn", *sys.argv[3:]]
    importlib.import_module("ppsyn.flows.cli.main").main()
