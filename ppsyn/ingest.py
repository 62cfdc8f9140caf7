"""The private table, read once and kept as codes: a snapshot that a run can come back to."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import hashlib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from pydantic import Field, ValidationError

from ppsyn.arrays import Codes
from ppsyn.checks import check_codes, check_columns
from ppsyn.discretize import EncodedTable, domain_of, encode_marked
from ppsyn.domain import Domain
from ppsyn.errors import MissingError, SourceError
from ppsyn.marginals import TableCounter
from ppsyn.persons import Crowd
from ppsyn.sources import fingerprint, needed, read_batches
from ppsyn.storage import Store
from schemas.base import FrozenModel
from schemas.config import PersonUnit
from schemas.release import Source, SqlSource
from schemas.table import TableSchema

FORMAT = "ppsyn-table-1"

_MARKER = "table.json"


class _Fragment(FrozenModel):
    name: str
    sha256: str


class _Snapshot(FrozenModel):
    """What table.json holds. It is private: fragments tell how many rows there are, about."""

    format: Literal["ppsyn-table-1"]
    schema_digest: str
    fragments: tuple[_Fragment, ...] = Field(repr=False)
    fingerprint: str | None = Field(repr=False)


@dataclass(frozen=True, slots=True)
class _Shelf:
    """Where the fragments of a snapshot are, and what codes they hold."""

    store: Store
    prefix: str
    domain: Domain

    def key(self, name: str) -> str:
        return f"{self.prefix}/{name}"


def ingest(source: Source, schema: TableSchema, person: PersonUnit | None, store: Store, prefix: str) -> None:
    """Read the private table, check it, and keep its codes under `prefix`.

    What an earlier attempt left there is removed first, and so is what a failed one leaves.
    With a person unit, at most `max_rows` rows of each person are kept.

    Privacy:
        Reads the private table. Each row is encoded by itself (C8), and of the rows
        of a person those of smallest key are kept, over the whole table. The store
        holds codes and never an id; it is private, as are the names and digests in it.

    Raises:
        SourceError: If a part of the table cannot be read.
        SchemaError: If the person column is released, or cannot tell persons apart.
        DomainRefusedError: If a column whose policy is to refuse holds a value outside its domain.
    """
    store.delete(prefix)
    with ExitStack() as undo:
        undo.callback(store.delete, prefix)
        seen = fingerprint(source)  # before the rows: a table that changes meanwhile will not match
        fragments = _write_table(source, schema, person, _Shelf(store, prefix, domain_of(schema)))
        snapshot = _Snapshot(format=FORMAT, schema_digest=schema.digest(), fragments=fragments, fingerprint=seen)
        store.put(f"{prefix}/{_MARKER}", snapshot.model_dump_json(indent=2).encode())
        undo.pop_all()


def is_ingested(store: Store, prefix: str) -> bool:
    """Whether there is a complete snapshot."""
    return store.has(f"{prefix}/{_MARKER}")


def source_matches(source: Source, store: Store, prefix: str) -> bool:
    """Whether the files of the source are still those of the snapshot. Of a query it is taken on trust.

    Privacy:
        Compares digests of private files. That they differ tells that the table was changed.

    Raises:
        SourceError: If the snapshot is damaged, or a file cannot be read.
    """
    return isinstance(source, SqlSource) or fingerprint(source) == _load(store, prefix).fingerprint


def open_counter(store: Store, prefix: str, schema: TableSchema) -> TableCounter:
    """The exact counts of a snapshot, for the curator.

    Privacy:
        Reads private codes into memory; the counter gives them to the curator alone.

    Raises:
        SourceError: If the snapshot is damaged, or is that of another schema.
    """
    snapshot, shelf = _load(store, prefix), _Shelf(store, prefix, domain_of(schema))
    if snapshot.schema_digest != schema.digest():
        raise SourceError(
            f"Expected the snapshot {store.url(prefix)} to be of the schema {schema.name!r} as it stands. "
            "The schema has changed since; start a new run."
        )
    parts = [_read(shelf, fragment) for fragment in snapshot.fragments]
    none = np.empty(0, np.int32)
    columns = {
        name: np.concatenate([none, *(part.pop(name) for part in parts)], dtype=np.int32) for name in shelf.domain.names
    }
    return TableCounter(EncodedTable(shelf.domain, columns))


def _write_table(
    source: Source, schema: TableSchema, person: PersonUnit | None, shelf: _Shelf
) -> tuple[_Fragment, ...]:
    """Write the codes of each batch; then, of each person, drop the rows beyond the bound."""
    names = needed(schema, person)
    crowd = None if person is None else Crowd(person.column)
    fragments: list[_Fragment] = []
    for number, batch in enumerate(read_batches(source, schema, person)):
        check_columns(batch.frame, names, batch.fragment)
        marked = encode_marked(batch.frame, schema)
        check_codes(marked, schema)
        if crowd is not None and person is not None:
            crowd.add(batch.frame[person.column])
        fragments.append(_write(shelf, f"fragments/{number:05d}.parquet", marked))
    if crowd is None or person is None:
        return tuple(fragments)
    chosen = zip(fragments, crowd.choose(person.max_rows), strict=True)
    return tuple(_keep_rows(shelf, fragment, is_kept) for fragment, is_kept in chosen)


def _keep_rows(shelf: _Shelf, fragment: _Fragment, is_kept: NDArray[np.bool_]) -> _Fragment:
    kept = {name: column[is_kept] for name, column in _read(shelf, fragment).items()}
    return _write(shelf, fragment.name, kept)


def _write(shelf: _Shelf, name: str, codes: Mapping[str, Codes]) -> _Fragment:
    columns = {
        attribute.name: pa.array(codes[attribute.name].astype(np.min_scalar_type(attribute.size - 1)))
        for attribute in shelf.domain.attributes
    }
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), sink, compression="zstd", write_statistics=False)
    data = sink.getvalue().to_pybytes()
    shelf.store.put(shelf.key(name), data)
    return _Fragment(name=name, sha256=hashlib.sha256(data).hexdigest())


def _read(shelf: _Shelf, fragment: _Fragment) -> dict[str, Codes]:
    try:
        data = shelf.store.get(shelf.key(fragment.name))
    except MissingError:
        data = b""
    if hashlib.sha256(data).hexdigest() != fragment.sha256:
        raise _damaged(shelf.store, shelf.prefix)
    table = parquet.read_table(pa.BufferReader(data))
    return {name: table[name].to_numpy() for name in shelf.domain.names}


def _load(store: Store, prefix: str) -> _Snapshot:
    try:
        return _Snapshot.model_validate_json(store.get(f"{prefix}/{_MARKER}"))
    except (MissingError, ValidationError):
        problem = _damaged(store, prefix)
    raise problem


def _damaged(store: Store, prefix: str) -> SourceError:
    return SourceError(
        f"Expected a whole snapshot at {store.url(prefix)}; it is damaged or incomplete. Start a new run."
    )
