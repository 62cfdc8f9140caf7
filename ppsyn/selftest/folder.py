"""A published folder as the adversary sees it: every file's size, bytes, numbers and words."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from zipfile import ZipFile

import numpy as np
import pyarrow.parquet as pq

from ppsyn.arrays import Floats
from ppsyn.releases.layout import LEDGER, REPORT

Files = Mapping[str, bytes]

DECLARED = ("nonce", "previous", "digest", "hash", "head", "before", "at", "published_at", "measured_at")
"""Fields that are different each time a release is made: random marks, times, and digests of what holds them."""

_DIGEST = re.compile(r"^([0-9a-f]{16,}|\d{4}-\d\d-\d\dT.*)$")
_NUMBER = re.compile(rb"(?<![\w#.])-?\d+(?:\.\d+)?(?![\w])")


def differences(one: Files, other: Files) -> list[str]:
    """The files that differ in more than the declared fields, of two folders made from the same answers."""
    if one.keys() != other.keys():
        return sorted(one.keys() ^ other.keys())
    masked, others = _masked(one), _masked(other)
    return [name for name in sorted(one) if masked[name] != others[name]]


def _masked(files: Files) -> dict[str, bytes]:
    """The files with what the declared fields say taken out, wherever it stands.

    The ledger's Parquet file is compared by what it holds, types and metadata included: how well nonces can be
    compressed differs. So its size is declared too.
    """
    readable = {name: _ledger(data) if name == LEDGER else data for name, data in files.items()}
    documents = [name for name in files if name.endswith(".json")]
    declared = {value for name in documents for value in _declared(files[name])}
    declared |= {sha256(files[name]).hexdigest() for name in (*documents, LEDGER, REPORT)}
    size = len(files[LEDGER])
    declared |= {f'"bytes": {size}', f'{LEDGER}</th><td class="number">{size:,}<'}
    pattern = re.compile(b"|".join(re.escape(value.encode()) for value in sorted(declared, key=len, reverse=True)))
    return {name: pattern.sub(b"*", data) for name, data in readable.items()}


def _ledger(data: bytes) -> bytes:
    table = pq.read_table(io.BytesIO(data))
    return f"{table.schema}\n{json.dumps(table.to_pylist())}".encode()


def _declared(data: bytes) -> Iterator[str]:
    """What the declared fields of a JSON file say."""
    for path, value in _leaves(json.loads(data)):
        if isinstance(value, str) and path.rsplit(".", 1)[-1] in DECLARED:
            yield value
        elif isinstance(value, str) and value.startswith('{"'):  # an account entry, as stored
            yield from _declared(value.encode())


def _leaves(document: object, above: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(document, dict):
        for name, value in document.items():
            yield from _leaves(value, f"{above}.{name}")
    elif isinstance(document, list):
        yield f"{above}.length", len(document)
        for place, value in enumerate(document):
            yield from _leaves(value, f"{above}.{place}")
    else:
        yield above, document


def features(files: Files) -> dict[str, float]:
    """Numbers about every file: whatever may differ between two tables.

    Sizes, how often each byte occurs, every number and word of the JSON files at its place, what Parquet files
    and archives say of themselves, and the numbers of the pages.
    """
    found: dict[str, float] = {}
    for name, data in files.items():
        for key, value in _of_file(name, data):
            found[f"{name} {key}"] = found.get(f"{name} {key}", 0.0) + value
    return found


def _of_file(name: str, data: bytes) -> Iterator[tuple[str, float]]:
    yield "size", len(data)
    suffix = name.rsplit(".", 1)[-1]
    if suffix == "json":
        yield from _numbers_in(json.loads(data))
    elif suffix == "parquet":
        yield from _parquet(data)
    elif suffix == "npz":
        yield from _archive(data)
    elif suffix == "html":
        yield from _page(data)


def _numbers_in(document: object) -> Iterator[tuple[str, float]]:
    for path, value in _leaves(document):
        if isinstance(value, int | float):
            yield path, float(value)
        elif isinstance(value, str) and not _DIGEST.match(value):
            yield f"{path}={value}" if len(value) <= 24 else f"{path} length", 1.0 if len(value) <= 24 else len(value)
            yield f"word {value[:24]}", 1.0


def _parquet(data: bytes) -> Iterator[tuple[str, float]]:
    meta = pq.ParquetFile(io.BytesIO(data)).metadata
    yield from (("rows", meta.num_rows), ("groups", meta.num_row_groups), ("footer", meta.serialized_size))
    for group in range(meta.num_row_groups):
        for place in range(meta.num_columns):
            column = meta.row_group(group).column(place)
            where = f"{group} {column.path_in_schema}"
            yield f"{where} size", column.total_compressed_size
            yield f"{where} plain", column.total_uncompressed_size
            statistics = column.statistics
            if statistics is not None and statistics.has_min_max:
                for end, value in (("least", statistics.min), ("most", statistics.max)):
                    if isinstance(value, int | float):
                        yield f"{where} {end}", float(value)


def _archive(data: bytes) -> Iterator[tuple[str, float]]:
    with ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            yield f"{member.filename} size", member.file_size
            yield f"{member.filename} packed", member.compress_size


def _page(data: bytes) -> Iterator[tuple[str, float]]:
    for byte, count in Counter(data).items():
        yield f"byte {byte}", count
    numbers = [min(1e6, max(-1e6, float(text))) for text in _NUMBER.findall(data)]
    yield from (("numbers", len(numbers)), ("sum of numbers", sum(numbers)))


def align(rows: Sequence[Mapping[str, float]], names: Iterable[str]) -> Floats:
    """A row for each folder, a column for each name; what a folder does not have is nought."""
    columns = list(names)
    return np.array([[row.get(name, 0.0) for name in columns] for row in rows], np.float64)
