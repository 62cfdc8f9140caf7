"""How far a release has come, in words: released values only."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from ppsyn.extras import is_installed, require
from ppsyn.mechanisms.base import State


def spent_fraction(state: State) -> float:
    """The part of the budget that is spent."""
    return float(state.spent / state.plan.rho)


def describe(state: State) -> str:
    """What a run is doing, in a few words."""
    if state.one_way:
        return f"one-way marginals: {' x '.join(state.one_way[0].clique)}"
    if state.left == 0:
        return f"{len(state.rounds)} rounds"
    return f"round {len(state.rounds) + 1}: {' x '.join(state.chosen.clique) if state.chosen else 'choosing'}"


def describe_last_round(state: State) -> str:
    """What a run has done last, and what it has spent, in a line."""
    if not state.rounds:
        return f"one-way marginals, {spent_fraction(state):.0%} of the budget spent"
    done = state.rounds[-1]
    marginal = f"{' x '.join(done.clique)} in {done.groups} groups, noise {done.sigma:.4g}"
    return f"round {len(state.rounds)}: {marginal}, {spent_fraction(state):.0%} of the budget spent"


@contextmanager
def show_progress(is_wanted: bool | None) -> Generator[Callable[[State], None]]:
    """Watch a run on standard error; by default where that is a terminal and the extra `pipeline` is installed.

    Raises:
        MissingExtraError: If it is wanted and cannot be shown.
    """
    if is_wanted:
        require("pipeline", "A progress bar")
    elif is_wanted is False or not is_installed("pipeline"):
        yield lambda _: None
        return
    from ppsyn.reports.terminal import Terminal, is_live_terminal  # noqa: PLC0415  # rich comes with the extra

    if not (is_wanted or is_live_terminal()):
        yield lambda _: None
        return
    terminal = Terminal()
    terminal.start()
    try:
        terminal.say("one-way marginals")
        yield terminal.advance
    finally:
        terminal.stop()
