"""The command line. What a command needs is imported when it runs, so that help is there at once."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from flows.embedded import prefect_api
from flows.exits import Exit, exit_of

if TYPE_CHECKING:
    from ppsyn.storage import Store
    from schemas.benchmark import BenchmarkSettings

F = TypeVar("F", bound=Callable[..., Any])

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=_CONTEXT)
@click.version_option(package_name="ppsyn")
def main() -> None:
    """Release differentially private synthetic tables.

    \b
    Examples:
      ppsyn release examples/adult/release.yaml
      ppsyn release adult.yaml --set privacy.epsilon=0.5
      ppsyn budget adult
      ppsyn audit out/releases/adult/RUN
      ppsyn regenerate out/releases/adult/RUN --rows 1000000 --seed 7 --out more.parquet
      ppsyn benchmark --mechanisms ppsyn,aim --epsilons 0.1,1

    \b
    Exit codes:
      0  done
      1  a defect of ppsyn
      2  a mistake in the command, the release file, the schema or the table
      3  the account does not have what was asked for
      4  the run cannot be resumed, or another process goes on with it
      5  the audit found something
      6  a store, a database or the Prefect server failed; try again, or resume
      130  interrupted; resume
    """


def _told(function: F) -> F:
    """Tell a person's mistake in a sentence, and give each kind of failure its exit code."""

    @wraps(function)
    def command(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            _fail(Exit.INTERRUPTED, "Interrupted.")
        except Exception as error:
            code = exit_of(error)
            if code is None:
                raise
            _fail(code, str(error))

    return command  # pyright: ignore[reportReturnType]  # the same parameters


def _fail(code: Exit, message: str) -> NoReturn:
    click.echo(_coloured(message, "red"), err=True)
    sys.exit(code)


def _coloured(text: str, colour: str) -> str:
    """The text in a colour, unless the environment asks for none (https://no-color.org)."""
    return text if os.environ.get("NO_COLOR") else click.style(text, fg=colour)


def _bucket_options(function: F) -> F:
    """How to reach a bucket."""
    for option in (
        click.option("--endpoint", envvar="AWS_ENDPOINT_URL", help="An S3 server other than Amazon's."),
        click.option("--region", default="us-east-1", show_default=True, help="The region of a bucket."),
        click.option(
            "--credentials", default="AWS", show_default=True,
            help="NAME of the environment's NAME_ACCESS_KEY_ID and NAME_SECRET_ACCESS_KEY.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def _store_options(function: F) -> F:
    """Where accounts and runs are kept."""
    help_text = "Where accounts and runs are kept: a folder or s3://bucket/prefix."
    option = click.option("--store", default="out", envvar="PPSYN_STORE", show_default=True, help=help_text)
    return option(_bucket_options(function))


def _open(store: str, endpoint: str | None, region: str, credentials: str) -> "Store":
    from pydantic import ValidationError

    from ppsyn.errors import ConfigError
    from ppsyn.storage import open_store
    from schemas.files import rule_of
    from schemas.places import Place

    is_bucket = store.startswith("s3://")
    try:
        place = Place(url=store, endpoint=endpoint if is_bucket else None, region=region, credentials=credentials)
    except ValidationError as error:
        raise ConfigError(" ".join(rule_of(fault, is_secret=True) for fault in error.errors())) from None
    if place.is_local and not Path(store).is_dir():
        raise ConfigError(f"There is no folder {store}.")
    return open_store(place)


_JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


def _print_json(document: object) -> None:
    click.echo(json.dumps(document, indent=2))


@main.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--set", "settings", multiple=True, metavar="FIELD=VALUE", help="Change a field: privacy.epsilon=0.5")
@click.option("--resume", metavar="RUN", help="Go on with a run that was interrupted.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@_JSON_OPTION
@_told
def release(file: str, settings: tuple[str, ...], resume: str | None, quiet: bool, as_json: bool) -> None:
    """Release a synthetic table as FILE says.

    FILE is validated as a whole before anything starts. Progress goes to standard error. Without a
    Prefect server (PREFECT_API_URL) one is started for as long as the release takes.

    \b
    Examples:
      ppsyn release adult.yaml
      ppsyn release adult.yaml --set privacy.epsilon=0.5 --set stores.root=s3://bucket/ppsyn
      ppsyn release adult.yaml --resume 20260102-030405-9f8e7d6c
    """
    from flows.inputs import prepare, read_inputs

    inputs = read_inputs(file, settings)
    with prefect_api(meanwhile=lambda: prepare(*inputs, is_new=resume is None)):
        from prefect.exceptions import TerminationSignal

        from flows.display import Display, has_begun, summary
        from flows.release import release as flow
        from ppsyn.errors import ResumeRefusedError
        from tasks.runs import watched_by

        display = Display(is_quiet=quiet)
        try:
            with display, watched_by(display):
                url = flow(str(Path(file).resolve()), settings=settings, resume=resume)
        except (Exception, KeyboardInterrupt, TerminationSignal) as error:
            if not isinstance(error, ResumeRefusedError) and display.ref is not None and has_begun(display.ref):
                _say_how_to_resume(file, settings, display.ref.run)
            if isinstance(error, TerminationSignal):
                raise KeyboardInterrupt from None
            raise
        facts = summary(url, display.run)
    if as_json:
        _print_json(facts.as_json())
    else:
        click.echo(facts.as_text())


def _say_how_to_resume(file: str, settings: tuple[str, ...], run: str) -> None:
    changed = (part for setting in settings for part in ("--set", setting))
    command = shlex.join(["ppsyn", "release", file, *changed, "--resume", run])
    click.echo(f"What was paid for is kept. To go on: {command}", err=True)


@main.command()
@click.argument("dataset")
@click.option("--set-cap", metavar="EPSILON", type=float, help="Change the cap, at the account's delta.")
@_store_options
@_JSON_OPTION
@_told
def budget(dataset: str, set_cap: float | None, as_json: bool, **place: Any) -> None:
    """Show the account of DATASET: its cap, what is spent, what is left, and each release's part.

    \b
    Examples:
      ppsyn budget adult
      ppsyn budget adult --store s3://bucket/ppsyn --json
      ppsyn budget adult --set-cap 12
    """
    from flows.statements import set_cap as change
    from flows.statements import statement

    store = _open(**place)
    if set_cap is not None:
        change(store, dataset, set_cap)
    found = statement(store, dataset)
    if as_json:
        _print_json(found.as_json())
    else:
        found.print()


def _confirm(question: str) -> None:
    try:
        is_confirmed = click.confirm(question)
    except click.Abort:
        is_confirmed = False
    if not is_confirmed:
        _fail(Exit.INTERRUPTED, "Nothing was changed.")


@main.command()
@click.argument("run")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--private", help="Where the run's encoded table is, if not in the store.")
@_store_options
@_told
def abandon(run: str, yes: bool, private: str | None, **place: Any) -> None:
    """Give up RUN: free the budget that it holds and has not spent, and remove its copy of the table.

    What it has spent stays spent. An abandoned run cannot be resumed.

    \b
    Example:
      ppsyn abandon 20260102-030405-9f8e7d6c
    """
    from flows.statements import give_up

    store = _open(**place)
    if not yes:
        _confirm(f"Abandon run {run} for good?")
    kept = _open(**{**place, "store": private}) if private else store
    click.echo(give_up(store, kept, run))


@main.command()
@click.argument("release", metavar="RELEASE")
@click.option("--account", metavar="STORE", help="Also check the account itself, in this store.")
@_bucket_options
@_JSON_OPTION
@_told
def audit(release: str, account: str | None, as_json: bool, **place: Any) -> None:
    """Check RELEASE, a published folder, without the private table.

    Verifies the digests of all files, the chain of account entries, the arithmetic of the budget (and
    the guarantee by dp-accounting), replays the loop over the published answers, refits the model,
    generates the rows again and compares them with the published table.

    \b
    Examples:
      ppsyn audit out/releases/adult/RUN
      ppsyn audit s3://bucket/releases/adult/RUN --endpoint https://s3.example.org --json
      ppsyn audit out/releases/adult/RUN --account out
    """
    from ppsyn.dp.account import StoredAccount
    from ppsyn.errors import ConfigError, StoreError
    from ppsyn.releases.audit import Finding
    from ppsyn.releases.audit import audit as check
    from ppsyn.releases.opened import read_manifest

    folder = _open(release, **place)
    book = None
    if account is not None:
        kept = _open(account, **place)
        with suppress(ConfigError, StoreError):  # the audit tells what is wrong with the manifest
            book = StoredAccount(kept, read_manifest(folder)[0].dataset)
    findings: list[Finding] = []
    for finding in check(folder, book):
        findings.append(finding)
        if not as_json:
            mark = _coloured("ok   ", "green") if finding.problem is None else _coloured("WRONG", "red")
            click.echo(f"{mark} {finding.subject}" + (f": {finding.problem}" if finding.problem else ""))
    is_clean = all(finding.problem is None for finding in findings)
    if as_json:
        rows = [{"subject": finding.subject, "problem": finding.problem} for finding in findings]
        _print_json({"release": release, "ok": is_clean, "findings": rows})
    if not is_clean:
        sys.exit(Exit.AUDIT)


@main.command()
@click.argument("release", metavar="RELEASE")
@click.option("--rows", type=click.IntRange(min=0), help="How many; by default as many as were released.")
@click.option("--seed", type=click.IntRange(min=0), help="Equal seeds give equal rows; by default the release's.")
@click.option("--out", type=click.Path(dir_okay=False), required=True, help="The Parquet file to write.")
@_bucket_options
@_JSON_OPTION
@_told
def regenerate(release: str, rows: int | None, seed: int | None, out: str, as_json: bool, **place: Any) -> None:
    """Make rows from the model of RELEASE, at no cost in privacy.

    \b
    Examples:
      ppsyn regenerate out/releases/adult/RUN --out again.parquet
      ppsyn regenerate out/releases/adult/RUN --rows 1000000 --seed 7 --out more.parquet
    """
    from flows.regenerate import write

    folder = _open(release, **place)
    written = write(folder, rows, seed, Path(out))
    if as_json:
        _print_json({"release": release, "rows": written, "seed": seed, "out": out})
    else:
        click.echo(f"{written} rows in {out}")


def _benchmark_options(function: F) -> F:
    """What to compare, on what, and how."""
    for option in reversed((
        click.option("--datasets", default="adult", show_default=True, help="Tables, separated by commas."),
        click.option(
            "--mechanisms", default="ppsyn,aim,mst,independent", show_default=True,
            help="Mechanisms; with settings of their own as NAME:SETTING=VALUE+SETTING=VALUE.",
        ),
        click.option("--epsilons", default="0.1,1", show_default=True, help="Privacy budgets."),
        click.option("--seeds", default="0-4", show_default=True, help="A run for each; 0-4 is 0,1,2,3,4."),
        click.option("--degree", default="3", show_default=True, help="Attributes of each marginal in the workload."),
        click.option(
            "--workload-seed", type=click.IntRange(min=0), default=0, show_default=True,
            help="Of the workload and the range queries, which all mechanisms share.",
        ),
        click.option("--model-mb", type=float, default=1.0, show_default=True, help="The largest model, in MB."),
        click.option(
            "--metrics", default="workload,ways,ranges", show_default=True,
            help="What to measure; classification takes five runs more.",
        ),
        click.option("--data-dir", help="Tables as NAME.csv.gz and NAME-domain.json; without it the bundled Adult."),
        click.option("--peers", type=click.Path(dir_okay=False), help="A CSV file with the numbers of other tools."),
        click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes at a time."),
        click.option("--out", default="out/benchmark", show_default=True, help="The folder of results."),
    )):  # fmt: skip
        function = option(function)
    return function


@main.group(invoke_without_command=True)
@_benchmark_options
@_JSON_OPTION
@click.pass_context
@_told
def benchmark(context: click.Context, as_json: bool, jobs: int, peers: str | None, **asked: Any) -> None:
    """Compare mechanisms on tables whose contents may be known.

    Every run is a row of OUT/runs.parquet; plots are in OUT/plots. Runs that OUT holds already, with the
    same settings, table and code, are not repeated: to go on after an interruption, give the same command.
    The numbers are computed from the tables themselves. If a table is private, so are they.

    \b
    Examples:
      ppsyn benchmark --mechanisms ppsyn,aim --epsilons 0.1,1 --seeds 0-4
      ppsyn benchmark --data-dir DIR --datasets br2000,loans --epsilons 0.05,0.1,0.5,1,2 --out out/figure
      ppsyn benchmark --mechanisms ppsyn:eta=0.5,ppsyn:eta=0.7,ppsyn:eta=1.0 --epsilons 0.1
    """
    if context.invoked_subcommand is not None:
        return
    from ppsyn.benchmark.asked import settings_of
    from ppsyn.benchmark.report import missing_runs, report
    from ppsyn.benchmark.results import read_peers
    from ppsyn.benchmark.summary import WARNING, as_text

    listed = {name: asked.pop(name) for name in ("datasets", "mechanisms", "epsilons", "seeds", "degree", "metrics")}
    settings = settings_of(listed, **asked)
    others = [] if peers is None else read_peers(Path(peers), settings.mechanisms, settings.degrees[0])
    failure = _run_benchmark(settings, jobs) if missing_runs(settings) else None
    cells = report(settings, others)
    if as_json:
        _print_json({"out": settings.out, "warning": WARNING, "cells": [cell.as_json() for cell in cells]})
    else:
        click.echo(as_text(cells))
    if failure is not None:
        raise failure


def _run_benchmark(settings: "BenchmarkSettings", jobs: int) -> Exception | None:
    """Run what is not done yet; returns the first failure of a run."""
    from importlib import import_module

    from ppsyn.errors import PPSynError

    with prefect_api(meanwhile=lambda: import_module("flows.benchmark") and None):
        from prefect.exceptions import TerminationSignal

        from flows.benchmark import benchmark as flow

        try:
            flow(settings, jobs)
        except PPSynError as error:
            return error
        except (KeyboardInterrupt, TerminationSignal):
            click.echo("What is done is kept. To go on, give the same command.", err=True)
            raise KeyboardInterrupt from None
    return None
