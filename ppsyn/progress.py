"""How far a release has come, in words, and how long it has still to go: released values only."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ppsyn.state import State

_LATEST = 0.5
"""The pace is that of the latest part of the rounds: by budget, this share of what they have spent so far."""
_FEWEST = 3
"""Rounds before a pace can be told."""


@dataclass(slots=True)
class Pace:
    """Time left, by budget: seconds for each part of it, as the latest rounds took them.

    Rounds take longer as the model grows, and fewer as their budgets do; both show in the latest ones.
    What comes after the rounds, such as writing rows, is not in it.
    """

    clock: Callable[[], float] = time.monotonic
    _seen: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def saw(self, state: State) -> None:
        """Take note of a run that has absorbed an answer."""
        if state.stage == "one-way" or state.chosen is not None:
            return
        share = share_of(state)
        if not self._seen or share > self._seen[-1][1]:
            self._seen.append((self.clock(), share))

    def seconds_left(self) -> float | None:
        """What the budget that is left will take; None while too little was seen."""
        if len(self._seen) <= _FEWEST:
            return None
        (_, first), (now, share) = self._seen[0], self._seen[-1]
        start, before = next(one for one in reversed(self._seen) if share - one[1] >= _LATEST * (share - first))
        rate = (now - start) / (share - before)
        return max(0.0, rate * (1 - share) - (self.clock() - now))

    def told(self) -> str:
        """About how long, in words; nothing while too little was seen, and once the budget is spent."""
        seconds = self.seconds_left()
        return "" if seconds is None or self._seen[-1][1] == 1 else f"about {duration(seconds)} left"


def share_of(state: State) -> float:
    """The part of the budget that is spent."""
    return float(state.spent / state.plan.rho)


def describe(state: State) -> str:
    """What a run is doing, in a few words."""
    if state.one_way:
        return f"one-way marginals: {' x '.join(state.one_way[0].clique)}"
    if state.left == 0:
        return f"{len(state.rounds)} rounds"
    return f"round {len(state.rounds) + 1}: {' x '.join(state.chosen.clique) if state.chosen else 'choosing'}"


def last_round(state: State) -> str:
    """What a run has done last, and what it has spent, in a line."""
    if not state.rounds:
        return f"one-way marginals, {share_of(state):.0%} of the budget spent"
    done = state.rounds[-1]
    marginal = f"{' x '.join(done.clique)} in {done.groups} groups, noise {done.sigma:.4g}"
    return f"round {len(state.rounds)}: {marginal}, {share_of(state):.0%} of the budget spent"


def duration(seconds: float) -> str:
    """Rounded as roughly as it is known."""
    if seconds < 55:
        return f"{max(5, 5 * round(seconds / 5))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
