"""Schedules that fire: of each deployment that ships, waited for until its release is published."""

from collections.abc import Generator
from pathlib import Path

import pytest
from prefect.client.schemas.objects import FlowRun
from support.servers import PostgreSQL, PrefectServer, new_database, prefect_server
from support.sites import DEPLOYMENTS, EVERY_MINUTE, Site, a_worker, assert_published, copied, open_site, wait_for
from support.small_release import DATASET, write_release

pytestmark = pytest.mark.slow

MINUTES = 10
"""For a run that is due within one, on a machine that others keep busy."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(
    request: pytest.FixtureRequest, postgresql_server: PostgreSQL, tmp_path_factory: pytest.TempPathFactory
) -> Generator[PrefectServer]:
    """With the services that a server has unless told otherwise."""
    database = new_database(postgresql_server) if request.param == "postgresql" else None
    with prefect_server(tmp_path_factory.mktemp("server"), database) as server:
        yield server


def first_started(site: Site) -> FlowRun:
    """The first run of the schedule, once it has begun."""
    wait_for(lambda: any(run.start_time for run in site.flow_runs()), MINUTES * 60)
    return next(run for run in site.flow_runs() if run.start_time)


@pytest.mark.parametrize("environment", ["dev", "prod"])
def test_a_schedule_fires_and_its_release_is_published(environment: str, server: PrefectServer, tmp_path: Path) -> None:
    file = write_release(tmp_path)
    described = copied(DEPLOYMENTS / f"prefect.{environment}.yaml", file, tmp_path, EVERY_MINUTE)
    site = open_site(server, tmp_path, described)
    with a_worker(site):
        flow_run = site.completed(first_started(site).id)
    site.prefect("deployment", "delete", site.name)
    assert flow_run.auto_scheduled
    assert flow_run.created_by is not None
    assert flow_run.created_by.type == "SCHEDULE"
    assert_published(file, flow_run.name.removeprefix(f"{DATASET} "))
