"""One run of a benchmark. Its numbers are private: they go into the folder of results, and nowhere else."""

from pathlib import Path

from ppsyn.benchmark.results import write_row
from ppsyn.benchmark.runs import row_of
from ppsyn.schemas.benchmark import BenchmarkRun
from ppsyn.schemas.run import RunRef
from ppsyn.tasks.step import step


@step("benchmark run")
def measure(ref: RunRef, run: BenchmarkRun) -> None:
    """Run a mechanism, measure what it makes, and keep the row."""
    write_row(Path(ref.root.url), run, row_of(run))
