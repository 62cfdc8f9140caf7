"""The real command really dies, at every kind of place, and is resumed (claim C10)."""

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support import killing
from support.killing import (
    PPSYN,
    SCENES,
    UNWRITTEN,
    Scene,
    Stage,
    Story,
    environment,
    look,
    objects,
    run_of,
    starter_for,
)
from support.small_release import DATASET

from ppsyn.privacy.budget import rho_of
from ppsyn.schemas.config import Budget
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

BUDGET = rho_of(Budget(epsilon=4.0, delta=1e-6))


@pytest.fixture
def stage(prefect_api: str, tmp_path: Path) -> Stage:
    return Stage(starter_for(prefect_api), tmp_path, Location(url=str(tmp_path / "out")))


def latest(root: Location) -> str:
    return json.loads(open_store(root).get(f"releases/{DATASET}/latest.json"))["run"]


def assert_nothing_was_drawn_twice(story: Story) -> None:
    drawn = Counter(draw.step for draw in story.draws)
    assert [draw.charged for draw in story.draws] == [draw.step for draw in story.draws]
    assert set(drawn.values()) == {1}
    assert story.after.steps - story.after.lost <= drawn.keys() <= story.after.steps


def assert_the_budget_is_spent_exactly(story: Story) -> None:
    before, after = story.at_death, story.after
    assert after.budget is not None
    assert after.spent == after.budget.total == BUDGET
    assert before.ledger is None or after.ledger.spends[: len(before.steps)] == before.ledger.spends
    assert after.kept == after.steps
    assert after.lost == story.orphans
    assert len(after.lost) <= 1


def assert_the_release_is_whole(story: Story) -> None:
    assert story.findings == ()
    assert story.after.torn == ()
    assert story.after.leftovers == ()
    assert latest(story.root) == story.run


@pytest.mark.parametrize(
    "scene", [pytest.param(scene, marks=[pytest.mark.slow] * scene.is_slow, id=str(scene)) for scene in SCENES]
)
def test_a_run_that_is_killed_goes_on_without_a_second_draw(
    scene: Scene, stage: Stage, request: pytest.FixtureRequest
) -> None:
    if scene.is_s3:
        stage = Stage(stage.starter, stage.folder, request.getfixturevalue("s3"))
    story = stage.play(scene.point, scene.nth)
    assert story.died.code == -(signal.SIGXFSZ if scene.point.endswith("torn") else signal.SIGKILL)
    assert story.at_death.torn == ()
    assert story.resumed.code == 0, story.resumed.stderr
    assert_nothing_was_drawn_twice(story)
    assert_the_budget_is_spent_exactly(story)
    assert_the_release_is_whole(story)


def test_a_run_that_is_killed_before_it_is_written_down_reserved_nothing_and_cannot_be_resumed(stage: Stage) -> None:
    file = str(stage.write())
    died = stage.start("release", file, point=UNWRITTEN.point).wait()
    run = run_of(died)
    resumed = stage.start("release", file, "--resume", run).wait()
    assert (died.code, resumed.code) == (-signal.SIGKILL, 4)
    assert f"There is no run {run} in {stage.root.url}." in resumed.stderr
    assert objects(stage.root) == {}


@pytest.mark.parametrize("nth", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_while_it_tries_its_stores_and_given_up_leaves_nothing(stage: Stage, nth: int) -> None:
    file = str(stage.write())
    died = stage.start("release", file, point="tried", nth=nth).wait()
    left = set(objects(stage.root))
    assert died.code == -signal.SIGKILL
    assert any(key.endswith("/object") for key in left)
    assert all(run_of(died) in key for key in left)
    assert stage.start("abandon", run_of(died), "--yes", "--store", stage.root.url).wait().code == 0
    assert objects(stage.root) == {}


def test_a_finished_run_that_is_resumed_again_changes_nothing_and_says_where_the_release_is(stage: Stage) -> None:
    file = str(stage.write())
    first = stage.start("release", file).wait()
    before = objects(stage.root)
    again = stage.start("release", file, "--resume", run_of(first)).wait()
    assert (first.code, again.code) == (0, 0)
    assert objects(stage.root) == before
    assert again.stdout == first.stdout
    assert f"released  out/releases/{DATASET}/{run_of(first)}\n" in again.stdout


@pytest.mark.slow
def test_resuming_a_finished_run_does_not_make_it_the_latest_again(stage: Stage) -> None:
    file = str(stage.write(privacy={"epsilon": 1.0}))
    older, newer = (run_of(stage.start("release", file).wait()) for _ in range(2))
    assert stage.start("release", file, "--resume", older).wait().code == 0
    assert latest(stage.root) == newer


def test_a_run_that_is_killed_each_time_it_is_resumed_loses_those_answers_and_no_more(stage: Stage) -> None:
    file = str(stage.write())
    run = run_of(stage.start("release", file, point="select").wait())
    for point, nth in (("answer", 1), ("answer", 2), ("select", 1)):  # the first while it marks step 8 as lost
        assert stage.start("release", file, "--resume", run, point=point, nth=nth).wait().code == -signal.SIGKILL
    assert stage.start("release", file, "--resume", run).wait().code == 0
    after = look(stage.root, run)
    assert after.lost == {8, 9, 10}
    assert after.spent == BUDGET
    assert [draw.step for draw in stage.draws()] == sorted(after.steps - {8, 10})
    assert stage.findings(run) == ()


@pytest.mark.slow
def test_the_launcher_and_the_console_script_do_the_same_as_processes_of_their_own(stage: Stage) -> None:
    file = str(stage.write())
    settings = environment({killing.DRAWS: str(stage.folder / "draws")})
    launched = [sys.executable, killing.__file__, "answer", "7", "--", "release", file]
    died = subprocess.run(launched, env=settings, capture_output=True, text=True, check=False, timeout=120)
    run = next(line.removeprefix("run ") for line in died.stderr.splitlines() if line.startswith("run "))
    command = [str(PPSYN), "release", file, "--resume", run]
    resumed = subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=120)
    assert (died.returncode, resumed.returncode) == (-signal.SIGKILL, 0)
    assert [draw.step for draw in stage.draws()] == list(range(7))  # the console script notes nothing
    assert look(stage.root, run).lost == {6}
    assert stage.findings(run) == ()
