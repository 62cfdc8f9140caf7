"""Counts of a published synthetic table."""

from collections.abc import Iterator, Mapping, Sequence

from ppsyn.arrays import Codes, Ints
from ppsyn.data.encoding import encode
from ppsyn.data.marginals.kernel import count_blocks
from ppsyn.domain import Clique, domain_of
from ppsyn.errors import ConfigError
from ppsyn.releases.layout import SYNTHETIC
from ppsyn.releases.tables import read_rows
from ppsyn.releases.writer import file_digest
from ppsyn.schemas.manifest import Manifest
from ppsyn.storage import Store


def published_counts(store: Store, manifest: Manifest, cliques: Sequence[Clique]) -> dict[Clique, Ints]:
    """Marginals of the synthetic table of the release in this store.

    Raises:
        ConfigError: If the table is not the one that was published.
    """
    counts = count_blocks(domain_of(manifest.table), published_codes(store, manifest), cliques)
    return dict(zip(cliques, counts, strict=True))


def published_codes(store: Store, manifest: Manifest) -> Iterator[Mapping[str, Codes]]:
    """The synthetic table as codes, a block of rows at a time.

    Raises:
        ConfigError: If the table is not the one that was published.
    """
    if not store.has(SYNTHETIC) or file_digest(store, SYNTHETIC) != manifest.files.get(SYNTHETIC):
        raise ConfigError(f"{store.url(SYNTHETIC)} is not the table that was published.")
    with store.reader(SYNTHETIC) as file:
        for frame in read_rows(file):
            yield encode(frame, manifest.table).columns
