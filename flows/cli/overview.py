"""All datasets at a glance: `ppsyn overview`."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ppsyn.flows.cli.locations import FilePath, check_unpublished, open_store_at, store_options
from ppsyn.flows.cli.output import (
    JSON_OPTION,
    Exit,
    coloured,
    exit_of,
    handle_errors,
    print_json,
    print_lines,
    print_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ppsyn.privacy.account import StoredAccount
    from ppsyn.reports.overview import Overview, Planned, Trouble
    from ppsyn.storage import Store


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1, type=FilePath())
@click.option("--audit", "is_audited", is_flag=True, help="Audit every release, with its account. Takes a while.")
@click.option(
    "--check", "is_check", is_flag=True, help="Print what needs somebody alone; exit with 7 if anything does."
)
@click.option("--html", type=FilePath(Path), help="A file to write: one page that needs no other, to open or to print.")
@store_options
@JSON_OPTION
@handle_errors
def overview(
    files: tuple[str, ...], is_audited: bool, is_check: bool, html: Path | None, as_json: bool, **location: Any
) -> None:
    """Show all datasets of a store: accounts, releases, what needs somebody, and what comes next.

    The store tells of accounts, runs and releases. If a Prefect server is configured (PREFECT_API_URL), it tells which
    releases it is going to start and which flow runs failed. Each FILE, a release file, tells what the next release of
    its dataset costs. A dataset that cannot be read does not hide the others. If the store cannot be read, the exit
    code is 6; if an audit found something, 5; if an account is damaged, 3.

    With --check, for a schedule: a line for each thing that needs somebody, which says what to do, and exit code 7.

    \b
    Examples:
      ppsyn overview
      ppsyn overview --check
      ppsyn overview adult.yaml --audit --html overview.html
      ppsyn overview --store s3://bucket/ppsyn --json
    """
    from ppsyn.releases.overview import Look

    if html is not None:
        check_unpublished(html, "--html", "the page tells of other releases too")
    look = Look(open_store_at(**location), _audit if is_audited else None)
    planned, troubles, missing = _planned(files)
    found = look.overview(datetime.now(UTC), planned, troubles)
    if html is not None:
        _write(html, found)
    if as_json:
        print_json(found.as_json())
    elif is_check:
        print_lines(f"{trouble.dataset or 'all'}: {trouble.problem} {trouble.remedy}" for trouble in found.all_troubles)
    else:
        _print(found)
    codes = {exit_of(error) or Exit.MISTAKE for error in (*look.failures, *missing)}
    if any(run.audit is not None and not run.audit.is_green for one in found.datasets for run in one.runs):
        codes.add(Exit.AUDIT)
    if is_check and found.all_troubles:
        codes = {Exit.ATTENTION}
    sys.exit(max(codes, default=0))


def _planned(files: tuple[str, ...]) -> tuple[list[Planned], list[Trouble], list[Exception]]:
    """What is to come, as Prefect and these files tell; and what of that is not known."""
    from ppsyn.flows.cli.output import ServerError
    from ppsyn.flows.ephemeral_server import QUIET, is_configured, see_that_it_answers
    from ppsyn.flows.preflight import read_release
    from ppsyn.privacy.budget import rho_of
    from ppsyn.reports.overview import Planned, Trouble

    configs = [(file, read_release(file)) for file in files]
    planned = [Planned(config.dataset, file, None, rho_of(config.privacy)) for file, config in configs]
    if not is_configured():
        return planned, [], []
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        see_that_it_answers(os.environ.get("PREFECT_API_URL"))
        from ppsyn.flows.prefect_view import look

        view = look()
    except ServerError as error:
        return planned, [Trouble(None, str(error), "What it is going to start is not known here.")], [error]
    return [*view.planned, *planned], list(view.troubles), []


def _audit(release: Store, account: StoredAccount) -> list[str]:
    from ppsyn.releases.audit import audit

    return [f"{one.subject}: {one.problem}" for one in audit(release, account) if one.problem is not None]


def _write(html: Path, found: Overview) -> None:
    from ppsyn.errors import StoreError, translated
    from ppsyn.reports.overview import render

    page = render(found)
    with translated(OSError, to=StoreError, message=lambda error: f"Cannot write {html}: {error.strerror}."):
        html.write_bytes(page)


def _print(found: Overview) -> None:
    if found.datasets:
        numbers = ("spent", "reserved", "left", "cap", "releases")
        print_table(("dataset", *numbers, "last", "how long it lasts"), _rows(found), numbers=numbers)
        click.echo("Amounts are zCDP rho. `ppsyn budget DATASET` tells them as epsilon.")
    else:
        click.echo(f"There is no account in {found.store} that can be read.")
    coming = [one for dataset in found.datasets for one in dataset.planned if one.at is not None]
    for one in sorted(coming, key=lambda one: one.at or found.at)[:_COMING]:
        cost = "unknown cost" if one.rho is None else f"rho {float(one.rho):.4g}"
        click.echo(f"next      {one.at:%Y-%m-%d %H:%M} UTC  {one.dataset}, {cost}, by {one.source}")
    for trouble in found.all_troubles:
        mark = coloured("attention", "red")
        click.echo(f"{mark} {f'{trouble.dataset}: ' if trouble.dataset else ''}{trouble.problem} {trouble.remedy}")
    audited = "all audits passed" if found.is_audited else "releases were not audited (--audit)"
    if not found.all_troubles:
        click.echo(f"{coloured('well', 'green')}      nothing needs attention; {audited}")
    elif not found.is_audited:
        click.echo("audits    not checked (--audit)")


_COMING = 10


def _rows(found: Overview) -> Iterator[Sequence[str]]:
    for one in found.datasets:
        amounts = (f"{float(rho):.4g}" for rho in (one.spent, one.reserved, one.left, one.cap))
        last = str(one.releases[-1].at.date()) if one.releases else ""
        yield one.name, *amounts, str(len(one.releases)), last, one.outlook.sentence if one.outlook else ""
