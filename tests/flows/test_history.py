"""Prefect's database forgets old releases, with the settings that ship, and keeps the others whole."""

from collections.abc import Generator
from pathlib import Path

import pytest
from support.history import History, opened, release_file
from support.servers import PostgreSQL, new_database

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgresql"])
def history(request: pytest.FixtureRequest, postgresql_server: PostgreSQL, tmp_path: Path) -> Generator[History]:
    database = new_database(postgresql_server) if request.param == "postgresql" else None
    with opened(tmp_path, database) as history:
        yield history


def test_a_flow_run_of_ninety_days_ago_is_forgotten_with_all_that_was_kept_of_it(
    history: History, tmp_path: Path
) -> None:
    file = release_file(tmp_path, rounds=2)
    history.release(file)
    first = history.counts()
    assert min(first.values()) > 0
    history.age()
    history.wait_until_forgotten(0)
    assert max(history.counts().values()) == 0
    history.release(file)
    again = history.counts()
    assert again["flow_run"] == 1
    assert again["task_run"] == first["task_run"]
    assert again["artifact"] == first["artifact"]
