"""All datasets of a store at a glance: what is spent, what was released, what needs somebody, what comes next.

It shows accounts, runs and releases, which hold public and released values alone, and what Prefect was told of runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cache
from typing import Literal

from markupsafe import Markup

from ppsyn.privacy.budget import epsilon_from
from ppsyn.reports.charts import Caption, Mark, budget_bars, time_line
from ppsyn.reports.formatting import amount, percent, plural
from ppsyn.reports.pages import render_page

RunState = Literal["working", "waiting", "published", "retired", "abandoned"]
Kind = Literal["release", "quality"]

_SOON = 3
"""An account that has room for fewer releases than this after the next one is told of."""


_EMPTY = "The account is nearly empty:"
_LESS = "Release less often or at a smaller epsilon; to raise the cap is the decision of the data's owner."
_HORIZON = timedelta(days=36_525)
"""Nobody plans for a day that is further away."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit of a release came to.

    Attributes:
        problems: A sentence for each finding.
    """

    problems: tuple[str, ...]

    @property
    def is_green(self) -> bool:
        """Whether nothing was found."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run of a dataset.

    Attributes:
        at: When it reserved its budget.
        ended: When it was closed.
        committed: What the account counts for it.
        audit: None if it was not checked, or is no release.
    """

    run: str
    kind: Kind
    state: RunState
    at: datetime
    ended: datetime | None
    committed: Fraction
    audit: Audit | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A release that is to come.

    Attributes:
        dataset: None if nothing here tells of which one it is.
        source: What says so: a release file, or a deployment.
        at: When it starts; None if nobody has said.
        rho: What it reserves; None if its release file cannot be read here.
    """

    dataset: str | None
    source: str
    at: datetime | None
    rho: Fraction | None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that waits for somebody.

    Attributes:
        dataset: None if it is about none, or nobody knows about which.
        problem: What it is, in a sentence.
        remedy: What to do.
    """

    dataset: str | None
    problem: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """How long an account lasts.

    Attributes:
        cost: What the next release reserves.
        releases: How many of that cost fit into what is left.
        every: The time from one to the next; None if it is not known.
        until: When the first one is due that does not fit; None if that is not known, or more than a century away.
    """

    cost: Fraction
    releases: int
    every: timedelta | None
    until: datetime | None

    @property
    def is_short(self) -> bool:
        """Whether it runs out within the next three releases."""
        return self.releases <= _SOON

    @property
    def warning(self) -> str:
        """What to say, and to do, where it is short."""
        return f"{_EMPTY} {self.sentence} {_LESS}"

    @property
    def sentence(self) -> str:
        """What it comes to, for a person."""
        fit = f"{plural(self.releases, 'more release')} of rho {amount(self.cost)} {_fits(self.releases)}"
        if self.until is None or self.every is None:
            return f"{fit}."
        return f"{fit}; at one every {told_interval(self.every)}, the account runs out on {self.until.date()}."


@dataclass(frozen=True, slots=True)
class Dataset:
    """One dataset, as its account tells.

    Attributes:
        unit: What is protected.
        delta: At which epsilon is told.
        spent: By all runs so far.
        reserved: By runs that are open, and not spent.
        runs: In the order in which they reserved budget.
        planned: What is to come, the next first.
    """

    name: str
    unit: str
    delta: float | None
    cap: Fraction
    spent: Fraction
    reserved: Fraction
    runs: tuple[RunLine, ...]
    planned: tuple[Planned, ...]

    @property
    def left(self) -> Fraction:
        """What releases may still reserve."""
        return self.cap - self.spent - self.reserved

    @property
    def releases(self) -> tuple[RunLine, ...]:
        """The published releases."""
        return tuple(one for one in self.runs if one.kind == "release" and one.state == "published")

    @property
    def outlook(self) -> Outlook | None:
        """How long the account lasts: as planned, or else at the pace of its releases so far; None if neither tells."""
        times = [one.at for one in self.planned if one.at is not None]
        costs = [one.rho for one in self.planned if one.rho is not None]
        done = [one for one in self.runs if one.kind == "release" and one.state in ("published", "retired")]
        if not costs and not done:
            return None
        cost = costs[0] if costs else done[-1].committed
        fitting = self.left // cost
        pace = _pace(times, done)
        if pace is None:
            return Outlook(cost, fitting, None, None)
        every, begins = pace
        return Outlook(cost, fitting, every, begins + fitting * every if fitting < _HORIZON / every else None)

    def epsilon(self, rho: Fraction) -> float | None:
        """An amount at the account's delta."""
        return None if self.delta is None else _epsilon(rho, self.delta)

    def cost(self, rho: Fraction) -> str:
        """An amount, for a person."""
        epsilon = self.epsilon(rho)
        return f"rho {amount(rho)}" if epsilon is None else f"epsilon {epsilon:.3g} (rho {amount(rho)})"


def _pace(times: Sequence[datetime], done: Sequence[RunLine]) -> tuple[timedelta, datetime] | None:
    """The time from one release to the next, and when the next is due."""
    if len(times) > 1 and times[-1] > times[0]:
        return (times[-1] - times[0]) / (len(times) - 1), times[0]
    if len(done) < 2 or done[-1].at <= done[0].at:
        return None
    every = (done[-1].at - done[0].at) / (len(done) - 1)
    return every, times[0] if times else done[-1].at + every


def _fits(number: int) -> str:
    return "fits" if number == 1 else "fit"


def told_interval(every: timedelta) -> str:
    """A time between two releases, to the unit that a person would name."""
    for unit, seconds in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        number = every.total_seconds() / seconds
        if number >= 1.5 or unit == "minute":
            return f"{number:.3g} {unit}s"
        if number >= 1:
            return unit if abs(number - 1) < 0.05 else f"{number:.3g} {unit}s"
    return f"{every}"


@cache  # a conversion takes a millisecond
def _epsilon(rho: Fraction, delta: float) -> float:
    return epsilon_from(rho, delta)


@dataclass(frozen=True, slots=True)
class Overview:
    """A store at a glance.

    Attributes:
        store: Its address.
        at: When it was looked at.
        troubles: What waits for somebody, except for what audits and outlooks tell.
        unassigned: Planned releases of no dataset that is known here.
        is_audited: Whether releases were audited.
    """

    store: str
    at: datetime
    datasets: tuple[Dataset, ...]
    troubles: tuple[Trouble, ...]
    unassigned: tuple[Planned, ...]
    is_audited: bool

    @property
    def all_troubles(self) -> tuple[Trouble, ...]:
        """What waits for somebody."""
        return (*self.troubles, *(one for dataset in self.datasets for one in _troubles_of(dataset)))

    def as_json(self) -> dict[str, object]:
        """For scripts. Amounts are exact fractions of zCDP rho, with epsilon at the account's delta."""
        return {
            "store": self.store,
            "at": self.at.isoformat(),
            "audited": self.is_audited,
            "datasets": [_dataset_as_json(one) for one in self.datasets],
            "attention": [{"dataset": t.dataset, "problem": t.problem, "remedy": t.remedy} for t in self.all_troubles],
            "planned_of_unknown_datasets": [_planned_as_json(one) for one in self.unassigned],
        }


def _troubles_of(dataset: Dataset) -> Iterator[Trouble]:
    for run in dataset.runs:
        if run.audit is not None:
            for problem in run.audit.problems:
                yield Trouble(dataset.name, f"The audit of release {run.run} found: {problem}", "See `ppsyn audit`.")
        if run.state == "waiting":
            yield Trouble(
                dataset.name,
                f"Run {run.run} holds rho {amount(run.committed)} and no process works on it.",
                f"`ppsyn release FILE --resume {run.run}` or `ppsyn abandon {run.run}`."
                if run.kind == "release"
                else f"`ppsyn abandon {run.run}`.",
            )
    outlook = dataset.outlook
    if outlook is not None and outlook.is_short:
        yield Trouble(dataset.name, f"{_EMPTY} {outlook.sentence}", _LESS)


def _dataset_as_json(dataset: Dataset) -> dict[str, object]:
    outlook = dataset.outlook
    amounts = {"cap": dataset.cap, "spent": dataset.spent, "reserved": dataset.reserved, "left": dataset.left}
    return {
        "dataset": dataset.name,
        "unit": dataset.unit,
        "delta": dataset.delta,
        **{name: _amount(rho, dataset) for name, rho in amounts.items()},
        "runs": [_run_as_json(one, dataset) for one in dataset.runs],
        "planned": [_planned_as_json(one) for one in dataset.planned],
        "outlook": None
        if outlook is None
        else {
            "cost": _amount(outlook.cost, dataset),
            "releases": outlook.releases,
            "every_seconds": outlook.every.total_seconds() if outlook.every else None,
            "until": outlook.until.isoformat() if outlook.until else None,
        },
    }


def _run_as_json(run: RunLine, dataset: Dataset) -> dict[str, object]:
    return {
        "run": run.run,
        "kind": run.kind,
        "state": run.state,
        "opened_at": run.at.isoformat(),
        "closed_at": run.ended.isoformat() if run.ended else None,
        "committed": _amount(run.committed, dataset),
        "audit": None if run.audit is None else {"ok": run.audit.is_green, "problems": list(run.audit.problems)},
    }


def _planned_as_json(one: Planned) -> dict[str, object]:
    return {
        "source": one.source,
        "at": one.at.isoformat() if one.at else None,
        "rho": None if one.rho is None else str(one.rho),
    }


def _amount(rho: Fraction, dataset: Dataset) -> dict[str, object]:
    return {"rho": str(rho), "rho_value": float(rho), "epsilon": dataset.epsilon(rho)}


# The page


@dataclass(frozen=True, slots=True)
class Page:
    """What the template shows.

    Attributes:
        accounts: A bar for each account; None if there are none.
        history: The time line of all runs; None if there are none.
    """

    overview: Overview
    accounts: Markup | None
    history: Markup | None


def render(overview: Overview) -> bytes:
    """The page.

    Privacy:
        Claim C6. It is a function of accounts and releases.
    """
    return render_page("overview.html.j2", Page(overview, _accounts(overview.datasets), _history(overview)))


def _accounts(datasets: Sequence[Dataset]) -> Markup | None:
    if not datasets:
        return None
    bars = [
        (
            one.name,
            f"{percent(one.left / one.cap)} left",
            [("s-blue", one.spent / one.cap), ("s-orange", one.reserved / one.cap), ("s-line", one.left / one.cap)],
        )
        for one in datasets
    ]
    told = (
        f"{one.name}: spent {percent(one.spent / one.cap)}, reserved {percent(one.reserved / one.cap)}, "
        f"left {percent(one.left / one.cap)}"
        for one in datasets
    )
    return budget_bars("accounts", Caption("The accounts", f"{'; '.join(told)}."), bars)


def _history(overview: Overview) -> Markup | None:
    lanes = [(one.name, list(_marks(one))) for one in overview.datasets]
    if not any(marks for _, marks in lanes):
        return None
    told = (f"{name}: {plural(len(marks), 'mark')}" for name, marks in lanes)
    caption = Caption("Runs over time", f"{'; '.join(told)}. The tables below have the dates.")
    return time_line("history", caption, lanes, overview.at)


def _marks(dataset: Dataset) -> Iterable[Mark]:
    styles = {
        "published": "s-blue",
        "retired": "s-grey",
        "abandoned": "s-grey",
        "working": "s-orange",
        "waiting": "s-orange",
    }
    for run in dataset.runs:
        style = "s-pale" if run.kind == "quality" and run.state == "published" else styles[run.state]
        yield Mark(run.ended or run.at, style)
    for one in dataset.planned:
        if one.at is not None:
            yield Mark(one.at, "s-line")
