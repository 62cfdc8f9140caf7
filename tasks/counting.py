"""Counting the encoded table on Dask: workers see fragments and write partial counts, and draw no noise."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ppsyn.code_version import code_version
from ppsyn.data.marginals import distributed as spread
from ppsyn.data.snapshot import Shelf, open_snapshot
from ppsyn.errors import RunError
from ppsyn.runs.record import private_folder, read_record
from ppsyn.schemas.run import RunRef
from ppsyn.storage import open_store
from ppsyn.tasks.cluster import run_all
from ppsyn.tasks.runs import run_of
from ppsyn.tasks.step import step

if TYPE_CHECKING:
    from prefect_dask.task_runners import DaskTaskRunner


@step("count part", "count part {number}")
def count_part(ref: RunRef, name: str, number: int) -> None:
    """Count one part of a pass into the private store. Idempotent: a part that is there is not counted again."""
    record = read_record(open_store(ref.root), ref.run)
    if record.code.source != code_version().source:
        raise RunError(f"Expected workers with the code that began run {ref.run}. Install the same version on all.")
    shelf = Shelf(open_store(ref.private), private_folder(ref.run))
    spread.count_part(open_snapshot(shelf, record.table), name, number)


def work_of(ref: RunRef, runner: "DaskTaskRunner") -> spread.Work:
    """What has these workers count the parts of a pass."""

    def work(name: str, parts: int) -> None:
        run_all(runner, count_part, [{"ref": ref, "name": name, "number": number} for number in range(parts)])

    return work


@contextmanager
def spread_over(ref: RunRef, runner: "DaskTaskRunner | None") -> Generator[None]:
    """Have the run's marginals counted by these workers, if there are any."""
    run_of(ref).work = None if runner is None else work_of(ref, runner)
    try:
        yield
    finally:
        run_of(ref).work = None
