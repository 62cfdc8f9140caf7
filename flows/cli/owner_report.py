"""The data owner's own page about a release, written where no release is."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ppsyn.data.ingest import encoded_batches
from ppsyn.data.marginals.kernel import Block
from ppsyn.data.sources import check_source
from ppsyn.domain import domain_of
from ppsyn.errors import ConfigError, StoreError, translated
from ppsyn.evaluation.comparison import StreamedTable, TablePair, compare
from ppsyn.evaluation.owner_report import render
from ppsyn.flows.cli.release_sources import Original
from ppsyn.flows.cli.release_view import seen_from_here
from ppsyn.releases.layout import MANIFEST
from ppsyn.releases.reader import open_release, published_codes, read_sealed
from ppsyn.schemas.run import RunRef
from ppsyn.storage import Store
from ppsyn.tasks.step import sealed

_RELEASES = {"releases", "staging"}
"""Folders of a store whose contents are published."""


def check_out(out: Path) -> None:
    """See that a private file would lie outside of all releases.

    Raises:
        ConfigError: If it would not, or cannot be a file.
    """
    place = out.resolve()
    for folder in place.parents:
        if folder.name in _RELEASES or (folder / MANIFEST).exists():
            raise ConfigError(
                f"Expected --out={out} to lie outside of releases: the page is private, and {folder} is published. "
                "Name a file elsewhere."
            )
    if place.is_dir() or not place.parent.is_dir():
        raise ConfigError(f"Expected --out={out} to be a file in a folder that there is.")


def write(folder: Store, original: Original, out: Path, named: Sequence[Sequence[str]], targets: Sequence[str]) -> None:
    """Compare a release with its private table, and write the page; only its owner may read the file.

    Privacy:
        Reads the private table and charges nothing (limit L13). All rows are counted, whoever they belong to.

    Raises:
        PPSynError: If the tables cannot be compared.
    """
    manifest, _ = read_sealed(folder)
    table, domain = manifest.table, domain_of(manifest.table)
    check_source(original.source, table, None)

    def private() -> Iterator[Block]:
        return (codes for _, codes in encoded_batches(original.source, table, None))

    @sealed
    def page(ref: RunRef) -> bytes:
        synthetic = StreamedTable(domain, lambda: published_codes(folder, manifest))
        both = TablePair(StreamedTable(domain, private), synthetic)
        columns = {column.name: column for column in table.columns}
        found = compare(both, columns, manifest.algorithm.workload, [tuple(names) for names in named], targets)
        return render(manifest, open_release(folder), found, seen_from_here(folder.location.url))

    _write(out, page(original.ref))


def _write(out: Path, data: bytes) -> None:
    """Write a file that nobody but its owner may read, and that is whole or not there."""
    partial = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with translated(OSError, to=StoreError, message=lambda error: f"Cannot write {out}: {error.strerror}."):
            with open(os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123
                file.write(data)
            partial.replace(out)
    finally:
        with suppress(OSError):
            partial.unlink()
