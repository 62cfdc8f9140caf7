"""Documents about a release, for those who have to sign for it: `ppsyn record`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ppsyn.flows.cli.locations import bucket_options, check_unpublished, open_release_at
from ppsyn.flows.cli.output import JSON_OPTION, handle_errors, print_json

_SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
_MANY = "; may be repeated."


@click.command()
@click.argument("release", metavar="RELEASE")
@click.option("--out", type=click.Path(path_type=Path), help="The new folder; by default record-RUN.")
@click.option("--curator", "curators", multiple=True, metavar="NAME", help=f"Who publishes the table{_MANY}")
@click.option("--author", "authors", multiple=True, metavar="NAME", help=f"Who fills in the record{_MANY}")
@click.option("--use", "intended_use", metavar="TEXT", help="What the table is meant for.")
@click.option("--place", metavar="TEXT", help="What region the table is about, or whose laws apply.")
@click.option("--sector", type=click.Choice(_SECTORS), help="Of the table, as the registry names it.")
@click.option("--csv", "with_csv", is_flag=True, help="Write the synthetic table as CSV, too.")
@bucket_options
@JSON_OPTION
@handle_errors
def record(
    release: str,
    *,
    out: Path | None,
    curators: tuple[str, ...],
    authors: tuple[str, ...],
    intended_use: str | None,
    place: str | None,
    sector: str | None,
    with_csv: bool,
    as_json: bool,
    **location: Any,
) -> None:
    """Write the documents that go with RELEASE, a published folder, into a new folder.

    A record in the form of the registry of differential privacy deployments; a privacy statement in plain words, and
    one for disclosure control with computed examples; a data dictionary; a citation; checksums. All of it follows from
    the published files, which are verified first and never changed. What no release says of itself is left to be
    filled in, unless options say it.

    \b
    Examples:
      ppsyn record out/releases/adult/latest
      ppsyn record out/releases/adult/RUN --curator "Office of Statistics" --place Norway --sector Government --csv
      ppsyn record s3://bucket/releases/adult/RUN --out adult-record --json
    """
    from ppsyn.releases.deployment_record import write_documents
    from ppsyn.releases.reader import read_manifest
    from ppsyn.reports.deployment_record import TO_FILL, People

    folder = open_release_at(release, **location)
    target = out or Path(f"record-{read_manifest(folder)[0].run}")
    check_unpublished(target, "--out", "a release is sealed")
    people = People(curators, authors, intended_use or TO_FILL, place or TO_FILL, sector)
    write_documents(folder, people, target, with_csv=with_csv)
    if as_json:
        files = sorted(path.name for path in target.iterdir())
        print_json({"release": release, "out": str(target), "files": files, "to_fill_in": people.missing})
        return
    click.echo(f"written   {target}: {', '.join(sorted(path.name for path in target.iterdir()))}")
    if people.missing:
        click.echo(f"fill in   {', '.join(people.missing)} in deployment_record.yaml")
