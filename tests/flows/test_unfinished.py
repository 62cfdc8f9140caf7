"""A release goes on with a run of the same inputs that did not end, instead of paying for another."""

import time
from pathlib import Path

import pytest
from support.killing import Stage, look, run_of, starter_for
from support.small_release import DATASET

from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.account_state import RunBudget
from ppsyn.runs.heartbeat import beating
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

WITHIN_THE_CAP = {"account": {"cap": {"epsilon": 4.0, "delta": 1.0e-6}}}
"""One release fits."""


@pytest.fixture
def stage(prefect_api: str, tmp_path: Path) -> Stage:
    return Stage(starter_for(prefect_api), tmp_path, Location(url=str(tmp_path / "out")))


def budgets(stage: Stage) -> dict[str, RunBudget]:
    return {budget.run: budget for budget in StoredAccount(open_store(stage.root), DATASET).budgets()}


def failed_in_a_round(stage: Stage, file: str) -> str:
    """A run that met an error and told that nobody works on it."""
    ended = stage.start("release", file, point="answer-fail", nth=7).wait()
    assert ended.code == 1
    return run_of(ended)


def test_the_same_command_again_goes_on_and_pays_nothing_more(stage: Stage) -> None:
    file = str(stage.write(**WITHIN_THE_CAP))
    run = failed_in_a_round(stage, file)
    again = stage.start("release", file).wait()
    assert again.code == 0, again.stderr
    assert f"Going on with run {run}, which has reserved its budget, instead of paying for a new one." in again.stderr
    assert run_of(again) == run
    assert list(budgets(stage)) == [run]
    assert look(stage.root, run).spent == budgets(stage)[run].total
    assert stage.findings(run) == ()


def test_a_new_run_is_begun_if_it_is_asked_for(stage: Stage) -> None:
    file = str(stage.write())
    run = failed_in_a_round(stage, file)
    again = stage.start("release", file, "--new").wait()
    assert again.code == 0, again.stderr
    assert [name for name, budget in budgets(stage).items() if budget.is_open] == [run]


@pytest.mark.slow
def test_a_new_run_that_is_asked_for_is_refused_if_it_does_not_fit(stage: Stage) -> None:
    file = str(stage.write(**WITHIN_THE_CAP))
    run = failed_in_a_round(stage, file)
    assert stage.start("release", file, "--new").wait().code == 3
    assert list(budgets(stage)) == [run]


@pytest.mark.parametrize(
    "setting",
    [
        "privacy.epsilon=3.0",
        pytest.param("algorithm.rounds=5", marks=pytest.mark.slow),
        pytest.param("generation.seed=8", marks=pytest.mark.slow),
    ],
)
def test_a_run_of_other_inputs_is_left_alone(stage: Stage, setting: str) -> None:
    file = str(stage.write())
    run = failed_in_a_round(stage, file)
    other = stage.start("release", file, "--set", setting).wait()
    assert other.code == 0, other.stderr
    assert run not in other.stderr
    assert [name for name, budget in budgets(stage).items() if budget.is_open] == [run]


@pytest.mark.slow
def test_an_abandoned_run_is_left_alone(stage: Stage) -> None:
    file = str(stage.write())
    run = failed_in_a_round(stage, file)
    assert stage.start("abandon", run, "--yes", "--store", stage.root.url).wait().code == 0
    other = stage.start("release", file).wait()
    assert other.code == 0, other.stderr
    assert run_of(other) != run


@pytest.mark.slow
def test_the_oldest_of_several_is_gone_on_with(stage: Stage) -> None:
    file = str(stage.write())
    run = failed_in_a_round(stage, file)
    assert stage.start("release", file, "--new", point="answer-fail", nth=7).wait().code == 1
    assert run_of(stage.start("release", file).wait()) == run


def test_a_run_that_a_process_works_on_is_left_to_it(stage: Stage) -> None:
    file = str(stage.write())
    run = failed_in_a_round(stage, file)
    with beating(open_store(stage.root), run):
        other = stage.start("release", file).wait()
    assert other.code == 0, other.stderr
    assert f"Run {run} of the same inputs is unfinished; looking whether" in other.stderr
    assert f"Another process works on run {run}" in other.stderr
    assert [name for name, budget in budgets(stage).items() if budget.is_open] == [run]


@pytest.mark.slow
def test_a_run_that_was_killed_is_gone_on_with_after_a_minute_of_silence(stage: Stage) -> None:
    file = str(stage.write(**WITHIN_THE_CAP))
    run = run_of(stage.start("release", file, point="answer", nth=7).wait())
    began = time.monotonic()
    again = stage.start("release", file).wait(180)
    assert (again.code, run_of(again)) == (0, run), again.stderr
    assert time.monotonic() - began > 50
    assert list(budgets(stage)) == [run]
    assert stage.findings(run) == ()
