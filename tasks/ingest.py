"""From the private table to codes, with its budget set aside first."""

from prefect import task

from ppsyn.runs import records
from ppsyn.runs.run import plan_of
from ppsyn.sources import check_source
from ppsyn.storage import open_store, prove
from schemas.release import ReleaseConfig
from schemas.run import RunRef
from schemas.table import TableSchema
from tasks.policies import FREE, PRIVATE, sealed


@task(name="check inputs", task_run_name="{ref.dataset} {ref.run} check inputs", **FREE)
@sealed
def check_inputs(ref: RunRef, config: ReleaseConfig, table: TableSchema) -> None:
    """See that the run can be done at all: the plan, the stores, the names of the columns. No row is read."""
    records.check_person(config.privacy, table)
    plan_of(records.new_record(config, table, ref.run))
    for place in {place.url: place for place in (ref.root, ref.private, ref.releases)}.values():
        prove(open_store(place))
    if not records.has_record(open_store(ref.root), ref.run):
        check_source(config.source, table, config.privacy.person)


@task(name="open account", task_run_name="{ref.dataset} {ref.run} open account", **FREE)
@sealed
def open_account(ref: RunRef, config: ReleaseConfig, table: TableSchema) -> None:
    """Write down the inputs and set the budget aside, or see that they are those of the run that is resumed."""
    record = records.new_record(config, table, ref.run)
    if records.has_record(open_store(ref.root), ref.run):
        records.check_unchanged(ref, record)
    else:
        records.check_budget(ref, config)
        records.write_record(open_store(ref.root), record)
    records.hold_budget(ref, config)


@task(name="ingest", task_run_name="{ref.dataset} {ref.run} ingest", **PRIVATE)
@sealed
def ingest(ref: RunRef) -> None:
    """Read the private table in batches, check it, and keep it as codes in the private store."""
    records.snapshot(ref)
