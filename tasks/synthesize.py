"""The loop, a task for each of its steps. What passes between them is in the stores."""

from typing import Literal

from ppsyn.reports.progress import describe_last_round
from ppsyn.schemas.run import RunRef
from ppsyn.tasks.run_registry import forget, run_of, watchers
from ppsyn.tasks.step import step

_ROUND = "round {number}"


@step("restore")
def restore(ref: RunRef) -> int:
    """Go on from the last checkpoint, over the answers after it; returns how many answers there are."""
    forget(ref)
    return run_of(ref).step


@step("count marginals")
def count_marginals(ref: RunRef) -> None:
    """Count what the run will ask for, as far as there is room to keep it. Idempotent: it spends and draws nothing."""
    run_of(ref).count()


@step("measure one-way", "one-way")
def measure_one_way(ref: RunRef) -> None:
    """Measure single attributes, coarse then fine."""
    run = run_of(ref)
    while run.state.stage == "one-way":
        run.ask()
        run.absorb()
        _tell(ref)
    if run.state.chosen is None:
        run.checkpoint()


@step("select", _ROUND + " select")
def select(ref: RunRef, number: int) -> None:  # the round's number is in the task's name
    """Choose the marginal that the model describes worst."""
    run = run_of(ref)
    run.ask()
    run.absorb()
    _tell(ref)


@step("measure", _ROUND + " measure")
def measure(ref: RunRef, number: int) -> None:
    """Measure the chosen marginal."""
    run_of(ref).ask()


@step("fit", _ROUND + " fit")
def fit(ref: RunRef, number: int) -> None:
    """Fit the model to all answers so far."""
    run_of(ref).absorb()
    _tell(ref)


@step("checkpoint", _ROUND + " checkpoint")
def checkpoint(ref: RunRef, number: int) -> None:
    """Keep the state for whoever resumes."""
    run_of(ref).checkpoint()


def stage(ref: RunRef) -> Literal["one-way", "select", "measure", "done"]:
    """What the loop does next, which follows from released values."""
    return run_of(ref).state.stage


def round_number(ref: RunRef) -> int:
    """The number of the round that is under way."""
    return len(run_of(ref).state.rounds) + 1


def describe(ref: RunRef) -> str:
    """The last round in a line."""
    return describe_last_round(run_of(ref).state)


def _tell(ref: RunRef) -> None:
    for watcher in watchers():
        watcher.advanced(run_of(ref).state)
