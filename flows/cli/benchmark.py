"""The command that compares mechanisms."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ppsyn.flows.cli.locations import FilePath
from ppsyn.flows.cli.output import JSON_OPTION, handle_errors, print_json
from ppsyn.flows.ephemeral_server import prefect_api

if TYPE_CHECKING:
    from ppsyn.schemas.benchmark import BenchmarkSettings


@click.group(invoke_without_command=True)
@click.option("--datasets", default="adult", show_default=True, help="Tables, separated by commas.")
@click.option(
    "--mechanisms",
    default="ppsyn,aim,mst,independent",
    show_default=True,
    help="Mechanisms; with settings of their own as NAME:SETTING=VALUE+SETTING=VALUE.",
)
@click.option("--epsilons", default="0.1,1", show_default=True, help="Privacy budgets.")
@click.option("--seeds", default="0-4", show_default=True, help="Seeds, with a run for each; 0-4 is 0,1,2,3,4.")
@click.option("--degree", default="3", show_default=True, help="Attributes of each marginal in the workload.")
@click.option(
    "--workload-seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the workload and of the range queries, which all mechanisms share.",
)
@click.option("--model-mb", type=float, default=1.0, show_default=True, help="The largest model, in MB.")
@click.option(
    "--metrics",
    default="workload,ways,ranges",
    show_default=True,
    help="What to measure; classification takes five more runs.",
)
@click.option("--data-dir", help="Tables as NAME.csv.gz and NAME-domain.json; without it the bundled Adult.")
@click.option("--peers", type=FilePath(), help="A CSV file with the numbers of other tools.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Number of processes.")
@click.option("--out", default="out/benchmark", show_default=True, help="The folder of results.")
@JSON_OPTION
@click.pass_context
@handle_errors
def benchmark(context: click.Context, as_json: bool, jobs: int, peers: str | None, **options: Any) -> None:
    """Compare mechanisms on public tables.

    Every run is a row of OUT/runs.parquet; plots are in OUT/plots. Runs that OUT already holds, with the
    same settings, table and code, are not repeated: to continue after an interruption, repeat the command.
    The numbers are computed from the tables themselves. If a table is private, so are they.

    \b
    Examples:
      ppsyn benchmark --mechanisms ppsyn,aim --epsilons 0.1,1 --seeds 0-4
      ppsyn benchmark --data-dir DIR --datasets br2000,loans --epsilons 0.05,0.1,0.5,1,2 --out out/figure
      ppsyn benchmark --mechanisms ppsyn:rounds=25,ppsyn:rounds=50,ppsyn:rounds=100 --epsilons 0.1
    """
    if context.invoked_subcommand is not None:
        return
    from ppsyn.benchmark.options import settings_of
    from ppsyn.benchmark.plots import draw_all
    from ppsyn.benchmark.results import read_peers, results
    from ppsyn.benchmark.runs import finished_rows, missing_runs
    from ppsyn.benchmark.summary import WARNING, as_text, summarize

    listed = {name: options.pop(name) for name in ("datasets", "mechanisms", "epsilons", "seeds", "degree", "metrics")}
    settings = settings_of(listed, **options)
    others = [] if peers is None else read_peers(Path(peers), settings.mechanisms, settings.degrees[0])
    failure = _run_benchmark(settings, jobs) if missing_runs(settings) else None
    cells = summarize([*results(finished_rows(settings)), *others])
    draw_all(cells, Path(settings.out) / "plots")
    if as_json:
        print_json({"out": settings.out, "warning": WARNING, "cells": [cell.as_json() for cell in cells]})
    else:
        click.echo(as_text(cells))
    if failure is not None:
        raise failure


def _run_benchmark(settings: "BenchmarkSettings", jobs: int) -> Exception | None:
    """Run what is not done yet; returns the first failure of a run."""
    from importlib import import_module

    from ppsyn.errors import PPSynError

    with prefect_api(meanwhile=lambda: import_module("ppsyn.flows.benchmark") and None):
        from prefect.exceptions import TerminationSignal

        from ppsyn.flows.benchmark import benchmark as flow
        from ppsyn.tasks.step import signal_in

        try:
            flow(settings, jobs)
        except PPSynError as error:
            return error
        except (Exception, KeyboardInterrupt, TerminationSignal) as error:
            if not signal_in(error):
                raise
            click.echo("Finished runs are kept. To continue, repeat the command.", err=True)
            raise KeyboardInterrupt from None
    return None


@benchmark.command("series")
@click.option("--datasets", default="adult", show_default=True, help="Tables, separated by commas.")
@click.option(
    "--changes",
    default="same,replaced,jump,turn",
    show_default=True,
    help="What happens to the table: nothing; a twentieth of its rows is replaced each time; from half-way on, another "
    "population; from half-way on, an attribute in reverse.",
)
@click.option("--mechanisms", default="ppsyn,aim", show_default=True, help="Mechanisms.")
@click.option("--seeds", default="0-4", show_default=True, help="Seeds, with a series for each; 0-4 is 0,1,2,3,4.")
@click.option("--releases", type=click.IntRange(2, 200), default=12, show_default=True, help="Releases of a series.")
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="Of a whole series, at delta 1e-9.")
@click.option("--model-mb", type=float, default=1.0, show_default=True, help="The largest model, in MB.")
@click.option("--data-dir", help="Tables as NAME.csv.gz and NAME-domain.json; without it the bundled Adult.")
@click.option("--out", default="out/series", show_default=True, help="The folder of results.")
@JSON_OPTION
@handle_errors
def series(as_json: bool, data_dir: str | None, out: str, **options: Any) -> None:
    """Compare releases that learn from the ones before them with releases that do not.

    A series shares one budget. Each of its releases is made twice: learning from all before it, and alone. The last one
    is also made with the budget of all. Ratios are of workload errors, their mean and spread over the seeds. Series
    that OUT already holds, of the same table and code, are not repeated.

    \b
    Examples:
      ppsyn benchmark series --data-dir DIR --datasets adult,br2000
      ppsyn benchmark series --changes same --releases 50 --seeds 0
    """
    from dataclasses import asdict

    from ppsyn.benchmark.options import series_of
    from ppsyn.benchmark.series import measure, summarize
    from ppsyn.benchmark.summary import WARNING

    found = {one: measure(one, data_dir, Path(out)) for one in series_of(**options)}
    ratios = summarize(found)
    if as_json:
        print_json({"out": out, "warning": WARNING, "series": [asdict(one) for one in ratios]})
        return
    for one in ratios:
        last, at_once = (f"{mean:.3f} ({spread:.3f})" for mean, spread in (one.last, one.at_once))
        click.echo(f"{one.dataset}, {one.change}, {one.mechanism}, {one.seeds} seeds")
        click.echo(f"  last release, learned to alone   {last}")
        click.echo(f"  last release, learned to at once {at_once}")
        click.echo(f"  worst month                      {one.worst:.3f}")
        click.echo(f"  month by month                   {' '.join(f'{mean:.2f}' for mean, _ in one.months)}")
        click.echo(f"  seconds, last to fifth           {one.slower:.2f}")
    click.echo(f"\n{WARNING}")
