"""The three kinds of places, each empty."""

import secrets
from pathlib import Path

import pytest

from ppsyn.schemas.locations import Location
from ppsyn.storage.store import Store, open_store


@pytest.fixture(params=["folder", "memory", "s3"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "s3":
        return request.getfixturevalue("s3")
    if request.param == "memory":
        return Location(url=f"memory://{secrets.token_hex(8)}")
    return Location(url=str(tmp_path / "store"))


@pytest.fixture
def store(location: Location) -> Store:
    return open_store(location)
