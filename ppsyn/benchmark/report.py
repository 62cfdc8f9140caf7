"""Which runs of a benchmark are done, which are still to be done, and what they have found so far."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ppsyn.benchmark import plots, results
from ppsyn.benchmark.results import Result, Row
from ppsyn.benchmark.runs import code_digest
from ppsyn.benchmark.summary import Cell, summarize
from ppsyn.benchmark.tables import digest_of, open_table
from ppsyn.schemas.benchmark import BenchmarkRun, BenchmarkSettings


def missing_runs(settings: BenchmarkSettings) -> list[BenchmarkRun]:
    """The runs that are still to be done: with these settings and this code, on these very tables."""
    return [run for run, row in _rows(settings) if row is None]


def _rows(settings: BenchmarkSettings) -> Iterator[tuple[BenchmarkRun, Row | None]]:
    digests = {name: digest_of(open_table(settings.data_dir, name)) for name in settings.datasets}
    for run in settings.runs(code_digest()):
        yield run, results.read_row(Path(settings.out), run, digests[run.dataset])


def report(settings: BenchmarkSettings, peers: Sequence[Result] = ()) -> list[Cell]:
    """What was found so far, other tools' numbers beside it; draws the plots."""
    own = results.results(row for _, row in _rows(settings) if row is not None)
    cells = summarize([*own, *peers])
    plots.draw_all(cells, Path(settings.out) / "plots")
    return cells
