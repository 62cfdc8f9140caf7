"""A deployment as in production: a Prefect server with all its services, a work pool, workers that come and go."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.responses import DeploymentResponse
from support.servers import PrefectServer
from support.small_release import DATASET

from ppsyn.privacy.account import StoredAccount
from ppsyn.releases.audit import audit
from ppsyn.releases.layout import release_folder
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store

ROOT = Path(__file__).parents[2]
DEPLOYMENTS = ROOT / "deployments"
PREFECT = str(Path(sys.executable).parent / "prefect")


@dataclass(frozen=True)
class Site:
    """A server with a deployment, and how commands reach it."""

    server: PrefectServer
    environment: dict[str, str]
    folder: Path
    name: str

    def prefect(self, *arguments: str) -> str:
        command = [PREFECT, "--no-prompt", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False, timeout=400
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def deployment(self) -> DeploymentResponse:
        with SyncPrefectClient(self.server.api_url) as client:
            return client.read_deployment_by_name(self.name)

    def start(self, file: Path) -> UUID:
        """A run of the deployment, for another release file than that of the deployment."""
        said = self.prefect("deployment", "run", self.name, "--param", f"file={file}")
        found = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", said)
        assert found is not None, said
        return UUID(found.group())

    def flow_run(self, number: UUID) -> FlowRun:
        with SyncPrefectClient(self.server.api_url) as client:
            return client.read_flow_run(number)

    def flow_runs(self) -> list[FlowRun]:
        """All of the deployment, those that are to come included, the earliest first."""
        one = DeploymentFilter(id=DeploymentFilterId(any_=[self.deployment().id]))
        with SyncPrefectClient(self.server.api_url) as client:
            found = client.read_flow_runs(deployment_filter=one, limit=200)
        return sorted(found, key=lambda run: str(run.expected_start_time))

    def completed(self, number: UUID) -> FlowRun:
        """The flow run, once it has ended, which it did well."""
        wait_for(lambda: (state := self.flow_run(number).state) is not None and state.is_final(), 240)
        flow_run = self.flow_run(number)
        assert flow_run.state is not None
        assert flow_run.state.name == "Completed", f"{flow_run.state.message}\n{self.worker_log()}"
        return flow_run

    def worker_log(self) -> str:
        return (self.folder / "worker.log").read_text(encoding="utf-8", errors="replace")[-4000:]


def open_site(server: PrefectServer, folder: Path, file: Path, settings: Mapping[str, str] | None = None) -> Site:
    """Make the work pool and the deployment of a file, as an administrator does."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")},
        "DO_NOT_TRACK": "1",
        "PREFECT_API_URL": server.api_url,
        "PREFECT_HOME": str(folder / "home"),
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "PPSYN_ROOT": str(ROOT),
        **(settings or {}),
    }
    (described,) = yaml.safe_load(file.read_text(encoding="utf-8"))["deployments"]
    site = Site(server, environment, folder, f"release/{described['name']}")
    site.prefect("work-pool", "create", "ppsyn", "--type", "process", "--overwrite")
    site.prefect("deploy", "--prefect-file", str(file), "--all")
    return site


def copied(file: Path, release_file: Path, folder: Path, schedule_of: Mapping[str, object] | None = None) -> Path:
    """A copy of a deployment's file that differs in what it releases, and in when if that is given."""
    document: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    (described,) = document["deployments"]
    (schedule,) = described["schedules"]
    schedule |= schedule_of or {}
    described["parameters"]["file"] = str(release_file)
    copy = folder / file.name
    copy.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return copy


EVERY_MINUTE: Mapping[str, object] = {"cron": "* * * * *", "active": True}


def shipped_settings(name: str) -> dict[str, str]:
    """What an environment file of `deployments/` tells Prefect, but for where its server is."""
    lines = (DEPLOYMENTS / name).read_text(encoding="utf-8")
    found = dict(re.findall(r"^(PREFECT_[A-Z0-9_]*)=(.*)$", lines, re.MULTILINE))
    return {key: value for key, value in found.items() if key != "PREFECT_API_URL"}


def wait_for(is_so: Callable[[], bool], seconds: float) -> None:
    give_up = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < give_up, "It took too long."
        time.sleep(0.2)


@contextlib.contextmanager
def a_worker(site: Site, limit: int = 2) -> Generator[subprocess.Popen[bytes]]:
    """A worker that would take two runs at once."""
    command = [PREFECT, "--no-prompt", "worker", "start", "--pool", "ppsyn", "--type", "process", "--limit", str(limit)]
    with (site.folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=site.environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        kill(process)


@contextlib.contextmanager
def a_service(site: Site) -> Generator[subprocess.Popen[bytes]]:
    """A worker as systemd runs it: started again a few seconds after it ends, whatever it ended by."""
    worker = f"{PREFECT} --no-prompt worker start --pool ppsyn --type process --limit 1"
    command = ["sh", "-c", f"while true; do {worker}; sleep 3; done"]
    with (site.folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=site.environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        os.kill(process.pid, signal.SIGSTOP)  # or it would start another while its worker is killed
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


def store_of(folder: Path) -> Store:
    return open_store(Location(url=str(folder / "out")))


def assert_published(file: Path, run: str) -> None:
    """The release of the run is there and holds all that it says, its account included."""
    folder = open_store(Location(url=str(file.parent / "out" / release_folder(DATASET, run))))
    found = list(audit(folder, StoredAccount(store_of(file.parent), DATASET)))
    assert len(found) > 10
    assert [finding for finding in found if finding.problem] == []
