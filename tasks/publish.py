"""From the fitted model to a published folder."""

from prefect import task

from ppsyn.releases import publish as releases
from schemas.run import RunRef
from tasks.policies import FREE, sealed
from tasks.runs import run_of


@task(name="generate", task_run_name="{ref.dataset} {ref.run} generate", **FREE)
@sealed
def generate(ref: RunRef) -> None:
    """Draw synthetic rows from the model into the staging folder."""
    releases.stage_rows(run_of(ref))


@task(name="validate", task_run_name="{ref.dataset} {ref.run} validate", **FREE)
@sealed
def validate(ref: RunRef) -> None:
    """Check the synthetic table against its schema."""
    releases.stage_validation(run_of(ref))


@task(name="write artifacts", task_run_name="{ref.dataset} {ref.run} write artifacts", **FREE)
@sealed
def write_artifacts(ref: RunRef) -> None:
    """Write the answers, the model, the ledger, the report and the manifest into the staging folder."""
    releases.stage_records(run_of(ref))


@task(name="publish", task_run_name="{ref.dataset} {ref.run} publish", **FREE)
@sealed
def publish(ref: RunRef) -> str:
    """Let the release appear, and remove the copy of the private table; returns the release's address."""
    return releases.publish(run_of(ref))


def is_published(ref: RunRef) -> bool:
    """Whether the release is there for all to see."""
    return releases.is_published(run_of(ref))
