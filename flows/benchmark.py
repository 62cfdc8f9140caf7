"""The benchmark flow: every mechanism on every table, a task a run; runs that are done already are not repeated."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from prefect import flow
from prefect.futures import PrefectFuture, as_completed
from prefect.task_runners import ThreadPoolTaskRunner

from ppsyn.benchmark.options import check_possible
from ppsyn.benchmark.results import merge
from ppsyn.benchmark.runs import missing_runs, start_runs
from ppsyn.errors import PPSynError
from ppsyn.schemas.benchmark import BenchmarkRun, BenchmarkSettings
from ppsyn.schemas.locations import Location
from ppsyn.schemas.run import RunRef
from ppsyn.tasks.benchmark import measure


@flow(name="benchmark", persist_result=False, log_prints=False)
def benchmark(settings: BenchmarkSettings, jobs: int = 1) -> str:
    """Run what is not done yet, and put all rows together; returns the file of them.

    A run that fails does not stop the others; the first failure is raised when all are done.
    Prefect is told which runs there are, never what they found.

    Args:
        settings: What to run.
        jobs: Processes to run it in.
    """
    check_possible(settings)
    missing = missing_runs(settings)
    failures: list[PPSynError] = []
    for number, (run, failure) in enumerate(_measured(missing, Path(settings.out), jobs), 1):
        failures += [] if failure is None else [failure]
        _tell(f"{number} of {len(missing)}: {_describe(run)}" + ("" if failure is None else f" failed: {failure}"))
    file = merge(Path(settings.out))
    if failures:
        raise failures[0]
    return str(file)


def _measured(
    missing: Sequence[BenchmarkRun], out: Path, jobs: int
) -> Iterator[tuple[BenchmarkRun, PPSynError | None]]:
    """Each run when it is done, with its failure if it failed."""
    if jobs == 1:
        for run in missing:
            yield run, _failure(measure(_ref(run, out), run, return_state=True).result(raise_on_failure=False))
        return
    runner: ThreadPoolTaskRunner[None] = ThreadPoolTaskRunner(max_workers=jobs)
    with runner, start_runs(missing, jobs):
        waiting: dict[PrefectFuture[None], BenchmarkRun] = {
            runner.submit(measure, {"ref": _ref(run, out), "run": run}): run for run in missing
        }
        for future in as_completed(list(waiting)):
            yield waiting[future], _failure(future.result(raise_on_failure=False))


def _failure(outcome: object) -> PPSynError | None:
    """A failure of the run; anything else that is raised, such as an interrupt, is raised again."""
    if isinstance(outcome, BaseException) and not isinstance(outcome, PPSynError):
        raise outcome
    return outcome if isinstance(outcome, PPSynError) else None


def _ref(run: BenchmarkRun, out: Path) -> RunRef:
    location = Location(url=str(out.resolve()))
    return RunRef(run=run.name, dataset=run.dataset, root=location, private=location, releases=location)


def _describe(run: BenchmarkRun) -> str:
    return f"{run.dataset}, {run.mechanism}, epsilon {run.epsilon:g}, {run.degree}-way, seed {run.seed}"


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
