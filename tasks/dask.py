"""Dask's workers: started for as long as a block lasts, they count the encoded table and make synthetic rows.

Workers see fragments of the encoded table and write partial counts into the private store. They draw no noise.
"""
# Dask leaves many of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

import logging
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from prefect import Task

from ppsyn.code_version import code_version
from ppsyn.data.marginals import distributed
from ppsyn.data.snapshot import Shelf, open_snapshot
from ppsyn.errors import ClusterError, InvariantError, RunError
from ppsyn.generation.plan import Recipe
from ppsyn.releases.tables import identity, make_part, part_rows
from ppsyn.runs.record import private_folder, read_record
from ppsyn.schemas.config import RuntimeConfig
from ppsyn.schemas.run import RunRef
from ppsyn.storage import open_store
from ppsyn.tasks.run_registry import run_of
from ppsyn.tasks.step import step

if TYPE_CHECKING:
    from distributed import Future
    from prefect_dask.task_runners import DaskTaskRunner

_PATIENCE_SECONDS = 60
_LOOPBACK = "127.0.0.1"
_PARTS_AHEAD = 2
"""Parts under way for each thread of a worker: none waits for the writer, and memory stays bounded."""


@contextmanager
def start_workers(runtime: RuntimeConfig) -> "Generator[DaskTaskRunner | None]":
    """Start the workers that the release file asks for, or connect to those of its scheduler; None if it asks for none.

    Those of this machine listen on loopback, and to nobody but this process: they have a certificate of their own.

    Raises:
        ClusterError: If there are none to be had.
    """
    if not runtime.is_spread:
        yield None
        return
    with _runner(runtime) as runner:
        try:
            runner.client.wait_for_workers(1, timeout=_PATIENCE_SECONDS)
            problem = None
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            problem = type(error).__name__
        if problem is not None:
            where = runtime.scheduler or "this machine"
            raise ClusterError(f"Expected Dask workers at {where} within {_PATIENCE_SECONDS} seconds: {problem}.")
        yield runner


def _runner(runtime: RuntimeConfig) -> "DaskTaskRunner":
    from dask import config  # noqa: PLC0415  # takes seconds, and few releases use it
    from distributed import LocalCluster, Security  # noqa: PLC0415
    from prefect_dask.task_runners import DaskTaskRunner  # noqa: PLC0415

    for name in ("distributed", "prefect.task_runner.dask"):
        logging.getLogger(name).setLevel(logging.WARNING)  # they log every connection
    if runtime.scheduler is not None:
        return DaskTaskRunner(address=runtime.scheduler)
    # Dask has workers give memory back at once, which makes counting three times slower.
    config.config["distributed"]["nanny"]["pre-spawn-environ"].pop("MALLOC_TRIM_THRESHOLD_", None)
    if not runtime.dashboard:
        config.config["distributed"]["scheduler"]["http"]["routes"] = []  # the port would serve pages all the same
    return DaskTaskRunner(
        cluster_class=LocalCluster,
        cluster_kwargs={
            "n_workers": runtime.workers,
            "threads_per_worker": 1,
            "host": _LOOPBACK,
            "scheduler_kwargs": {"dashboard": runtime.dashboard, "dashboard_address": f"{_LOOPBACK}:0"},
            "security": Security.temporary(),
        },
    )


def run_all(runner: "DaskTaskRunner", task: "Task[..., None]", calls: Sequence[Mapping[str, Any]]) -> None:
    """Have a task done for each of these arguments, and wait for all; a worker that dies has its part done by another.

    Raises:
        PPSynError: The first failure of a task.
        ClusterError: If workers died over and over, or the scheduler is gone.
    """
    with translated_failures("resume the run"):
        for future in [runner.submit(task, dict(call)) for call in calls]:
            future.result()


@contextmanager
def translated_failures(remedy: str) -> Generator[None]:
    """Translate the failures of Dask: workers that died over and over, or a scheduler that is gone.

    Raises:
        ClusterError: Instead of the error of Dask.
    """
    from distributed import KilledWorker  # noqa: PLC0415  # as above
    from distributed.client import FutureCancelledError  # noqa: PLC0415
    from distributed.comm.core import CommClosedError  # noqa: PLC0415

    try:
        yield
        return
    except (KilledWorker, CommClosedError, FutureCancelledError, OSError, TimeoutError) as error:
        problem = type(error).__name__
    raise ClusterError(f"The Dask workers did not finish: {problem}. See their logs, then {remedy}.")


@step("count part", "count part {number}")
def count_part(ref: RunRef, name: str, number: int) -> None:
    """Count one part of a pass into the private store. Idempotent: a part that is there is not counted again."""
    record = read_record(open_store(ref.root), ref.run)
    if record.code.source != code_version().source:
        raise RunError(f"Expected workers with the code that began run {ref.run}. Install the same version on all.")
    shelf = Shelf(open_store(ref.private), private_folder(ref.run))
    distributed.count_part(open_snapshot(shelf, record.table), name, number)


def count_parts_on(ref: RunRef, runner: "DaskTaskRunner") -> distributed.Work:
    """A function that has these workers count all parts of a pass."""

    def work(name: str, parts: int) -> None:
        run_all(runner, count_part, [{"ref": ref, "name": name, "number": number} for number in range(parts)])

    return work


@contextmanager
def count_on(ref: RunRef, runner: "DaskTaskRunner | None") -> Generator[None]:
    """Count the run's marginals on these workers until the block ends; without workers, in this process."""
    run_of(ref).count_with(None if runner is None else count_parts_on(ref, runner))
    try:
        yield
    finally:
        run_of(ref).count_with(None)


def generate_parts(recipe: Recipe, group_rows: int, runtime: RuntimeConfig) -> Iterator[tuple[int, bytes]]:
    """Have Dask's workers make the parts of a table; yields them in order, each with its number of rows.

    Raises:
        ClusterError: If there are no workers, or they do not finish.
    """
    with start_workers(runtime) as runner:
        if runner is None:
            raise InvariantError("Expected a runtime with workers.")
        client, source = runner.client, code_version().source
        ahead = _PARTS_AHEAD * sum(cast("Mapping[str, int]", client.nthreads()).values())
        shared = client.submit(identity, recipe, pure=False)  # by a task: a worker that dies does not take it along
        waiting: deque[tuple[int, Future[Any]]] = deque()
        for number, rows in enumerate(part_rows(recipe)):
            waiting.append((rows, client.submit(make_part, shared, number, group_rows, source, pure=False)))
            if len(waiting) > ahead:
                yield _result(*waiting.popleft())
        while waiting:
            yield _result(*waiting.popleft())


def _result(rows: int, future: "Future[Any]") -> tuple[int, bytes]:
    with translated_failures("try again"):
        return rows, future.result()
