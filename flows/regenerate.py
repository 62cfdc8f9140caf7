"""More rows from a published model."""

import os
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ppsyn.errors import StoreError
from ppsyn.releases.opened import open_release, read_manifest
from ppsyn.releases.tables import write_rows
from ppsyn.rows import Recipe
from ppsyn.storage import Store
from schemas.config import RuntimeConfig


def recipe_of(folder: Store, rows: int | None, seed: int | None) -> Recipe:
    """Rows of the release in `folder`; by default as many as were released, from its own seed."""
    return open_release(folder).recipe(read_manifest(folder)[0].rows if rows is None else rows, seed)


def write(recipe: Recipe, out: Path, group_rows: int, runtime: RuntimeConfig, *, is_quiet: bool) -> int:
    """Write rows to a Parquet file, in bounded memory; returns how many. The file appears when it is complete.

    Args:
        recipe: The rows.
        out: The file.
        group_rows: Rows of a row group of the file.
        runtime: Whether Dask's workers make the rows. The file is the same to the byte.
        is_quiet: Whether to show no progress on a terminal.

    Raises:
        StoreError: If the file cannot be written.
        ClusterError: If Dask's workers fail.
    """
    if out.exists() and not out.is_file():
        raise StoreError(f"Cannot write {out}: it is not a file.")
    try:
        with _appearing(out) as file, _made(recipe, runtime) as blocks:
            return write_rows(_watched(blocks, recipe.rows, is_quiet), recipe.no_rows(), file, group_rows)
    except OSError as error:
        problem = f"Cannot write {out}: {error.strerror}."
    raise StoreError(problem)


def _made(recipe: Recipe, runtime: RuntimeConfig) -> AbstractContextManager[Iterator[pd.DataFrame]]:
    if not runtime.is_spread:
        return nullcontext(recipe.made())
    from tasks.generating import made  # noqa: PLC0415  # Prefect and Dask take seconds

    return made(recipe, runtime)


@contextmanager
def _appearing(out: Path) -> Generator[IO[bytes]]:
    """A file that has its name once it is complete and on the disk, and is gone otherwise."""
    partial = out.with_name(f".{out.name}.{uuid4().hex}.part")
    try:
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(out)
    finally:
        with suppress(OSError):
            partial.unlink()


def _watched(blocks: Iterable[pd.DataFrame], rows: int, is_quiet: bool) -> Iterator[pd.DataFrame]:
    """The blocks, counted on standard error where that is a terminal."""
    columns = (TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=is_quiet or not sys.stderr.isatty()) as progress:
        bar = progress.add_task("rows", total=rows)
        for block in blocks:
            yield block
            progress.advance(bar, len(block))
