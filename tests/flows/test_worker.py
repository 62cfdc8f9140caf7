"""A deployment as in production: a Prefect server on PostgreSQL, a work pool, workers that come and go."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
import yaml
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.responses import DeploymentResponse
from prefect.states import Crashed, Scheduled
from servers import PostgreSQL, PrefectServer, new_database, prefect_server
from small_release import DATASET, write_release

from ppsyn.dp.account import StoredAccount
from ppsyn.releases.audit import audit
from ppsyn.releases.layout import release_folder
from ppsyn.storage import Store, open_store
from schemas.places import Place

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PREFECT = str(Path(sys.executable).parent / "prefect")
FILE = ROOT / "deployments" / "prefect.dev.yaml"
NAME = "release/release-adult-dev"


@dataclass(frozen=True)
class Site:
    """A server with a deployment, and how commands reach it."""

    server: PrefectServer
    environment: dict[str, str]
    folder: Path

    def prefect(self, *arguments: str) -> str:
        command = [PREFECT, "--no-prompt", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def deployment(self) -> DeploymentResponse:
        with SyncPrefectClient(self.server.api_url) as client:
            return client.read_deployment_by_name(NAME)

    def start(self, file: Path) -> UUID:
        """A run of the deployment, for another release file than that of the deployment."""
        said = self.prefect("deployment", "run", NAME, "--param", f"file={file}")
        found = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", said)
        assert found is not None, said
        return UUID(found.group())

    def flow_run(self, number: UUID) -> FlowRun:
        with SyncPrefectClient(self.server.api_url) as client:
            return client.read_flow_run(number)

    def completed(self, number: UUID) -> FlowRun:
        """The flow run, once it has ended, which it did well."""
        wait_for(lambda: (state := self.flow_run(number).state) is not None and state.is_final(), 240)
        flow_run = self.flow_run(number)
        assert flow_run.state is not None
        assert flow_run.state.name == "Completed", f"{flow_run.state.message}\n{self.worker_log()}"
        return flow_run

    def worker_log(self) -> str:
        return (self.folder / "worker.log").read_text(encoding="utf-8", errors="replace")[-4000:]


def wait_for(is_so: Callable[[], bool], seconds: float) -> None:
    give_up = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < give_up, "It took too long."
        time.sleep(0.05)


@pytest.fixture(scope="module")
def site(postgresql_server: PostgreSQL, tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    """A server as an administrator sets it up, with the deployment of prefect.dev.yaml."""
    folder = tmp_path_factory.mktemp("site")
    settings = {
        "PREFECT_SERVER_UI_ENABLED": "true",
        "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "2",
    }
    with prefect_server(folder / "server", new_database(postgresql_server), settings) as server:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")},
            "DO_NOT_TRACK": "1",
            "PREFECT_API_URL": server.api_url,
            "PREFECT_HOME": str(folder / "home"),
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "PPSYN_ROOT": str(ROOT),
        }
        made = Site(server, environment, folder)
        made.prefect("work-pool", "create", "ppsyn", "--type", "process")
        made.prefect("deploy", "--prefect-file", str(FILE), "--all")
        yield made


@contextlib.contextmanager
def a_worker(site: Site) -> Generator[subprocess.Popen[bytes]]:
    """A worker that would take two runs at once."""
    command = [PREFECT, "--no-prompt", "worker", "start", "--pool", "ppsyn", "--type", "process", "--limit", "2"]
    with (site.folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=site.environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a worker and all that it has started, as the end of a machine does."""
    for number in (process.pid, *descendants(process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    process.wait()


def descendants(number: int) -> list[int]:
    try:
        children = [int(child) for child in Path(f"/proc/{number}/task/{number}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return [*children, *(below for child in children for below in descendants(child))]


@pytest.fixture
def worker(site: Site) -> Generator[subprocess.Popen[bytes]]:
    with a_worker(site) as process:
        yield process


def store_of(file: Path) -> Store:
    return open_store(Place(url=str(file.parent / "out")))


def assert_published(file: Path, run: str) -> None:
    """The release of the run is there and holds all that it says, its account included."""
    folder = open_store(Place(url=str(file.parent / "out" / release_folder(DATASET, run))))
    found = list(audit(folder, StoredAccount(store_of(file), DATASET)))
    assert len(found) > 10
    assert [finding for finding in found if finding.problem] == []


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
    store = store_of(file)
    with a_worker(site) as worker:
        number = site.start(file)
        wait_for(lambda: len([key for key in store.keys("runs") if "/answers/" in key]) > 8, 120)
        kill(worker)
    before = {key: store.get(key) for key in store.keys("runs") if "/answers/" in key}
    (run,) = {key.split("/")[1] for key in before}
    charged = len(StoredAccount(store, DATASET).book.parts[run].ledger.spends)
    retry(site, number)
    with a_worker(site):
        flow_run = site.completed(number)
    assert flow_run.name == f"{DATASET} {run}"
    part = StoredAccount(store, DATASET).book.parts[run]
    after = {key: store.get(key) for key in store.keys("runs") if "/answers/" in key}
    assert list(StoredAccount(store, DATASET).book.parts) == [run]
    assert len(part.ledger.spends) == len(after) > charged >= len(before)
    assert {key: after[key] for key in before} == before
    assert part.ledger.spent == part.ledger.total
    assert_published(file, run)


def retry(site: Site, number: UUID) -> None:
    """Declare a run that nobody works on any more as crashed, and retry it as the UI does."""
    with SyncPrefectClient(site.server.api_url) as client:
        client.set_flow_run_state(number, Crashed(message="Its worker is gone."), force=True)
        client.set_flow_run_state(number, Scheduled(name="AwaitingRetry", message="Retry from the UI"))
