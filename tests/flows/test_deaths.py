"""Processes of a schedule that are killed: each run ends published, once, and is paid for once, with nobody's help."""

import os
import signal
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
from prefect.client.schemas.objects import Log
from support.servers import PostgreSQL, PrefectServer, free_ports, new_database, prefect_server
from support.sites import (
    DEPLOYMENTS,
    EVERY_MINUTE,
    Site,
    a_service,
    assert_published,
    copied,
    descendants,
    open_site,
    shipped_settings,
    store_of,
    wait_for,
)
from support.small_release import DATASET, write_release

from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.budget import rho_of
from ppsyn.schemas.config import Budget

pytestmark = pytest.mark.slow

BUDGET = rho_of(Budget(epsilon=4.0, delta=1e-6))
FIT = 2
"""Releases, into a cap of epsilon 6."""
OUTAGE_SECONDS = 20


@dataclass
class Server:
    """A server on PostgreSQL with the settings that ship, which may be killed and comes back where it was."""

    folder: Path
    database: str
    port: int = field(default_factory=lambda: free_ports(1)[0])
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self) -> PrefectServer:
        settings = shipped_settings("prod.env")
        self.now = self.stack.enter_context(prefect_server(self.folder, self.database, settings, self.port))
        return self.now

    def kill(self) -> None:
        os.killpg(self.now.pid, signal.SIGKILL)
        self.stack.close()


@pytest.fixture
def server(postgresql_server: PostgreSQL, tmp_path: Path) -> Generator[Server]:
    made = Server(tmp_path / "server", new_database(postgresql_server))
    made.start()
    with made.stack:
        yield made


def programs(service: int, word: str) -> list[int]:
    """The processes below one whose command line has a word."""
    return [
        number
        for number in descendants(service)
        if word in Path(f"/proc/{number}/cmdline").read_text(encoding="utf-8").replace("\0", " ")
    ]


def kill_flow(server: Server, service: int) -> None:
    for number in set(descendants(service)) - set(programs(service, "worker start")):
        os.kill(number, signal.SIGKILL)


def kill_worker(server: Server, service: int) -> None:
    """The flow it started lives on, as an orphan."""
    for number in programs(service, "worker start"):
        os.kill(number, signal.SIGKILL)


def kill_both(server: Server, service: int) -> None:
    for number in descendants(service):
        os.kill(number, signal.SIGKILL)


def kill_server(server: Server, service: int) -> None:
    server.kill()
    time.sleep(OUTAGE_SECONDS)
    server.start()


def answers_of(folder: Path) -> list[str]:
    return [key for key in store_of(folder).keys("runs") if "/answers/" in key] if (folder / "out").is_dir() else []


def site_with(server: Server, folder: Path, schedule: Mapping[str, object] | None) -> Site:
    """A deployment and automations as they ship, of a small release."""
    file = write_release(folder, algorithm={"rounds": 40}, account={"cap": {"epsilon": 6.0, "delta": 1e-6}})
    described = copied(DEPLOYMENTS / "prefect.prod.yaml", file, folder, schedule)
    site = open_site(server.now, folder, described, shipped_settings("prod.env"))
    site.prefect("automation", "create", "--from-file", str(DEPLOYMENTS / "automations.yaml"))
    return site


def kill_in_a_round(site: Site, kill: Callable[[Server, int], None], server: Server, service: int) -> None:
    wait_for(lambda: len(answers_of(site.folder)) > 8, 180)
    kill(server, service)


def assert_all_is_paid_once(folder: Path, releases: int) -> None:
    account = StoredAccount(store_of(folder), DATASET)
    assert len(account.budgets()) == releases
    for budget in account.budgets():
        assert budget.spent == budget.total == BUDGET
        assert len(store_of(folder).keys(f"runs/{budget.run}/answers")) == budget.charges
        assert_published(folder / "release.yaml", budget.run)
    assert [key for key in store_of(folder).keys("runs") if "/private/" in key or "/pulse/" in key] == []


@pytest.mark.parametrize("kill", [kill_flow, kill_worker, kill_both, kill_server], ids=lambda kill: kill.__name__)
def test_a_run_that_is_killed_goes_on_by_itself(
    kill: Callable[[Server, int], None], server: Server, tmp_path: Path
) -> None:
    site = site_with(server, tmp_path, None)
    with a_service(site) as service:
        number = site.start(tmp_path / "release.yaml")
        kill_in_a_round(site, kill, server, service.pid)
        wait_for(lambda: state_of(site, number) == "Completed", 900)
    assert_all_is_paid_once(tmp_path, 1)


def state_of(site: Site, number: UUID) -> str:
    state = site.flow_run(number).state
    return "" if state is None else str(state.name)


def test_a_schedule_whose_runs_are_killed_publishes_what_fits_and_is_then_refused(
    server: Server, tmp_path: Path
) -> None:
    site = site_with(server, tmp_path, EVERY_MINUTE)
    with a_service(site) as service:
        kill_in_a_round(site, kill_both, server, service.pid)
        wait_for(lambda: "Refused" in [run.state.name for run in site.flow_runs() if run.state], 900)
        site.prefect("deployment", "schedule", "pause", "--all")
        wait_for(
            lambda: not any(run.state and run.state.name in {"Running", "Pending"} for run in site.flow_runs()), 60
        )
    assert_all_is_paid_once(site.folder, FIT)
    refused = next(run for run in site.flow_runs() if run.state and run.state.name == "Refused")
    assert refused.state is not None
    assert str(refused.state.message).startswith(f"The account of {DATASET!r} has rho ")
    assert "\n" not in str(refused.state.message)
    assert [log.message for log in logs_of(site, refused.id) if "Traceback" in log.message] == []


def logs_of(site: Site, number: UUID) -> list[Log]:
    with SyncPrefectClient(site.server.api_url) as client:
        return client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[number])), limit=200)
