"""Runs of a benchmark in processes of their own, several at a time."""

import multiprocessing
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager

from ppsyn.benchmark.results import Row
from ppsyn.benchmark.runs import measure
from ppsyn.errors import ConfigError, InvariantError, PPSynError
from ppsyn.schemas.benchmark import BenchmarkRun
from ppsyn.worker_process import prepare

_BEGUN: dict[str, Future[Row]] = {}


@contextmanager
def begun(runs: Sequence[BenchmarkRun], jobs: int) -> Generator[None]:
    """Have `runs` done in `jobs` processes, in their order. What is not done when the block ends is given up."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), prepare)
    try:
        _BEGUN.update({run.name: pool.submit(_measure, run) for run in runs})
        yield
    finally:
        waiting = [run.name for run in runs if not _BEGUN.pop(run.name).done()]
        for child in set(multiprocessing.active_children()) - others if waiting else ():
            child.terminate()
        pool.shutdown(cancel_futures=True)


def row_of(run: BenchmarkRun) -> Row:
    """The row of a run: of a process that does it, or else done here and now."""
    return _BEGUN[run.name].result() if run.name in _BEGUN else measure(run)


def _measure(run: BenchmarkRun) -> Row:
    """As `measure`, with errors that can travel: those with facts of their own would not arrive."""
    try:
        return measure(run)
    except InvariantError:
        raise
    except PPSynError as error:
        raise ConfigError(str(error)) from None
