"""The tasks of a release, one for each step. What passes between them is in the stores."""

from typing import Literal

from prefect import get_run_logger

from ppsyn.releases import writer as releases
from ppsyn.reports.progress import describe_last_round
from ppsyn.runs import preflight
from ppsyn.runs import record as records
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import RunRef
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store
from ppsyn.tasks.run_registry import forget, run_of, watchers
from ppsyn.tasks.step import step

_ROUND = "round {number}"


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


@step("restore")
def restore(ref: RunRef) -> int:
    """Go on from the last checkpoint, over the answers after it; returns how many answers there are."""
    forget(ref)
    return run_of(ref).step


@step("count marginals")
def count_marginals(ref: RunRef) -> None:
    """Count what the run will ask for, as far as there is room to keep it. Idempotent: it spends and draws nothing."""
    run_of(ref).count()


@step("measure one-way", "one-way")
def measure_one_way(ref: RunRef) -> None:
    """Measure single attributes, coarse then fine."""
    run = run_of(ref)
    while run.state.stage == "one-way":
        run.ask()
        run.absorb()
        _tell(ref)
    if run.state.chosen is None:
        run.checkpoint()


@step("select", _ROUND + " select")
def select(ref: RunRef, number: int) -> None:  # the round's number is in the task's name
    """Choose the marginal that the model describes worst."""
    run = run_of(ref)
    run.ask()
    run.absorb()
    _tell(ref)


@step("measure", _ROUND + " measure")
def measure(ref: RunRef, number: int) -> None:
    """Measure the chosen marginal."""
    run_of(ref).ask()


@step("fit", _ROUND + " fit")
def fit(ref: RunRef, number: int) -> None:
    """Fit the model to all answers so far."""
    run_of(ref).absorb()
    _tell(ref)


@step("checkpoint", _ROUND + " checkpoint")
def checkpoint(ref: RunRef, number: int) -> None:
    """Keep the state for whoever resumes."""
    run_of(ref).checkpoint()


def stage(ref: RunRef) -> Literal["one-way", "select", "measure", "done"]:
    """What the loop does next, which follows from released values."""
    return run_of(ref).state.stage


def round_number(ref: RunRef) -> int:
    """The number of the round that is under way."""
    return len(run_of(ref).state.rounds) + 1


def describe(ref: RunRef) -> str:
    """The last round in a line."""
    return describe_last_round(run_of(ref).state)


def _tell(ref: RunRef) -> None:
    for watcher in watchers():
        watcher.advanced(run_of(ref).state)


@step("generate")
def generate(ref: RunRef) -> None:
    """Draw synthetic rows from the model into the staging folder."""
    releases.stage_rows(run_of(ref))


@step("validate")
def validate(ref: RunRef) -> None:
    """Check the synthetic table against its schema."""
    releases.stage_validation(run_of(ref))


@step("write artifacts")
def write_artifacts(ref: RunRef) -> None:
    """Write the answers, the model, the ledger, the report and the manifest into the staging folder."""
    releases.stage_records(run_of(ref))


@step("publish")
def publish(ref: RunRef) -> str:
    """Let the release appear, and remove the copy of the private table; returns the release's address."""
    return releases.publish(run_of(ref))


def is_published(ref: RunRef) -> bool:
    """Whether the release is there for all to see."""
    return releases.is_published(run_of(ref))
