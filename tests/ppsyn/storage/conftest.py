"""The three kinds of places, each empty."""

import secrets
from pathlib import Path

import pytest

from ppsyn.schemas.locations import Place
from ppsyn.storage.store import Store, open_store


@pytest.fixture(params=["folder", "memory", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "s3":
        return request.getfixturevalue("s3")
    if request.param == "memory":
        return Place(url=f"memory://{secrets.token_hex(8)}")
    return Place(url=str(tmp_path / "store"))


@pytest.fixture
def store(place: Place) -> Store:
    return open_store(place)
