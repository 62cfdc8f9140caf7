"""Stores that are slow, in trouble, cut off, full or read-only, and clocks that jump: published once, paid once."""

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.faulty import FAULTS, Fault, faulty
from support.published import TINY
from support.servers import SeaweedFS
from support.troubled_run import JUMPS, clock_in, go_on, outcome, release_in, told_by

from ppsyn.errors import StoreError
from ppsyn.privacy.budget import rho_of
from ppsyn.schemas.config import Budget
from ppsyn.schemas.locations import Location

BUDGET = float(rho_of(Budget.model_validate(TINY["privacy"])))
SHARE = 0.15
"""Of all requests; about a hundred and fifty are made."""
RESUMES = 20
SEEDS = (pytest.param(0), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10)))


def assert_published_and_paid_once(ended: dict[str, Any]) -> None:
    assert ended["published"]
    assert ended["problems"] == []
    assert ended["charged"] == ended["granted"] == BUDGET
    assert ended["answers"] == ended["charges"]
    assert ended["left"] == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_in_trouble_is_waited_for_or_the_run_goes_on_when_it_is_over(
    fault: Fault, seed: int, s3: Location, seaweedfs_server: SeaweedFS, tmp_path: Path
) -> None:
    refused: list[str] = []
    with faulty(seaweedfs_server, fault, SHARE, seed) as between:
        config = release_in(tmp_path, s3.model_copy(update={"endpoint": between.endpoint}))
        while len(refused) < RESUMES:
            try:
                go_on(config)
                break
            except StoreError as error:
                refused.append(str(error))
    assert len(refused) < RESUMES, refused
    assert between.done[fault] >= 5
    sys.stdout.write(f"{fault}, seed {seed}: {between.done[fault]} faults, refused {len(refused)} times\n")
    assert_published_and_paid_once(outcome(release_in(tmp_path, s3)))


@pytest.fixture
def own_mounts(tmp_path: Path) -> tuple[str, ...]:
    """A command that gives what it runs mounts of its own."""
    mount = ("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", str(tmp_path))
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nobody here may mount anything")
    return ("unshare", "-m")


@pytest.mark.parametrize(
    "kilobytes", [40, *(pytest.param(size, marks=pytest.mark.slow) for size in (20, 60, 80, 120, 160, 200, 240, 300))]
)
def test_a_disk_that_is_full_stops_a_run_which_goes_on_when_there_is_room(
    own_mounts: tuple[str, ...], tmp_path: Path, kilobytes: int
) -> None:
    told = told_by("full", str(tmp_path), str(kilobytes), before=own_mounts)
    assert "No space left on device" in told["refused"]
    assert not told["stood"]["published"]
    assert told["stood"]["charged"] <= BUDGET
    assert_published_and_paid_once(told["ended"])


@pytest.mark.parametrize("questions", [7, *(pytest.param(number, marks=pytest.mark.slow) for number in (0, 3))])
def test_a_disk_that_is_read_only_stops_a_run_before_its_next_charge(
    own_mounts: tuple[str, ...], tmp_path: Path, questions: int
) -> None:
    told = told_by("read-only", str(tmp_path), str(questions), before=own_mounts)
    assert "Read-only file system" in told["refused"]
    assert told["stood"]["charges"] == told["stood"]["answers"] == questions
    assert_published_and_paid_once(told["ended"])


@pytest.mark.parametrize(
    ("question", "jump"),
    [
        (3, JUMPS[0]),
        pytest.param(14, JUMPS[1], marks=pytest.mark.slow),
        *(pytest.param(3, jump, marks=pytest.mark.slow) for jump in JUMPS[1:]),
    ],
)
def test_a_clock_that_jumps_changes_nothing(tmp_path: Path, question: int, jump: int) -> None:
    settings = clock_in(tmp_path)
    if settings is None:
        pytest.skip("There is no C compiler here.")
    told = told_by("clock", str(tmp_path), str(question), str(jump), settings=settings)
    clocks, a_while = [datetime.fromisoformat(clock) for clock in told["clocks"]], timedelta(seconds=50)
    assert abs(clocks[question] - clocks[question - 1] - timedelta(seconds=jump)) < a_while
    if question + 2 < len(clocks):
        assert abs(clocks[question + 2] - clocks[question + 1] + timedelta(seconds=jump)) < a_while
    assert_published_and_paid_once(told["ended"])
