"""Fixtures that more than one folder of tests shares. A server starts when a test first asks for it."""

import importlib
import os
import secrets
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from support.server_pool import Pool, open_pool
from support.servers import BUCKET, OWNED, PostgreSQL, PrefectServer, SeaweedFS, new_database

from ppsyn.schemas.locations import Location

os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
"""Programs that tests start find `support` too."""

CREDENTIALS = "PPSYN_TEST_S3"
"""What the names of the variables with the keys of `s3` begin with."""

_POOL: pytest.StashKey[Pool] = pytest.StashKey()
_CLOSE: pytest.StashKey[Callable[[], None]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    if (given := getattr(config, "workerinput", None)) is not None:
        config.stash[_POOL] = Pool(*given["servers"])
    else:
        config.stash[_POOL], config.stash[_CLOSE] = open_pool()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that run at night run only where `-m` asks for them by name."""
    if "nightly" not in config.option.markexpr:
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item not in nightly]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:  # noqa: ANN401  xdist has no public type
    pool = node.config.stash[_POOL]
    node.workerinput["servers"] = (pool.address, pool.key)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _CLOSE in config.stash:
        config.stash[_CLOSE]()


@pytest.fixture(scope="session")
def seaweedfs_server(pytestconfig: pytest.Config) -> SeaweedFS:
    return pytestconfig.stash[_POOL].ask("seaweedfs")


@pytest.fixture(scope="session")
def postgresql_server(pytestconfig: pytest.Config) -> PostgreSQL:
    return pytestconfig.stash[_POOL].ask("postgresql")


@pytest.fixture(scope="session")
def prefect(pytestconfig: pytest.Config) -> PrefectServer:
    return pytestconfig.stash[_POOL].ask("prefect")


@pytest.fixture
def s3(seaweedfs_server: SeaweedFS, monkeypatch: pytest.MonkeyPatch) -> Location:
    """A folder of a bucket that no other test uses; the environment holds its keys."""
    monkeypatch.setenv(f"{CREDENTIALS}_ACCESS_KEY_ID", seaweedfs_server.access_key)
    monkeypatch.setenv(f"{CREDENTIALS}_SECRET_ACCESS_KEY", seaweedfs_server.secret_key)
    url = f"s3://{BUCKET}/{secrets.token_hex(8)}"
    return Location(url=url, endpoint=seaweedfs_server.endpoint, credentials=CREDENTIALS)


@pytest.fixture
def three(seaweedfs_server: SeaweedFS, monkeypatch: pytest.MonkeyPatch) -> dict[str, Location]:
    """Folders of three buckets as a release file names them, each with keys of its own, which open no other."""
    folder, locations = secrets.token_hex(8), dict[str, Location]()
    for name, bucket in zip(("root", "private", "releases"), OWNED, strict=True):
        access, secret = seaweedfs_server.owners[bucket]
        monkeypatch.setenv(f"{name.upper()}_ACCESS_KEY_ID", access)
        monkeypatch.setenv(f"{name.upper()}_SECRET_ACCESS_KEY", secret)
        url = f"s3://{bucket}/{folder}"
        locations[name] = Location(url=url, endpoint=seaweedfs_server.endpoint, credentials=name.upper())
    return locations


@pytest.fixture
def postgres(postgresql_server: PostgreSQL) -> str:
    """The address of an empty database."""
    return new_database(postgresql_server)


@pytest.fixture
def prefect_api(
    prefect: PrefectServer, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Generator[str]:
    """The address of a Prefect server, for this process and those it starts; they keep their files in a new folder."""
    home = tmp_path_factory.mktemp("prefect-home")
    monkeypatch.setenv("PREFECT_API_URL", prefect.api_url)
    monkeypatch.setenv("PREFECT_HOME", str(home))
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    settings = importlib.import_module("prefect.settings")  # takes seconds, so only for those who ask
    with settings.temporary_settings({settings.PREFECT_API_URL: prefect.api_url, settings.PREFECT_HOME: home}):
        yield prefect.api_url


@pytest.fixture
def prefect_server_folder(prefect: PrefectServer) -> Path:
    """The folder with the database and the log of the Prefect server."""
    return prefect.folder
