"""More rows from a published model."""

import gzip
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast
from uuid import uuid4

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ppsyn.errors import ConfigError, StoreError, translated
from ppsyn.generation.plan import Recipe
from ppsyn.releases.reader import open_release, read_manifest
from ppsyn.releases.tables import write_csv, write_rows
from ppsyn.schemas.config import RuntimeConfig
from ppsyn.storage import Store

_ENDINGS = (".parquet", ".csv", ".csv.gz")
_GZIP_LEVEL = 6


def recipe_of(folder: Store, rows: int | None, seed: int | None) -> Recipe:
    """Rows of the release in `folder`; by default as many as were released, from its own seed."""
    return open_release(folder).recipe(read_manifest(folder)[0].rows if rows is None else rows, seed)


def write(recipe: Recipe, out: Path, group_rows: int, *, is_quiet: bool) -> int:
    """Write rows to a file, in bounded memory; returns how many. The file appears when it is complete.

    Args:
        recipe: The rows.
        out: The file; its name tells the format.
        group_rows: Rows of a row group of a Parquet file.
        is_quiet: Whether to show no progress on a terminal.

    Raises:
        StoreError: If the file cannot be written.
    """
    check_name(out)
    if out.exists() and not out.is_file():
        raise StoreError(f"Cannot write {out}: it is not a file.")
    with _appearing(out) as partial, partial.open("xb") as file, _counted(recipe.rows, is_quiet) as advance:
        blocks = _watched(recipe.made(), advance)
        if out.suffix == ".parquet":
            written = write_rows(blocks, recipe.no_rows(), file, group_rows)
        elif out.suffix == ".csv":
            written = write_csv(blocks, recipe.no_rows(), file)
        else:
            with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as packed:
                written = write_csv(blocks, recipe.no_rows(), cast("IO[bytes]", packed))
        _settle(file)
        return written


def check_name(out: Path) -> None:
    """See that the name of a file tells in which format it is to be written.

    Raises:
        ConfigError: If it does not.
    """
    if not out.name.endswith(_ENDINGS):
        raise ConfigError(f"Expected the name of the file {out} to end in one of {', '.join(_ENDINGS)}.")


def write_parts(recipe: Recipe, out: Path, group_rows: int, runtime: RuntimeConfig, *, is_quiet: bool) -> int:
    """Have Dask's workers make the rows, as Parquet files in a new folder; returns how many.

    The files hold the rows of `write`, in the order of their names. The folder appears when it is complete.

    Raises:
        StoreError: If the folder is there already, or cannot be written.
        ClusterError: If the workers fail.
    """
    from ppsyn.tasks.dask import generate_parts  # Prefect and Dask take seconds

    if out.exists():
        raise StoreError(f"Cannot write {out}: workers write into a new folder, and there is something of that name.")
    with _appearing(out) as partial, _counted(recipe.rows, is_quiet) as advance:
        partial.mkdir()
        for number, (rows, data) in enumerate(generate_parts(recipe, group_rows, runtime)):
            with (partial / f"part-{number:06d}.parquet").open("xb") as file:
                file.write(data)
                _settle(file)
            advance(rows)
    return recipe.rows


@contextmanager
def _appearing(out: Path) -> Generator[Path]:
    """A name beside `out` for what is to be there once the block ends without an error, and is gone otherwise.

    Raises:
        StoreError: If it cannot be written.
    """
    partial = out.with_name(f".{out.name}.{uuid4().hex}.part")
    try:
        with translated(OSError, to=StoreError, message=lambda error: f"Cannot write {out}: {error.strerror}."):
            yield partial
            partial.replace(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        with suppress(OSError):
            partial.unlink()


def _settle(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _counted(rows: int, is_quiet: bool) -> Generator[Callable[[int], None]]:
    """Count rows on standard error, where that is a terminal."""
    columns = (TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=is_quiet or not sys.stderr.isatty()) as progress:
        bar = progress.add_task("rows", total=rows)
        yield lambda made: progress.advance(bar, made)


def _watched(blocks: Iterable[pd.DataFrame], advance: Callable[[int], None]) -> Iterator[pd.DataFrame]:
    for block in blocks:
        yield block
        advance(len(block))
