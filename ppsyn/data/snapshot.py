"""The private table as codes, in fragments: what a run counts, and can come back to."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from pydantic import Field, ValidationError

from ppsyn.arrays import Ints
from ppsyn.data.marginals.kernel import count_blocks
from ppsyn.domain import Clique, Domain, domain_of
from ppsyn.errors import MissingError, SourceError, translated
from ppsyn.schemas.table import TableSchema
from ppsyn.schemas.types import FrozenModel
from ppsyn.storage import Store

FORMAT = "ppsyn-table-1"

_MARKER = "table.json"


class Fragment(FrozenModel):
    """An object of the private store, and what it must hold."""

    name: str
    sha256: str


class Contents(FrozenModel):
    """What table.json holds. It is private: fragments tell how many rows there are, about."""

    format: Literal["ppsyn-table-1"]
    schema_digest: str
    fragments: tuple[Fragment, ...] = Field(repr=False)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where private objects of a run are, each written whole and read back only if it is the same."""

    store: Store
    prefix: str

    def write(self, name: str, data: bytes) -> Fragment:
        """Keep an object."""
        self.store.put(f"{self.prefix}/{name}", data)
        return Fragment(name=name, sha256=hashlib.sha256(data).hexdigest())

    def read(self, fragment: Fragment) -> bytes:
        """The object.

        Raises:
            SourceError: If it is gone or is another.
        """
        try:
            data = self.store.get(f"{self.prefix}/{fragment.name}")
        except MissingError:
            data = b""
        if hashlib.sha256(data).hexdigest() != fragment.sha256:
            raise self.damage_error()
        return data

    def damage_error(self) -> SourceError:
        """The error of a snapshot that cannot be read."""
        return SourceError(
            f"Expected a whole snapshot at {self.store.url(self.prefix)}; it is damaged or incomplete. Start a new run."
        )


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot:
    """The encoded rows of a run.

    Privacy:
        Its counts are private, and are for the curator.
    """

    shelf: Shelf
    domain: Domain
    fragments: Sequence[Fragment]

    def __repr__(self) -> str:
        """Show nothing of the table."""
        return "Snapshot()"

    def digest(self, cliques: Sequence[Clique]) -> str:
        """What counts are of: the rows and the marginals. It is private, as are the digests in it."""
        of = ([fragment.sha256 for fragment in self.fragments], self.domain.attributes, cliques)
        return hashlib.sha256(repr(of).encode()).hexdigest()

    def count(self, cliques: Sequence[Clique]) -> list[Ints]:
        """The exact counts of each marginal, from one pass over the fragments, one in memory at a time.

        Raises:
            SourceError: If a fragment is damaged.
        """
        return count_blocks(
            self.domain, (read_codes(self.shelf, each, self.domain) for each in self.fragments), cliques
        )

    def check(self) -> None:
        """See that all fragments are there as they were written, before anything is asked that needs them.

        Raises:
            SourceError: If one is not.
        """
        for fragment in self.fragments:
            self.shelf.read(fragment)


def is_complete(shelf: Shelf) -> bool:
    """Whether all of a snapshot is there."""
    return shelf.store.has(f"{shelf.prefix}/{_MARKER}")


def complete(shelf: Shelf, contents: Contents) -> None:
    """Say that all is there."""
    shelf.write(_MARKER, contents.model_dump_json(indent=2).encode())


def read_contents(shelf: Shelf) -> Contents:
    """What a snapshot holds.

    Raises:
        SourceError: If it is damaged or incomplete.
    """
    with translated((MissingError, ValidationError), to=SourceError, message=str(shelf.damage_error())):
        return Contents.model_validate_json(shelf.store.get(f"{shelf.prefix}/{_MARKER}"))


def open_snapshot(shelf: Shelf, schema: TableSchema) -> Snapshot:
    """The rows of a snapshot.

    Raises:
        SourceError: If it is damaged, or is that of another schema.
    """
    contents = read_contents(shelf)
    if contents.schema_digest != schema.digest():
        raise SourceError(
            f"Expected the snapshot {shelf.store.url(shelf.prefix)} to be of the schema {schema.name!r} as it stands. "
            "The schema has changed since. Start a new run."
        )
    return Snapshot(shelf, domain_of(schema), contents.fragments)


def write_codes(shelf: Shelf, name: str, codes: Mapping[str, NDArray[np.integer]], domain: Domain) -> Fragment:
    """Keep the codes of some rows, each in as few bytes as its attribute needs."""
    columns = {
        attribute.name: pa.array(codes[attribute.name].astype(np.min_scalar_type(attribute.size - 1)))
        for attribute in domain.attributes
    }
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), sink, compression="zstd", write_statistics=False)
    return shelf.write(name, sink.getvalue().to_pybytes())


def read_codes(shelf: Shelf, fragment: Fragment, domain: Domain) -> dict[str, NDArray[np.unsignedinteger]]:
    """The codes of a fragment.

    Raises:
        SourceError: If it is damaged.
    """
    table = parquet.read_table(pa.BufferReader(shelf.read(fragment)), use_threads=False)
    return {name: table[name].to_numpy() for name in domain.names}
