"""How far a run has come, in words and on a terminal."""

import re
import time

import pytest
from support.loops import ScriptedCurator, small_plan, steps
from support.terminals import terminal_as_stderr

from ppsyn.mechanisms.base import State
from ppsyn.mechanisms.loop import run, start
from ppsyn.reports.progress import describe, describe_last_round, show_progress

PLAN = small_plan(anneal_threshold=1e6)
"""As many rounds as were planned."""


def states() -> list[State]:
    """Every state of a run, the last among them."""
    seen = [start(PLAN)]
    run(ScriptedCurator(), seen[0], seen.append)
    return seen


STATES = states()
SETTLED = next(state for state in STATES if state.stage == "select")


def test_every_state_has_its_words() -> None:
    told = [describe(state) for state in STATES]
    assert told[0] == "one-way marginals: a"
    assert "round 1: choosing" in told
    assert any(re.fullmatch(r"round 1: \w( x \w)*", text) for text in told)
    assert told[-1] == f"{len(STATES[-1].rounds)} rounds"
    done = STATES[-1].rounds[-1]
    assert describe_last_round(STATES[-1]) == (
        f"round {len(STATES[-1].rounds)}: {' x '.join(done.clique)} in {done.groups} groups, "
        f"noise {done.sigma:.4g}, 100% of the budget spent"
    )
    assert describe_last_round(SETTLED).startswith("one-way marginals, ")


def test_steps_and_states_agree() -> None:
    assert len(list(steps(PLAN, ScriptedCurator()))) == len(STATES) - 1


def seen_on_a_terminal() -> str:
    """What a terminal gets that is standard error; it is slow enough to be drawn."""
    with terminal_as_stderr() as seen, show_progress(None) as watch:
        for state in STATES:
            watch(state)
            time.sleep(0.11 if state.chosen else 0)
    return seen()


def test_a_terminal_shows_rounds_budget_marginal_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    seen = seen_on_a_terminal()
    assert re.search(r"round \d+: \w", seen)
    assert "100% of the budget" in seen
    assert re.search(r"left \d:\d\d:\d\d", re.sub(r"\x1b\[[\d;]*m", "", seen))
    assert "\x1b[38;5;" in seen
    assert seen.endswith("\x1b[?25h")
    assert max(len(re.sub(r"\x1b\[[?\d;]*\w", "", line)) for line in re.split(r"[\r\n]", seen)) <= 80


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_has_no_colours_if_it_wants_or_knows_none(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv(name, value)
    seen = seen_on_a_terminal()
    assert not re.search(r"\x1b\[(\d+;)*[34]\d", seen)
    assert ("budget" in seen) == (name == "NO_COLOR")
