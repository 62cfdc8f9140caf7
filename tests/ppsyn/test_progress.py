"""How far a run has come, and how long it has still to go."""

import re
import time
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import ScriptedCurator, small_plan, steps
from terminals import terminal_as_stderr

from ppsyn.progress import Pace, describe, last_round
from ppsyn.state import State
from ppsyn.synthesizer import run, start
from ppsyn.terminal import shown


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


PLAN = small_plan(eta=1e6)
"""As many rounds as were planned: a pace shows after a few."""


def states() -> list[State]:
    """Every state of a run, the last among them."""
    seen = [start(PLAN)]
    run(ScriptedCurator(), seen[0], seen.append)
    return seen


STATES = states()
SETTLED = next(state for state in STATES if state.stage == "select")


def paced(shares: list[float], seconds: list[float]) -> tuple[Pace, Clock]:
    """What was seen of a run that has spent these shares of its budget at these times."""
    clock = Clock()
    pace = Pace(clock)
    for share, now in zip(shares, seconds, strict=True):
        clock.now = now
        pace.saw(replace(SETTLED, spent=SETTLED.plan.rho * Fraction(share), chosen=None, one_way=()))
    return pace, clock


def test_nothing_is_told_before_some_rounds_were_seen() -> None:
    assert Pace().told() == ""
    assert paced([0.3, 0.4, 0.5], [1, 2, 3])[0].seconds_left() is None


def test_an_even_pace_is_told_exactly_and_time_counts_down() -> None:
    pace, clock = paced([0.35, 0.4, 0.45, 0.5, 0.55], [10, 11, 12, 13, 14])
    assert pace.seconds_left() == pytest.approx(9)
    assert pace.told() == "about 10 s left"
    clock.now += 8
    assert pace.seconds_left() == pytest.approx(1)
    clock.now += 100
    assert pace.seconds_left() == 0


@settings(deadline=None, max_examples=50)
@given(
    st.floats(0, 0.6), st.integers(8, 60), st.floats(1, 4), st.floats(0.3, 0.95),
)  # fmt: skip
def test_rounds_that_get_slower_are_told_within_a_factor_of_six(
    first: float, rounds: int, power: float, at: float
) -> None:
    """Time grows up to the fourth power of the rounds' budget; whoever looks early sees the larger error."""
    shares = [first + (1 - first) * number / rounds for number in range(rounds + 1)]
    seconds = [100 * (number / rounds) ** power for number in range(rounds + 1)]
    now = max(4, int(at * rounds))
    left = paced(shares[: now + 1], seconds[: now + 1])[0].seconds_left()
    assert left is not None
    if now / rounds >= 0.6:
        assert (100 - seconds[now]) / 6 <= left <= 6 * (100 - seconds[now]) + 1e-6


def test_only_rounds_set_the_pace() -> None:
    clock, pace = Clock(), None
    pace = Pace(clock)
    for state in STATES:
        clock.now += 1000 if state.stage == "one-way" else 1
        pace.saw(state)
    assert pace.seconds_left() == 0
    assert pace._seen[0][1] == float(SETTLED.spent / SETTLED.plan.rho)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "5 s"), (12, "10 s"), (54, "55 s"), (56, "1 min"), (200, "3 min"), (3599, "1 h 00 min"), (8000, "2 h 13 min")],
)
def test_time_is_told_as_roughly_as_it_is_known(seconds: float, told: str) -> None:
    pace, _ = paced([0.1, 0.2, 0.3, 0.4, 0.5], [0, seconds / 5, 2 * seconds / 5, 3 * seconds / 5, 4 * seconds / 5])
    assert pace.told() == f"about {told} left"


def test_every_state_has_its_words() -> None:
    told = [describe(state) for state in STATES]
    assert told[0] == "one-way marginals: a"
    assert "round 1: choosing" in told
    assert any(re.fullmatch(r"round 1: \w( x \w)*", text) for text in told)
    assert told[-1] == f"{len(STATES[-1].rounds)} rounds"
    done = STATES[-1].rounds[-1]
    assert last_round(STATES[-1]) == (
        f"round {len(STATES[-1].rounds)}: {' x '.join(done.clique)} in {done.groups} groups, "
        f"noise {done.sigma:.4g}, 100% of the budget spent"
    )
    assert last_round(SETTLED).startswith("one-way marginals, ")


def test_steps_and_states_agree() -> None:
    assert len(list(steps(PLAN, ScriptedCurator()))) == len(STATES) - 1


def seen_on_a_terminal() -> str:
    """What a terminal gets that is standard error; it is slow enough to be drawn."""
    with terminal_as_stderr() as seen, shown(None) as watch:
        for state in STATES:
            watch(state)
            time.sleep(0.11 if state.chosen else 0)
    return seen()


def test_a_terminal_shows_rounds_budget_marginal_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    seen = seen_on_a_terminal()
    assert re.search(r"round \d+: \w", seen)
    assert "100% of the budget" in seen
    assert re.search(r"about \d+ s left", seen)
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
