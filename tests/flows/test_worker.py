"""A deployment as in production: a Prefect server on PostgreSQL, a work pool, workers that come and go."""

import subprocess
import urllib.request
from collections.abc import Generator
from pathlib import Path
from uuid import UUID

import pytest
import yaml
from prefect.client.orchestration import SyncPrefectClient
from prefect.states import Crashed, Scheduled
from support.servers import PostgreSQL, new_database, prefect_server
from support.sites import DEPLOYMENTS, Site, a_worker, assert_published, kill, open_site, store_of, wait_for
from support.small_release import DATASET, write_release

from ppsyn.privacy.account import StoredAccount

pytestmark = pytest.mark.slow

FILE = DEPLOYMENTS / "prefect.dev.yaml"


@pytest.fixture(scope="module")
def site(postgresql_server: PostgreSQL, tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    """A server as an administrator sets it up, with the deployment of prefect.dev.yaml."""
    folder = tmp_path_factory.mktemp("site")
    settings = {
        "PREFECT_SERVER_UI_ENABLED": "true",
        "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "2",
    }
    with prefect_server(folder / "server", new_database(postgresql_server), settings) as server:
        yield open_site(server, folder, FILE)


@pytest.fixture
def worker(site: Site) -> Generator[subprocess.Popen[bytes]]:
    with a_worker(site) as process:
        yield process


def test_the_server_shows_its_pages(site: Site) -> None:
    with urllib.request.urlopen(site.server.api_url.removesuffix("/api") + "/", timeout=10) as answer:
        assert answer.status == 200
        assert b"<html" in answer.read().lower()


def test_the_schedule_and_the_limit_are_what_the_file_says(site: Site) -> None:
    (described,) = yaml.safe_load(FILE.read_text(encoding="utf-8"))["deployments"]
    deployment = site.deployment()
    (schedule,) = deployment.schedules
    (wanted,) = described["schedules"]
    assert (schedule.schedule.cron, schedule.schedule.timezone) == (wanted["cron"], wanted["timezone"])
    assert (schedule.active, schedule.slug) == (wanted["active"], wanted["slug"])
    assert deployment.global_concurrency_limit is not None
    assert deployment.global_concurrency_limit.limit == described["concurrency_limit"]["limit"] == 1
    assert deployment.concurrency_options is not None
    assert deployment.concurrency_options.collision_strategy.value == "ENQUEUE"
    assert deployment.work_pool_name == described["work_pool"]["name"]
    assert deployment.parameters == described["parameters"]
    assert deployment.enforce_parameter_schema is True


@pytest.mark.usefixtures("worker")
def test_a_run_of_the_deployment_publishes_a_release(site: Site, tmp_path: Path) -> None:
    file = write_release(tmp_path)
    flow_run = site.completed(site.start(file))
    assert flow_run.name.startswith(f"{DATASET} ")
    assert_published(file, flow_run.name.split()[-1])


@pytest.mark.usefixtures("worker")
def test_of_two_runs_at_once_the_second_waits_for_the_first(site: Site, tmp_path: Path) -> None:
    file = write_release(tmp_path)
    started = [site.start(file), site.start(file)]
    first, second = sorted((site.completed(number) for number in started), key=lambda run: str(run.start_time))
    assert first.end_time is not None
    assert second.start_time is not None
    with SyncPrefectClient(site.server.api_url) as client:
        states = [state.name for state in client.read_flow_run_states(second.id)]
    assert "AwaitingConcurrencySlot" in states
    assert first.end_time <= second.start_time
    for flow_run in (first, second):
        assert_published(file, flow_run.name.split()[-1])


def test_a_run_whose_worker_is_killed_goes_on_where_it_was_when_it_is_retried(site: Site, tmp_path: Path) -> None:
    file = write_release(tmp_path, algorithm={"rounds": 40})
    store = store_of(tmp_path)
    with a_worker(site) as worker:
        number = site.start(file)
        wait_for(lambda: len([key for key in store.keys("runs") if "/answers/" in key]) > 8, 120)
        kill(worker)
    before = {key: store.get(key) for key in store.keys("runs") if "/answers/" in key}
    (run,) = {key.split("/")[1] for key in before}
    charged = len(StoredAccount(store, DATASET).chain(run).ledger.spends)
    retry(site, number)
    with a_worker(site):
        flow_run = site.completed(number)
    assert flow_run.name == f"{DATASET} {run}"
    budget = StoredAccount(store, DATASET).state.budgets[run]
    after = {key: store.get(key) for key in store.keys("runs") if "/answers/" in key}
    assert list(StoredAccount(store, DATASET).state.budgets) == [run]
    assert budget.charges == len(after) > charged >= len(before)
    assert {key: after[key] for key in before} == before
    assert budget.spent == budget.total
    assert_published(file, run)


def retry(site: Site, number: UUID) -> None:
    """Declare a run that nobody works on any more as crashed, and retry it as the UI does."""
    with SyncPrefectClient(site.server.api_url) as client:
        client.set_flow_run_state(number, Crashed(message="Its worker is gone."), force=True)
        client.set_flow_run_state(number, Scheduled(name="AwaitingRetry", message="Retry from the UI"))
