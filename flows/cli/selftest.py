"""The command that attacks releases of a made-up table."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ppsyn.flows.cli.output import JSON_OPTION, Exit, handle_errors, print_json

if TYPE_CHECKING:
    from ppsyn.selftest.attacks import Finding


@click.group()
def selftest() -> None:
    """Have this installation put to the test. No table of yours is read.

    \b
    Examples:
      ppsyn selftest privacy
    """


@selftest.command()
@click.option(
    "--case", "cases", multiple=True, metavar="NAME", help="A case to attack; may be repeated. By default all."
)
@click.option(
    "--runs", type=click.IntRange(min=20), help="Releases a side; of mst four times, of aim and mwem twice as many."
)
@click.option("--folders", type=click.IntRange(min=20), help="Releases a side that go on to a published folder.")
@click.option(
    "--thorough", is_flag=True, help="So many that the bounds come close to the claim; takes an hour or more."
)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Processes at a time.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True,
    help="Of the synthetic rows; the noise has none.",
)  # fmt: skip
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    help="A folder for selftest.json, the table selftest.md and the plot selftest.svg. "
    "Other cases that the same version has left there stay.",
)
@JSON_OPTION
@handle_errors
def privacy(
    *,
    cases: tuple[str, ...],
    runs: int | None,
    folders: int | None,
    thorough: bool,
    jobs: int,
    seed: int,
    out: str | None,
    as_json: bool,
) -> None:
    """Attack thousands of releases of a small made-up table, with and without one row, and hold the claim against it.

    Each case is attacked by its answers, by its synthetic table and by its published folder, and two folders with the
    same answers are compared byte by byte. The results are lower bounds on mu, which the claim bounds above: an attack
    that passes what is allowed, or a folder that tells more than its answers, exits with 5.

    \b
    Examples:
      ppsyn selftest privacy
      ppsyn selftest privacy --case ppsyn --case persons --runs 5000
      ppsyn selftest privacy --thorough --out out/selftest
    """
    from ppsyn.selftest import results
    from ppsyn.selftest.suite import DEFAULT, THOROUGH, Effort, audit, check_cases

    usual = THOROUGH if thorough else DEFAULT
    effort = Effort(runs or usual.runs, folders or usual.folders, jobs, seed)
    findings: list[Finding] = []
    before = [] if out is None else results.earlier(Path(out))
    if not as_json:
        click.echo(results.line(results.HEADS))
    for finding in audit(check_cases(cases), effort):
        findings.append(finding)
        if not as_json:
            click.echo(results.line(results.cells(finding)))
        if out is not None:  # what is done is kept, should it be interrupted
            results.write(results.merged(findings, before), Path(out))
    if as_json:
        print_json(results.as_json(findings))
    else:
        click.echo(results.NOTE)
    if any(finding.faults for finding in findings):
        sys.exit(Exit.AUDIT)
