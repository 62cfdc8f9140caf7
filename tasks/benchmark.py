"""One run of a benchmark. Its numbers are private: they go into the folder of results, and nowhere else."""

from pathlib import Path

from prefect import task

from ppsyn.benchmark.processes import row_of
from ppsyn.benchmark.results import write_row
from schemas.benchmark import BenchmarkRun
from schemas.run import RunRef
from tasks.policies import PRIVATE, sealed


@task(name="benchmark run", task_run_name="{ref.dataset} {ref.run} benchmark run", **PRIVATE)
@sealed
def measure(ref: RunRef, run: BenchmarkRun) -> None:
    """Run a mechanism, measure what it makes, and keep the row."""
    write_row(Path(ref.root.url), run, row_of(run))
