"""Published releases: `ppsyn audit`, `ppsyn regenerate`, and the private table that one was made from."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast
from uuid import uuid4

import click

from ppsyn.errors import ConfigError, StoreError, translated
from ppsyn.flows.cli.keys import read_trust
from ppsyn.flows.cli.locations import FilePath, bucket_options, open_release_at, open_store_at
from ppsyn.flows.cli.output import JSON_OPTION, Exit, coloured, handle_errors, print_json
from ppsyn.schemas.limits import BATCH_ROWS, ROWS, WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    import pandas as pd

    from ppsyn.generation.plan import Recipe
    from ppsyn.releases.audit import Finding
    from ppsyn.schemas.config import RuntimeConfig
    from ppsyn.schemas.manifest import Manifest
    from ppsyn.schemas.release import Source
    from ppsyn.schemas.run import RunRef
    from ppsyn.storage import Store

_ENDINGS = (".parquet", ".csv", ".csv.gz")
_GZIP_LEVEL = 6


@click.command()
@click.argument("release", metavar="RELEASE")
@click.option("--account", metavar="STORE", help="Also check the release against its account, in this store.")
@click.option(
    "--trust",
    type=FilePath(Path),
    help="Also check signatures with these keys: of `ppsyn keys list --json`, or a .pub file.",
)
@bucket_options
@JSON_OPTION
@handle_errors
def audit(release: str, account: str | None, trust: Path | None, as_json: bool, **location: Any) -> None:
    """Audit RELEASE, a published folder, without the private table.

    Verifies the digests of all files, the chain of account entries, the arithmetic of the budget, and the guarantee
    by dp-accounting. Replays the loop over the published answers, refits the model, generates the rows again and
    compares them with the published table. With --trust, finds a signature that is missing or wrong, of somebody who
    may not release, or made after the key was revoked. DATASET/latest stands for the release that was published last.
    A store that cannot be read is not a finding: exit code 6. Of a release that was retired, its erasure record is
    verified.

    \b
    Examples:
      ppsyn audit out/releases/adult/latest
      ppsyn audit s3://bucket/releases/adult/RUN --endpoint https://s3.example.org --json
      ppsyn audit out/releases/adult/RUN --account out
      ppsyn audit out/releases/adult/RUN --trust keys.json
      ppsyn audit s3://public/releases/adult/latest --account 's3://state?credentials=STATE'
    """
    from ppsyn.privacy.account import StoredAccount
    from ppsyn.releases.audit import audit as check
    from ppsyn.releases.reader import read_manifest, read_retirement

    known = None if trust is None else read_trust(trust)
    folder = open_release_at(release, **location)
    stored = None
    if account is not None:
        kept = open_store_at(account, **location)
        with suppress(ConfigError):  # the audit tells what is wrong with the manifest
            stored = StoredAccount(kept, (read_retirement(folder) or read_manifest(folder)[0]).dataset)
    findings: list[Finding] = []
    for finding in check(folder, stored, known):
        findings.append(finding)
        if not as_json:
            click.echo(_line(finding))
    is_clean = all(finding.problem is None for finding in findings)
    if as_json:
        rows = [asdict(finding) for finding in findings]
        print_json({"release": release, "ok": is_clean, "findings": rows})
    if not is_clean:
        sys.exit(Exit.AUDIT)


def _line(finding: Finding) -> str:
    if finding.problem is not None:
        return f"{coloured('WRONG', 'red')} {finding.subject}: {finding.problem}"
    if finding.unchecked is not None:
        return f"{coloured('?    ', 'yellow')} {finding.subject}: {finding.unchecked}"
    return f"{coloured('ok   ', 'green')} {finding.subject}"


@click.command()
@click.argument("release", metavar="RELEASE")
@click.option("--rows", type=click.IntRange(min=0, max=ROWS), help="Number of rows; by default that of the release.")
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**64 - 1),
    help="Equal seeds give equal rows; by default the release's own.",
)
@click.option(
    "--out",
    type=FilePath(),
    required=True,
    help="The file to write: .parquet, .csv or .csv.gz; with workers, a new folder of Parquet files.",
)
@click.option(
    "--row-group",
    type=click.IntRange(min=1, max=BATCH_ROWS),
    default=2**17,
    show_default=True,
    help="Parquet row-group size, which bounds memory. Does not affect the rows.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1, max=WORKERS),
    help="Number of Dask workers on this machine.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers to use, at tcp:// or tls://.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@bucket_options
@JSON_OPTION
@handle_errors
def regenerate(
    release: str,
    *,
    rows: int | None,
    seed: int | None,
    out: str,
    row_group: int,
    workers: int | None,
    scheduler: str | None,
    quiet: bool,
    as_json: bool,
    **location: Any,
) -> None:
    """Generate rows from the model of RELEASE, at no privacy cost.

    Memory does not depend on the number of rows, and the file appears when it is complete. Dask workers write several
    files into a new folder; in the order of their names, they hold the same rows.

    \b
    Examples:
      ppsyn regenerate out/releases/adult/RUN --out again.csv
      ppsyn regenerate out/releases/adult/RUN --rows 1000000 --seed 7 --out more.parquet
      ppsyn regenerate out/releases/adult/RUN --rows 100000000 --out many --workers 4
    """
    runtime = _runtime_of(workers, scheduler)
    if not runtime.is_spread:
        check_name(Path(out))
    recipe = recipe_of(open_release_at(release, **location), rows, seed)
    if runtime.is_spread:
        written = write_parts(recipe, Path(out), row_group, runtime, is_quiet=quiet)
    else:
        written = write_file(recipe, Path(out), row_group, is_quiet=quiet)
    if as_json:
        print_json({"release": release, "rows": written, "seed": seed, "out": out})
    else:
        click.echo(f"{written} rows in {out}")


def _runtime_of(workers: int | None, scheduler: str | None) -> RuntimeConfig:
    from pydantic import ValidationError

    from ppsyn.schemas.config import RuntimeConfig
    from ppsyn.schemas.files import rule_of

    def describe(error: ValidationError) -> str:
        return " ".join(" ".join([*map(str, fault["loc"]), rule_of(fault)]) for fault in error.errors())

    with translated(ValidationError, to=ConfigError, message=describe):
        return RuntimeConfig(workers=workers, scheduler=scheduler)


def recipe_of(folder: Store, rows: int | None, seed: int | None) -> Recipe:
    """Rows of the release in `folder`; by default as many as were released, from its own seed."""
    from ppsyn.releases.reader import open_release, read_manifest

    return open_release(folder).recipe(read_manifest(folder)[0].rows if rows is None else rows, seed)


def write_file(recipe: Recipe, out: Path, group_rows: int, *, is_quiet: bool) -> int:
    """Write rows to a file, in bounded memory; returns how many. The file appears when it is complete.

    Args:
        recipe: The rows.
        out: The file; its ending names the format.
        group_rows: Rows of a row group of a Parquet file.
        is_quiet: Whether to show no progress on a terminal.

    Raises:
        StoreError: If the file cannot be written.
    """
    from ppsyn.releases.tables import write_csv, write_rows

    check_name(out)
    if out.exists() and not out.is_file():
        raise StoreError(f"Cannot write {out}: it is not a file.")
    with _atomically(out) as partial, partial.open("xb") as file, _progress_bar(recipe.rows, is_quiet) as advance:
        blocks = _advance_by_blocks(recipe.all_blocks(), advance)
        if out.suffix == ".parquet":
            written = write_rows(blocks, recipe.no_rows(), file, group_rows)
        elif out.suffix == ".csv":
            written = write_csv(blocks, recipe.no_rows(), file)
        else:
            with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as packed:
                written = write_csv(blocks, recipe.no_rows(), cast("IO[bytes]", packed))
        _sync(file)
        return written


def check_name(out: Path) -> None:
    """Check that the name of a file has the ending of a known format.

    Raises:
        ConfigError: If it does not.
    """
    if not out.name.endswith(_ENDINGS):
        raise ConfigError(f"Expected the name of the file {out} to end in one of {', '.join(_ENDINGS)}.")


def write_parts(recipe: Recipe, out: Path, group_rows: int, runtime: RuntimeConfig, *, is_quiet: bool) -> int:
    """Have Dask's workers generate the rows, as Parquet files in a new folder; returns how many.

    The files hold the rows of `write_file`, in the order of their names. The folder appears when it is complete.

    Raises:
        StoreError: If the folder is there already, or cannot be written.
        ClusterError: If the workers fail.
    """
    from ppsyn.tasks.dask import generate_parts  # Prefect and Dask take seconds

    if out.exists():
        raise StoreError(f"Cannot write {out}: workers write into a new folder, and this name is taken.")
    with _atomically(out) as partial, _progress_bar(recipe.rows, is_quiet) as advance:
        partial.mkdir()
        for number, (rows, data) in enumerate(generate_parts(recipe, group_rows, runtime)):
            with (partial / f"part-{number:06d}.parquet").open("xb") as file:
                file.write(data)
                _sync(file)
            advance(rows)
    return recipe.rows


@contextmanager
def _atomically(out: Path) -> Generator[Path]:
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


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _progress_bar(rows: int, is_quiet: bool) -> Generator[Callable[[int], None]]:
    """Show how many rows are written on standard error, if that is a terminal; yields what adds to them."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=is_quiet or not sys.stderr.isatty()) as progress:
        bar = progress.add_task("rows", total=rows)
        yield lambda made: progress.advance(bar, made)


def _advance_by_blocks(blocks: Iterable[pd.DataFrame], advance: Callable[[int], None]) -> Iterator[pd.DataFrame]:
    for block in blocks:
        yield block
        advance(len(block))


@dataclass(frozen=True, slots=True)
class Original:
    """What a release was made from.

    Attributes:
        source: The private table.
        ref: The run that released it, and its stores.
    """

    source: Source
    ref: RunRef


def original_of(manifest: Manifest, file: str | None, store: Store | None, private: Store | None) -> Original:
    """The table that a release file names, or else the one in the record of the release's run.

    Args:
        manifest: Of the release.
        file: The release file.
        store: Where the run was kept, if no file is given.
        private: Where private things are to be kept, if no file is given and it is not in the store.

    Raises:
        ConfigError: If the file describes another release, or the store knows another run of that name.
        RunError: If the store does not know the run.
    """
    from ppsyn.flows.preflight import read_inputs
    from ppsyn.runs.record import read_record, ref_of
    from ppsyn.schemas.run import RunRef

    if file is not None:
        config, table = read_inputs(file, ())
        for what, named, released in (
            ("dataset", config.dataset, manifest.dataset),
            ("schema", table, manifest.table),
            ("privacy.person", config.privacy.person, manifest.privacy.person),
        ):
            if named != released:
                raise ConfigError(f"{file}: field {what!r}: Expected what the release {manifest.run} was made with.")
        return Original(config.source, ref_of(config, manifest.run))
    if store is None:
        raise ConfigError("Expected a release file, or the store of the release's run.")
    record = read_record(store, manifest.run)
    if record.digest() != manifest.inputs:
        raise ConfigError(f"The run {manifest.run} in {store.location.url} is not the one that made this release.")
    location = store.location
    ref = RunRef(
        run=manifest.run,
        dataset=manifest.dataset,
        root=location,
        private=private.location if private else location,
        releases=location,
    )
    return Original(record.source, ref)
