"""Dask's workers, for as long as a block lasts: some of this machine, or those of a scheduler that is there already."""
# Dask leaves many of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from prefect import Task

from ppsyn.errors import ClusterError
from ppsyn.schemas.config import RuntimeConfig

if TYPE_CHECKING:
    from prefect_dask.task_runners import DaskTaskRunner

_PATIENCE_SECONDS = 60
_LOOPBACK = "127.0.0.1"


@contextmanager
def opened(runtime: RuntimeConfig) -> "Generator[DaskTaskRunner | None]":
    """Workers as the release file asks for them; None if it does not.

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
    from dask import config  # noqa: PLC0415  # takes seconds, and few releases ask for it
    from distributed import LocalCluster, Security  # noqa: PLC0415
    from prefect_dask.task_runners import DaskTaskRunner  # noqa: PLC0415

    for name in ("distributed", "prefect.task_runner.dask"):
        logging.getLogger(name).setLevel(logging.WARNING)  # they tell of every connection
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
    with failures_told("resume the run"):
        for future in [runner.submit(task, dict(call)) for call in calls]:
            future.result()


@contextmanager
def failures_told(remedy: str) -> Generator[None]:
    """Tell of workers that died over and over, or of a scheduler that is gone, in a sentence.

    Raises:
        ClusterError: In the place of what Dask says of it.
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
