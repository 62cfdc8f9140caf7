"""Charts of what epsilon means, from formulas and from the committed benchmark results."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean

import pyarrow.parquet as pq
from charts import Axis, Curve, chart

from ppsyn.privacy.budget import rho_from

DELTA = 1e-9
CAP = 10.0
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
RESULTS = Path(__file__).resolve().parents[1] / "results" / "model-1mb.parquet"

_ACROSS = Axis("epsilon, at delta 1e-9", [(epsilon, f"{epsilon:g}") for epsilon in EPSILONS], is_log=True)
_PERCENTS = [(share / 100, f"{share}%") for share in range(0, 101, 20)]
_FINE = [0.05 * 100 ** (step / 80) for step in range(81)]
"""Epsilons from 0.05 to 5."""


def belief(prior: float, epsilon: float) -> float:
    """Return the largest possible posterior belief, ignoring delta: the odds grow by exp(epsilon)."""
    odds = math.exp(epsilon) * prior / (1 - prior)
    return odds / (1 + odds)


def guess_by_epsilon(epsilon: float) -> float:
    """Return the highest chance of guessing right between two equally likely neighbours, under (epsilon, DELTA)."""
    return (math.exp(epsilon) + DELTA) / (math.exp(epsilon) + 1)


def guess_by_rho(epsilon: float) -> float:
    """Return the same under the rho of such a release: KL divergence at most rho, and Pinsker's inequality."""
    return (1 + min(1.0, math.sqrt(rho_from(epsilon, DELTA) / 2))) / 2


def releases(epsilon: float) -> int:
    """Return how many releases of this epsilon fit under the cap."""
    return int(rho_from(CAP, DELTA) / rho_from(epsilon, DELTA))


@cache
def errors() -> Mapping[str, Mapping[float, float]]:
    """Return the mean workload error of ppsyn, by table and epsilon."""
    rows = pq.read_table(RESULTS, columns=["dataset", "mechanism", "epsilon", "workload_error"]).to_pylist()
    ours = [row for row in rows if row["mechanism"] == "ppsyn"]
    return {
        name: {
            epsilon: mean(row["workload_error"] for row in ours if (row["dataset"], row["epsilon"]) == (name, epsilon))
            for epsilon in sorted({row["epsilon"] for row in ours})
        }
        for name in sorted({row["dataset"] for row in ours})
    }


def _over(function: Callable[[float], float], epsilons: Sequence[float] = _FINE) -> list[tuple[float, float]]:
    return [(epsilon, function(epsilon)) for epsilon in epsilons]


def _beliefs() -> str:
    summary = ", ".join(f"from 10% to {belief(0.1, epsilon):.0%} at epsilon {epsilon:g}" for epsilon in (0.1, 1.0, 5.0))
    curves = [
        Curve(f"from {prior:.0%}", _over(lambda epsilon, prior=prior: belief(prior, epsilon)))
        for prior in (0.5, 0.1, 0.01)
    ]
    return chart(
        "belief",
        ("The most that someone can come to believe", f"It grows with epsilon: {summary}."),
        (_ACROSS, Axis("believed after the release, at most", _PERCENTS)),
        curves,
        "Someone believes something about you with a probability of 1%, 10% or 50%. The curves show how certain your "
        "data in the table can make them, whatever else they know. At small epsilon the release hardly changes it.",
    )


def _guesses() -> str:
    summary = "; ".join(
        f"at epsilon {epsilon:g}, {guess_by_epsilon(epsilon):.0%} and {guess_by_rho(epsilon):.0%}"
        for epsilon in (0.1, 1.0, 5.0)
    )
    return chart(
        "guess",
        ("The highest chance of guessing whether you are in the table", f"By epsilon alone, and by rho: {summary}."),
        (_ACROSS, Axis("right guesses, at most", _PERCENTS[2:])),
        [Curve("by epsilon", _over(guess_by_epsilon)), Curve("by rho", _over(guess_by_rho))],
        "A coin flip decides whether you are in the table. Someone who knows all other rows sees the release and "
        "guesses. 50% is no better than not looking. The lower curve is what ppsyn promises: it spends in rho, which "
        "implies more than the epsilon and delta computed from it.",
    )


def _errors() -> str:
    found = errors()
    summary = "; ".join(f"{name}: {by[0.1]:.1%} at 0.1, {by[1.0]:.1%} at 1" for name, by in found.items())
    ticks = [(epsilon, f"{epsilon:g}") for epsilon in EPSILONS[:-1]]
    return chart(
        "errors",
        ("Error of three-way marginals by epsilon", f"It falls as epsilon grows. {summary}."),
        (
            Axis(_ACROSS.label, ticks, is_log=True),
            Axis("total variation distance", [(n / 100, f"{n}%") for n in range(0, 26, 5)]),
        ),
        [Curve(name, list(by.items()), is_measured=True) for name, by in found.items()],
        "Mean workload error of five runs, by table: the total variation distance averaged over 64 three-way "
        "marginals. Doubling epsilon helps less and less.",
    )


def _releases() -> str:
    ticks = [(10.0**power, f"{10**power:,}") for power in range(6)]
    summary = "; ".join(f"{releases(epsilon):,} of epsilon {epsilon:g}" for epsilon in (0.1, 1.0, 5.0))
    return chart(
        "releases",
        (f"Releases that fit under a cap of epsilon {CAP:g}", f"{summary}."),
        (_ACROSS, Axis("releases", ticks, is_log=True)),
        [Curve("in rho", _over(releases)), Curve("in epsilon", _over(lambda epsilon: CAP / epsilon))],
        f"Releases of one size under a cap of epsilon {CAP:g}. The account adds rho, which grows with the square of "
        "epsilon: half the epsilon leaves room for nearly four times as many releases. The dashed line adds "
        "epsilons instead, which would leave room for only twice as many.",
    )


def _table() -> str:
    names = list(errors())
    heads = ["epsilon", "rho", "guess right", "belief from 10%", f"releases under epsilon {CAP:g}"]
    lines = [[*heads, *(f"error on {name}" for name in names)], ["---:"] * (len(heads) + len(names))]
    for epsilon in EPSILONS:
        measured = [errors()[name].get(epsilon) for name in names]
        promised = [f"{guess_by_rho(epsilon):.1%}", f"{belief(0.1, epsilon):.1%}", f"{releases(epsilon):,}"]
        found = ["" if error is None else f"{error:.1%}" for error in measured]
        lines.append([f"{epsilon:g}", f"{float(rho_from(epsilon, DELTA)):.3g}", *promised, *found])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


PICTURES: Mapping[str, Callable[[], str]] = {
    "beliefs": _beliefs,
    "guesses": _guesses,
    "errors": _errors,
    "releases": _releases,
    "table": _table,
}
"""By the names that pages use."""
