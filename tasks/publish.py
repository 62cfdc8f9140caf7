"""From the fitted model to a published folder."""

from ppsyn.releases import writer as releases
from ppsyn.schemas.run import RunRef
from ppsyn.tasks.run_registry import run_of
from ppsyn.tasks.step import step


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
