"""A Dask worker that counted the copy of a table that a run had before, and writes its counts when it is told to."""

import time
from dataclasses import dataclass
from pathlib import Path

from ppsyn.data.marginals.distributed import count_part
from ppsyn.data.snapshot import Fragment, Shelf, Snapshot
from ppsyn.domain import Domain
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

PREFIX = "x"


@dataclass(frozen=True, slots=True)
class _LateShelf(Shelf):
    folder: Path

    def write(self, name: str, data: bytes) -> Fragment:
        """Keep an object once the folder has a file `now`."""
        (self.folder / "counted").touch()
        while not (self.folder / "now").exists():
            time.sleep(0.02)
        return Shelf(self.store, self.prefix).write(name, data)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a table, as a worker is told of it."""

    place: Location
    domain: Domain
    fragments: tuple[Fragment, ...]


def count_late(copy: Copy, name: str, folder: Path) -> None:
    """Count the first part of a pass over it; the file `counted` of the folder tells that it is done."""
    shelf = _LateShelf(open_store(copy.place), PREFIX, folder)
    count_part(Snapshot(shelf, copy.domain, copy.fragments), name, 0)


def count_now(copy: Copy, name: str, part: int) -> None:
    """Count a part of a pass over it."""
    count_part(Snapshot(Shelf(open_store(copy.place), PREFIX), copy.domain, copy.fragments), name, part)
