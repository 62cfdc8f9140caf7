"""How far a release has come, in words: released values only."""

from ppsyn.mechanisms.base import State


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
