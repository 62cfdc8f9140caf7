"""More rows from a published model."""

from contextlib import suppress
from pathlib import Path

from ppsyn.errors import StoreError
from ppsyn.releases.opened import open_release, read_manifest
from ppsyn.releases.tables import write_rows
from ppsyn.storage import Store


def write(folder: Store, rows: int | None, seed: int | None, out: Path) -> int:
    """Write rows of the release in `folder` to a Parquet file; returns how many.

    The file appears when it is complete.

    Raises:
        StoreError: If the file cannot be written.
    """
    if out.exists() and not out.is_file():
        raise StoreError(f"Cannot write {out}: it is not a file.")
    release, released = open_release(folder), read_manifest(folder)[0].rows
    partial = out.with_name(f".{out.name}.part")
    try:
        with partial.open("wb") as file:
            blocks = release.generate_blocks(released if rows is None else rows, seed)
            written = write_rows(blocks, release.generate(0), file)
        partial.replace(out)
    except OSError as error:
        problem = f"Cannot write {out}: {error.strerror}."
    else:
        return written
    finally:
        with suppress(OSError):
            partial.unlink()
    raise StoreError(problem)
