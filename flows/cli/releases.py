"""The commands about a published release."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ppsyn.flows.cli.exit_codes import Exit
from ppsyn.flows.cli.locations import FilePath, bucket_options, open_release_at, open_store_at
from ppsyn.flows.cli.output import JSON_OPTION, coloured, handle_errors, print_json
from ppsyn.schemas.limits import BATCH_ROWS, ROWS, WORKERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ppsyn.domain import Clique
    from ppsyn.schemas.config import RuntimeConfig


@click.command()
@click.argument("release", metavar="RELEASE")
@click.option("--account", metavar="STORE", help="Also check the account itself, in this store.")
@bucket_options
@JSON_OPTION
@handle_errors
def audit(release: str, account: str | None, as_json: bool, **location: Any) -> None:
    """Check RELEASE, a published folder, without the private table.

    Verifies the digests of all files, the chain of account entries, the arithmetic of the budget (and
    the guarantee by dp-accounting), replays the loop over the published answers, refits the model,
    generates the rows again and compares them with the published table. The address of a dataset's folder with
    `latest` stands for the release that was published last. A store that cannot be read is no finding: exit code 6.

    \b
    Examples:
      ppsyn audit out/releases/adult/latest
      ppsyn audit s3://bucket/releases/adult/RUN --endpoint https://s3.example.org --json
      ppsyn audit out/releases/adult/RUN --account out
      ppsyn audit s3://public/releases/adult/latest --account 's3://state?credentials=STATE'
    """
    from ppsyn.errors import ConfigError
    from ppsyn.privacy.account import StoredAccount
    from ppsyn.releases.audit import Finding
    from ppsyn.releases.audit import audit as check
    from ppsyn.releases.reader import read_manifest

    folder = open_release_at(release, **location)
    stored = None
    if account is not None:
        kept = open_store_at(account, **location)
        with suppress(ConfigError):  # the audit tells what is wrong with the manifest
            stored = StoredAccount(kept, read_manifest(folder)[0].dataset)
    findings: list[Finding] = []
    for finding in check(folder, stored):
        findings.append(finding)
        if not as_json:
            mark = coloured("ok   ", "green") if finding.problem is None else coloured("WRONG", "red")
            click.echo(f"{mark} {finding.subject}" + (f": {finding.problem}" if finding.problem else ""))
    is_clean = all(finding.problem is None for finding in findings)
    if as_json:
        rows = [{"subject": finding.subject, "problem": finding.problem} for finding in findings]
        print_json({"release": release, "ok": is_clean, "findings": rows})
    if not is_clean:
        sys.exit(Exit.AUDIT)


@click.command()
@click.argument("release", metavar="RELEASE")
@click.option("--rows", type=click.IntRange(min=0, max=ROWS), help="How many; by default as many as were released.")
@click.option(
    "--seed", type=click.IntRange(min=0, max=2**64 - 1), help="Equal seeds give equal rows; by default the release's."
)
@click.option(
    "--out",
    type=FilePath(),
    required=True,
    help="The file to write: .parquet, .csv or .csv.gz; with workers a new folder, of Parquet files.",
)
@click.option(
    "--row-group",
    type=click.IntRange(min=1, max=BATCH_ROWS),
    default=2**17,
    show_default=True,
    help="Rows of a row group of the file, and about as many in memory; the rows are the same for any.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1, max=WORKERS),
    help="Have so many Dask workers of this machine make the rows.",
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="Have the workers of a Dask scheduler make them, at tcp:// or tls://."
)
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
    """Make rows from the model of RELEASE, at no cost in privacy.

    Any number of rows takes the same memory, and the file appears when it is complete. Dask workers write
    several files into a new folder, which hold the same rows in the order of their names.

    \b
    Examples:
      ppsyn regenerate out/releases/adult/RUN --out again.csv
      ppsyn regenerate out/releases/adult/RUN --rows 1000000 --seed 7 --out more.parquet
      ppsyn regenerate out/releases/adult/RUN --rows 100000000 --out many --workers 4
    """
    from ppsyn.flows.cli.regenerate import check_name, recipe_of, write, write_parts

    runtime = _runtime_of(workers, scheduler)
    if not runtime.is_spread:
        check_name(Path(out))
    recipe = recipe_of(open_release_at(release, **location), rows, seed)
    if runtime.is_spread:
        written = write_parts(recipe, Path(out), row_group, runtime, is_quiet=quiet)
    else:
        written = write(recipe, Path(out), row_group, is_quiet=quiet)
    if as_json:
        left_out = [list(pair) for pair in recipe.left_out]
        print_json({"release": release, "rows": written, "seed": seed, "out": out, "left_out": left_out})
    else:
        click.echo(f"{written} rows in {out}")
        if recipe.left_out:
            click.echo(_told_left_out(recipe.left_out), err=True)


def _told_left_out(pairs: "Sequence[Clique]") -> str:
    from ppsyn.generation.sampling import SWAPPED_ROWS

    return (
        f"Not in these rows: {len(pairs)} pairs of attributes that the model's tree has no room for, such as "
        f"{' and '.join(pairs[0])}. Tables of less than {SWAPPED_ROWS:,} rows have them."
    )


def _runtime_of(workers: int | None, scheduler: str | None) -> "RuntimeConfig":
    from pydantic import ValidationError

    from ppsyn.errors import ConfigError, translated
    from ppsyn.schemas.config import RuntimeConfig
    from ppsyn.schemas.files import rule_of

    def describe(error: ValidationError) -> str:
        return " ".join(" ".join([*map(str, fault["loc"]), rule_of(fault)]) for fault in error.errors())

    with translated(ValidationError, to=ConfigError, message=describe):
        return RuntimeConfig(workers=workers, scheduler=scheduler)
