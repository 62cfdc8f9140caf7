"""The private table, read once and kept as codes: a snapshot that a run can come back to."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppsyn.arrays import Codes
from ppsyn.data.contributions import ContributionBounder
from ppsyn.data.encoding import encode_rows
from ppsyn.data.snapshot import (
    FORMAT,
    Contents,
    Fragment,
    Shelf,
    complete,
    is_complete,
    open_snapshot,
    read_codes,
    write_codes,
)
from ppsyn.data.sources import Batch, read_batches
from ppsyn.data.validation import CodeRanges
from ppsyn.domain import Domain, domain_of
from ppsyn.errors import SourceError
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.release import Source
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import Store


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
        shelf = Shelf(store, prefix)
        fragments = _write_table(source, schema, person, shelf)
        complete(shelf, Contents(format=FORMAT, schema_digest=schema.digest(), fragments=fragments))
        undo.pop_all()


def is_ingested(store: Store, prefix: str) -> bool:
    """Whether there is a complete snapshot."""
    return is_complete(Shelf(store, prefix))


def is_whole(store: Store, prefix: str, schema: TableSchema) -> bool:
    """Whether there is a snapshot of this schema, all of it as it was written.

    Privacy:
        Reads codes for their digests. That they differ tells of the store, not of the table.
    """
    shelf = Shelf(store, prefix)
    if not is_complete(shelf):
        return False
    try:
        open_snapshot(shelf, schema).check()
    except SourceError:
        return False
    return True


def encoded_batches(
    source: Source, schema: TableSchema, person: PersonUnit | None
) -> Iterator[tuple[Batch, dict[str, Codes]]]:
    """The private table in batches, each with its codes, of which none is refused and none breaks a rule.

    Privacy:
        Reads the private table; both parts of what it gives are private.

    Raises:
        PPSynError: As `ingest`.
    """
    for batch in read_batches(source, schema, person):
        rows = encode_rows(batch.frame, schema)
        yield replace(batch, frame=batch.frame[rows.is_kept]) if not rows.is_kept.all() else batch, rows.codes


def _write_table(source: Source, schema: TableSchema, person: PersonUnit | None, shelf: Shelf) -> tuple[Fragment, ...]:
    """Write the codes of each batch, validate them as a whole, then drop the rows of each person beyond the bound."""
    domain, fragments, ranges = domain_of(schema), list[Fragment](), CodeRanges(schema)
    with nullcontext() if person is None else ContributionBounder(person.column, person.max_rows) as bounder:
        for number, (batch, codes) in enumerate(encoded_batches(source, schema, person)):
            ranges.add(codes)
            if bounder is not None and person is not None:
                bounder.add(batch.frame[person.column])
            fragments.append(write_codes(shelf, f"fragments/{number:05d}.parquet", codes, domain))
        ranges.check()
        if bounder is None:
            return tuple(fragments)
        chosen = zip(fragments, bounder.kept_rows(), strict=True)
        return tuple(_keep_rows(shelf, fragment, domain, is_kept) for fragment, is_kept in chosen)


def _keep_rows(shelf: Shelf, fragment: Fragment, domain: Domain, is_kept: NDArray[np.bool_]) -> Fragment:
    kept = {name: column[is_kept] for name, column in read_codes(shelf, fragment, domain).items()}
    return write_codes(shelf, fragment.name, kept, domain)
