"""The files of a source: where they are, and their bytes."""

import zlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import unquote

from obstore.exceptions import BaseError

from ppsyn.errors import SourceError, StoreError, translated
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource, ParquetSource
from ppsyn.storage import Store, open_store

_NULL = "__HIVE_DEFAULT_PARTITION__"

UNREADABLE = (StoreError, BaseError, OSError, EOFError, zlib.error)
"""What a store, a disk or compressed bytes may raise while they are read."""

ENDINGS = {"csv": (".csv", ".csv.gz"), "parquet": (".parquet",)}
"""What the names of files end with, by kind of source."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """One file."""

    store: Store
    key: str

    @property
    def url(self) -> str:
        """Its address."""
        return self.store.url(self.key)

    @property
    def partition(self) -> dict[str, str | None]:
        """The values that its folders are named by, as in `year=2020/part-0.parquet`."""
        steps = (step.partition("=") for step in PurePosixPath(self.key).parts[:-1])
        values = {unquote(name): unquote(value) for name, equals, value in steps if name and equals}
        return {name: None if value == _NULL else value for name, value in values.items()}

    def open(self) -> AbstractContextManager[BinaryIO]:
        """The file, to read and seek in."""
        return self.store.reader(self.key)


def find_fragments(source: CsvSource | ParquetSource) -> list[Fragment]:
    """The file itself, or the files of the format in the folder and below, by name; hidden ones are passed over.

    Raises:
        SourceError: If there is none, or the place cannot be listed.
    """
    location = source.path
    with translated(StoreError, to=SourceError, message=str):
        found = _find(location, ENDINGS[source.kind])
    if not found:
        endings = " or ".join(ENDINGS[source.kind])
        raise SourceError(f"Expected a file, or a folder with at least one {endings} file, at {location.url}.")
    return found


def _find(location: Location, endings: tuple[str, ...]) -> list[Fragment]:
    folder, _, name = location.url.rstrip("/").rpartition("/")
    if location.is_local:
        path = Path(location.url)
        if path.is_file():
            parent = location.model_copy(update={"url": str(path.absolute().parent)})
            return [Fragment(open_store(parent), path.name)]
        if not path.is_dir():
            return []
    elif not location.url.endswith("/") and not folder.endswith("/"):
        parent = open_store(location.model_copy(update={"url": folder}))
        if parent.has(name):
            return [Fragment(parent, name)]
    store = open_store(location)
    keys = store.keys()
    return [Fragment(store, key) for key in keys if _is_fragment(key, endings)]


def _is_fragment(key: str, endings: tuple[str, ...]) -> bool:
    path = PurePosixPath(key)
    return path.name.lower().endswith(endings) and not any(part.startswith((".", "_")) for part in path.parts)


def unreadable(url: str) -> str:
    """The rule that a file which cannot be read to its end has broken."""
    return f"Expected {url} to be readable to its end. See that it is there, whole, and may be read."
