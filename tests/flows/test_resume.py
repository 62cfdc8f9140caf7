"""What may be resumed, by whom, and what a refusal leaves as it was (claim C10)."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.killing import PPSYN, Stage, environment, look, objects, run_of, starter_for
from support.servers import PrefectServer
from support.small_release import DATASET

from ppsyn.schemas.locations import Location

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Broken:
    """A run that was killed in its first round, and what it left."""

    stage: Stage
    file: Path
    run: str
    left: dict[str, bytes]


@pytest.fixture
def stage(prefect_api: str, tmp_path: Path) -> Stage:
    return Stage(starter_for(prefect_api), tmp_path, Location(url=str(tmp_path / "out")))


@pytest.fixture(scope="module")
def broken(prefect: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Broken:
    """For all that are refused: they change nothing, so that one will do."""
    folder = tmp_path_factory.mktemp("broken")
    settings = {"PREFECT_API_URL": prefect.api_url, "PREFECT_HOME": str(folder / "prefect"), "DO_NOT_TRACK": "1"}
    stage = Stage(starter_for(prefect.api_url), folder, Location(url=str(folder / "out")), settings)
    file = stage.write()
    run = run_of(stage.start("release", str(file), point="answer", nth=7).wait())
    return Broken(stage, file, run, objects(stage.root))


def finishes(stage: Stage, file: Path | str, run: str) -> bool:
    """Whether the run can be resumed to its end, with nothing drawn twice and nothing wrong."""
    ended = stage.start("release", str(file), "--resume", run).wait()
    charged = [draw.charged for draw in stage.draws()]
    after = look(stage.root, run)
    is_whole = after.budget is not None and after.spent == after.budget.total
    return ended.code == 0 and is_whole and len(charged) == len(set(charged)) and stage.findings(run) == ()


@pytest.mark.parametrize(
    ("setting", "difference"),
    [
        ("privacy.epsilon=3.0", "privacy.epsilon was 4.0 and is 3.0 now."),
        ("algorithm.workload.degree=1", "algorithm.workload.degree was 2 and is 1 now."),
        pytest.param("algorithm.rounds=5", "algorithm.rounds was 4 and is 5 now.", marks=pytest.mark.slow),
        pytest.param("generation.seed=8", "generation.seed was 7 and is 8 now.", marks=pytest.mark.slow),
    ],
)
def test_another_setting_is_refused_by_name_with_both_values(broken: Broken, setting: str, difference: str) -> None:
    arguments = ("release", str(broken.file), "--set", setting, "--resume", broken.run)
    ended = broken.stage.start(*arguments).wait()
    assert ended.code == 4
    assert f"Run {broken.run} cannot be resumed" in ended.stderr
    assert difference in ended.stderr
    assert objects(broken.stage.root) == broken.left


@pytest.fixture
def other_schema(broken: Broken) -> Generator[None]:
    path = broken.file.parent / "schema.yaml"
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace("upper: 65", "upper: 66"), encoding="utf-8")
    yield
    path.write_text(before, encoding="utf-8")


@pytest.mark.usefixtures("other_schema")
def test_another_bin_of_a_column_is_refused_by_name_with_both_values(broken: Broken) -> None:
    ended = broken.stage.start("release", str(broken.file), "--resume", broken.run).wait()
    assert ended.code == 4
    assert objects(broken.stage.root) == broken.left
    assert re.search(r"\bage\b.*\b65\b.*\b66\b", ended.stderr.split("cannot be resumed")[1])


def test_a_run_whose_table_is_another_by_now_goes_on_with_its_own_copy(stage: Stage) -> None:
    file = stage.write()
    run = run_of(stage.start("release", str(file), point="answer", nth=7).wait())
    (file.parent / "table.csv").write_text("age,job,member,joined\n47,smith,true,2013-03-13\n", encoding="utf-8")
    assert finishes(stage, file, run)


def test_other_code_is_refused(broken: Broken, tmp_path: Path) -> None:
    unfinished = shutil.ignore_patterns("*.pyc.*", "*.tmp.*")  # code that others compile meanwhile
    shutil.copytree(ROOT / "ppsyn", tmp_path / "ppsyn", ignore=unfinished)
    with (tmp_path / "ppsyn" / "privacy" / "fractions.py").open("a", encoding="utf-8") as file:
        file.write("\n# Another line.\n")
    settings = environment({**broken.stage.settings, "PYTHONPATH": str(tmp_path)})
    command = [str(PPSYN), "release", str(broken.file), "--resume", broken.run]
    ended = subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 4, ended.stderr
    assert re.search(r"code\.source was '\w{64}' and is '\w{64}' now\.", ended.stderr)
    assert objects(broken.stage.root) == broken.left


def test_who_is_refused_is_not_told_to_try_the_same_again(broken: Broken) -> None:
    arguments = ("release", str(broken.file), "--set", "generation.seed=8", "--resume", broken.run)
    assert "To go on" not in broken.stage.start(*arguments).wait().stderr


@pytest.mark.parametrize(
    "name", ["20200101-000000-00000000", *(pytest.param(n, marks=pytest.mark.slow) for n in ("", "../out"))]
)
def test_a_run_that_does_not_exist_cannot_be_resumed(broken: Broken, name: str) -> None:
    ended = broken.stage.start("release", str(broken.file), "--resume", name).wait()
    assert ended.code == 4
    assert f"There is no run {name}" in ended.stderr
    assert objects(broken.stage.root) == broken.left


def test_an_abandoned_run_cannot_be_resumed(stage: Stage) -> None:
    file = str(stage.write())
    run = run_of(stage.start("release", file, point="answer", nth=7).wait())
    assert stage.start("abandon", run, "--yes", "--store", stage.root.url).wait().code == 0
    before = objects(stage.root)
    ended = stage.start("release", file, "--resume", run).wait()
    assert ended.code == 4
    assert f"Expected run {run} to be open, but it was abandoned." in ended.stderr
    assert objects(stage.root) == before


def test_a_run_that_was_abandoned_before_it_reserved_anything_cannot_be_resumed(stage: Stage) -> None:
    file = str(stage.write())
    run = run_of(stage.start("release", file, point="reserve").wait())
    assert stage.start("abandon", run, "--yes", "--store", stage.root.url).wait().code == 0
    assert stage.start("release", file, "--resume", run).wait().code == 4


@pytest.mark.slow
def test_of_two_processes_that_resume_a_run_at_once_none_draws_what_the_other_draws(stage: Stage) -> None:
    file = str(stage.write())
    run = run_of(stage.start("release", file, point="answer", nth=7).wait())
    both = [stage.start("release", file, "--resume", run) for _ in range(2)]
    codes = {job.wait().code for job in both}
    assert codes <= {0, 4, 6}
    assert look(stage.root, run).torn == ()
    assert finishes(stage, file, run)


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(8))
def test_of_three_processes_that_resume_a_run_at_once_one_publishes_it(stage: Stage, trial: int) -> None:
    file = str(stage.write())
    run = run_of(stage.start("release", file, point=("answer", "artifacts")[trial % 2], nth=(7, 1)[trial % 2]).wait())
    jobs = [stage.start("release", file, "--resume", run) for _ in range(3)]
    ended = [job.wait() for job in jobs]
    assert 0 in {one.code for one in ended}, [one.stderr for one in ended]
    assert {one.code for one in ended} <= {0, 4, 6}
    assert stage.findings(run) == ()
    charged = [draw.charged for draw in stage.draws()]
    assert len(charged) == len(set(charged))


def test_a_process_that_was_overtaken_before_it_asked_stops_and_charges_nothing(stage: Stage) -> None:
    file = str(stage.write())
    run = run_of(stage.start("release", file, point="charge", nth=7).wait())
    slow = stage.start("release", file, "--resume", run, point="ask-stop")
    assert slow.wait().is_stopped
    stage.start("release", file, "--resume", run, point="answer-kept", nth=2).wait()
    before = look(stage.root, run)
    slow.go_on()
    assert slow.wait().code == 4
    assert look(stage.root, run) == before
    assert finishes(stage, file, run)


def test_a_process_that_was_overtaken_after_its_draw_throws_the_answer_away(stage: Stage) -> None:
    file = str(stage.write())
    slow = stage.start("release", file, point="answer-stop", nth=7)
    stopped = slow.wait()
    run = run_of(stopped)
    assert stopped.is_stopped
    assert finishes(stage, file, run)
    before = objects(stage.root)
    slow.go_on()
    ended = slow.wait()
    assert (ended.code, look(stage.root, run).lost) == (4, {6})
    assert f"Another process goes on with run {run}" in ended.stderr
    assert objects(stage.root) == before


@pytest.mark.slow
def test_two_processes_that_publish_the_same_run_leave_it_whole_or_to_be_resumed(stage: Stage) -> None:
    file = str(stage.write())
    first = stage.start("release", file, point="move-stop")
    run = run_of(first.wait())
    second = stage.start("release", file, "--resume", run, point="validation-stop")
    assert second.wait().is_stopped
    for job in (first, second):
        job.go_on()
        assert job.wait().code in (0, 4, 6)
        assert look(stage.root, run).torn == ()
    assert finishes(stage, file, run)
    assert look(stage.root, run).leftovers == ()


@pytest.mark.slow
def test_a_slow_publisher_does_not_spoil_what_another_has_published_in_a_bucket(stage: Stage, s3: Location) -> None:
    stage = Stage(stage.starter, stage.folder, s3)
    file = str(stage.write())
    slow = stage.start("release", file, point="copy-stop", nth=8)
    run = run_of(slow.wait())
    assert finishes(stage, file, run)
    slow.go_on()
    assert slow.wait().code in (0, 4, 6)
    assert stage.findings(run) == ()
    assert look(s3, run).leftovers == ()


def test_ctrl_c_in_a_round_says_how_to_go_on_and_that_command_works(prefect_api: str, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    stage = Stage(starter_for(prefect_api), folder, Location(url=str(folder / "out")))
    command = [str(PPSYN), "release", str(stage.write()), "--set", "generation.seed=9", "--set", "algorithm.rounds=40"]
    with (tmp_path / "err").open("w") as errors:
        process = subprocess.Popen(command, env=environment({}), stdout=subprocess.DEVNULL, stderr=errors)
    give_up = time.monotonic() + 120
    while "round 1:" not in (tmp_path / "err").read_text() and process.poll() is None and time.monotonic() < give_up:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    told = (tmp_path / "err").read_text(encoding="utf-8")
    again = told.split("To resume: ")[1].splitlines()[0]
    path = f"{PPSYN.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        again, shell=True, env=environment({"PATH": path}), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert stage.findings(run_of_text(told)) == ()


def test_an_interrupt_that_prefect_makes_an_error_of_is_still_told_as_one(stage: Stage) -> None:
    file = str(stage.write())
    ended = stage.start("release", file, point="task-interrupt", nth=12).wait()
    assert ended.code == 130
    assert f"To resume: ppsyn release {file} --resume" in ended.stderr
    assert ended.stderr.endswith("Interrupted.\n")
    assert finishes(stage, file, run_of_text(ended.stderr))


def run_of_text(told: str) -> str:
    return re.search(r"^run (\S+)$", told, re.MULTILINE)[1]


def test_a_flow_that_prefect_retries_goes_on_with_its_run(stage: Stage) -> None:
    file = stage.write()
    ended = stage.start("retried", str(file), point="answer-fail", nth=7).wait()
    assert ended.code == 0, ended.stderr
    (folder,) = (stage.folder / "out" / "runs").iterdir()
    after = look(stage.root, folder.name)
    assert after.lost == {6}
    assert [draw.step for draw in stage.draws()] == sorted(after.steps)
    assert ended.stdout.splitlines()[-1].endswith(f"releases/{DATASET}/{folder.name}")
    assert stage.findings(folder.name) == ()
