"""What a Prefect server tells of releases: a real server, with deployments and flow runs in every state."""

from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from prefect import get_client
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import State, StateType
from prefect.states import Completed, Failed, Scheduled
from support.small_release import write_release

from ppsyn.flows.prefect_view import look
from ppsyn.privacy.budget import rho_of
from ppsyn.schemas.release import load_release
from ppsyn.tasks.run_registry import REFUSED

LATER = datetime.now(UTC) + timedelta(days=3)
RUN = "20310203-040506-0a1b2c3d"


@pytest.fixture
def client(prefect_api: str) -> Generator[SyncPrefectClient]:
    with get_client(sync_client=True) as opened:
        yield opened


@pytest.fixture
def deploy(client: SyncPrefectClient) -> Callable[[str], tuple[str, UUID]]:
    """Make a deployment of the flow for a release file; its name and its number."""

    def make(file: str) -> tuple[str, UUID]:
        name = f"release-{uuid4().hex[:8]}"
        flow = client.create_flow_from_name("release")
        made = client.create_deployment(flow_id=flow, name=name, parameters={"file": file}, paused=True)
        return name, made

    return make


def start(client: SyncPrefectClient, deployment: UUID, state: State, name: str | None = None) -> None:
    client.create_flow_run_from_deployment(deployment, state=state, name=name)


def ended(client: SyncPrefectClient, deployment: UUID, state: State, dataset: str) -> None:
    """A flow run that ran and came to this."""
    made = client.create_flow_run_from_deployment(deployment, name=f"{dataset} {RUN}")
    client.set_flow_run_state(made.id, State(type=StateType.RUNNING), force=True)
    client.set_flow_run_state(made.id, state, force=True)


def test_what_is_scheduled_is_told_with_its_cost(
    client: SyncPrefectClient, deploy: Callable[[str], tuple[str, UUID]], tmp_path: Path
) -> None:
    file = write_release(tmp_path)
    name, number = deploy(str(file))
    for k in (2, 1):
        start(client, number, Scheduled(scheduled_time=LATER + timedelta(hours=k)))
    planned = [one for one in look().planned if one.source == f"deployment {name}"]
    config = load_release(file)
    assert [(one.dataset, one.rho) for one in planned] == [(config.dataset, rho_of(config.privacy))] * 2
    assert planned[0].at == LATER + timedelta(hours=1)


def test_a_file_that_is_elsewhere_leaves_the_cost_open_and_the_dataset_to_earlier_runs(
    client: SyncPrefectClient, deploy: Callable[[str], tuple[str, UUID]]
) -> None:
    name, number = deploy("/no/such/file.yaml")
    ended(client, number, Completed(), "loans of 2031")
    start(client, number, Scheduled(scheduled_time=LATER))
    (one,) = [one for one in look().planned if one.source == f"deployment {name}"]
    assert (one.dataset, one.rho, one.at) == ("loans of 2031", None, LATER)


def test_the_last_run_of_a_deployment_tells_whether_it_needs_somebody(
    client: SyncPrefectClient, deploy: Callable[[str], tuple[str, UUID]]
) -> None:
    name, number = deploy("/no/such/file.yaml")
    sentence = f"The account of {name} is empty."
    ended(client, number, Failed(name=REFUSED, message=sentence), "loans")
    (told,) = [one for one in look().troubles if name in one.problem]
    assert (told.dataset, sentence in told.problem, "Refused" in told.problem) == ("loans", True, True)
    ended(client, number, Completed(), "loans")
    assert [one for one in look().troubles if name in one.problem] == []
