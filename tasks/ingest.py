"""From the private table to codes, with its budget reserved first."""

from prefect import get_run_logger

from ppsyn.runs import preflight
from ppsyn.runs import record as records
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import RunRef
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store
from ppsyn.tasks.step import step


@step("check inputs")
def check_inputs(ref: RunRef, config: ReleaseConfig, table: TableSchema) -> None:
    """See that a new run can be done at all: the plan, the budget, the names of the columns. No row is read."""
    if not records.has_record(open_store(ref.root), ref.run):
        for sentence in preflight.check_possible(config, table):
            get_run_logger().warning(sentence)


@step("open account")
def open_account(ref: RunRef, config: ReleaseConfig, table: TableSchema) -> None:
    """Write down the inputs, try the stores, reserve the budget; or see that the inputs are still the run's."""
    preflight.begin(ref, config, table)


@step("ingest")
def ingest(ref: RunRef) -> None:
    """Read the private table in batches, check it, and keep it as codes in the private store."""
    preflight.snapshot(ref)
