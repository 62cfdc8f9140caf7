"""What the Prefect UI shows of a run: released values only."""

import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from uuid import UUID

from httpx import HTTPError
from prefect import get_run_logger
from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.events import emit_event
from prefect.exceptions import PrefectException

from ppsyn.releases.layout import REPORT
from ppsyn.releases.reader import published_store, read_manifest, read_validation
from ppsyn.reports.overview import Outlook
from ppsyn.reports.progress import describe_last_round, spent_fraction
from ppsyn.schemas.run import RunRef
from ppsyn.tasks.run_registry import run_of

_SECONDS_BETWEEN_MOVES = 2


def _key(ref: RunRef, name: str) -> str:
    """One for all runs of a dataset, so that Prefect keeps their history under it."""
    return re.sub(r"[^a-z0-9]+", "-", f"{ref.dataset}-{name}".lower())


@contextmanager
def _shown() -> Generator[None]:
    """Show something if the server is there: a run that has paid does not end because nobody can look at it."""
    try:
        yield
    except (HTTPError, PrefectException, OSError) as error:
        get_run_logger().warning(f"The Prefect server takes nothing to show: {type(error).__name__}.")


class ProgressBar:
    """A bar that shows how much of the budget is spent; beside it the last round."""

    def __init__(self, ref: RunRef) -> None:
        """Show the run as it is."""
        self._ref, self._moved = ref, 0.0
        self._artifact: UUID | None = None
        with _shown():
            made = create_progress_artifact(self._percent, key=_key(ref, "progress"), description=self._description)
            self._artifact = cast("UUID", made)  # not awaited: this is not a coroutine

    def move(self) -> None:
        """Show the run as it is; between the first round and the last, not so often that a run would wait for it."""
        now, state = time.monotonic(), run_of(self._ref).state
        if self._artifact is not None and (state.stage == "done" or now >= self._moved + _SECONDS_BETWEEN_MOVES):
            artifact, self._artifact = self._artifact, None  # not again, should the server be away: each try waits
            with _shown():
                update_progress_artifact(artifact, self._percent, self._description)
                self._artifact = artifact
            self._moved = now

    @property
    def _percent(self) -> float:
        return round(100 * spent_fraction(run_of(self._ref).state), 2)

    @property
    def _description(self) -> str:
        state = run_of(self._ref).state
        done = describe_last_round(state) if state.stage != "one-way" else "one-way marginals"
        return f"{self._ref.dataset}, run {self._ref.run}: {done}"


def show_rounds(ref: RunRef) -> None:
    """The rounds: what was measured, how its cells were merged, and how far the answer lay from the model."""
    rows: list[dict[str, object]] = [
        {
            "round": number,
            "marginal": " x ".join(done.clique),
            "groups": done.groups,
            "noise (sd of a count)": round(done.sigma, 2),
            "distance from the model": round(done.distance, 1),
            "of which noise": round(done.noise, 1),
        }
        for number, done in enumerate(run_of(ref).state.rounds, 1)
    ]
    with _shown():
        create_table_artifact(rows, key=_key(ref, "rounds"), description=f"Rounds of run {ref.run}")


def warn_if_short(ref: RunRef) -> None:
    """Say that the account runs out within its next three releases like this one, to the log and to automations."""
    state = run_of(ref).account.state
    cost = state.budgets[ref.run].total
    outlook = Outlook(cost, state.left // cost, None, None)
    if outlook.is_short:
        message = f"{ref.dataset}: {outlook.warning}"
        get_run_logger().warning(message)
        about = {"prefect.resource.id": f"ppsyn.account.{ref.dataset}", "prefect.resource.name": ref.dataset}
        with _shown():
            emit_event("ppsyn.account.runs-out", about, payload={"message": message, "releases": outlook.releases})


def show_budget(ref: RunRef) -> None:
    """The account of the dataset, release by release."""
    account = run_of(ref).account
    state = account.state
    rows: list[dict[str, object]] = [
        {
            "run": budget.run,
            "reserved (rho)": float(budget.reserved),
            "spent (rho)": float(budget.spent),
            "state": "published" if budget.manifest else "open" if budget.is_open else "abandoned",
        }
        for budget in account.budgets()
    ]
    description = f"{ref.dataset}: rho {float(state.left):.6g} left of {float(state.cap):.6g}"
    with _shown():
        create_table_artifact(rows, key=_key(ref, "budget"), description=description)


def show_release(ref: RunRef, url: str) -> None:
    """What was published, at which cost, and whether it fits its schema."""
    run = run_of(ref)
    store = published_store(ref)
    guarantee, results = read_manifest(store)[0].guarantee, read_validation(store).results
    cost = f"rho {float(guarantee.rho):.6g}"
    if guarantee.epsilon is not None:
        cost += f", which is epsilon {guarantee.epsilon:.4g} at delta {guarantee.delta:g}"
    lines = [
        f"## {ref.dataset}: run {ref.run}",
        f"- published at `{url}`",
        f"- spent {cost}; protects {guarantee.unit}",
        f"- {len(run.state.rounds)} rounds, {len(run.state.measurements)} measurements",
        f"- {sum(result.success for result in results)} of {len(results)} checks of the synthetic table hold",
    ]
    report = f"{Path(url).as_uri() if ref.releases.is_local else url}/{REPORT}"
    with _shown():
        create_markdown_artifact("\n".join(lines), key=_key(ref, "release"), description=f"Run {ref.run}")
        create_link_artifact(report, link_text=f"Report of run {ref.run}", key=_key(ref, "report"))
        create_table_artifact(
            [result.model_dump(mode="json") for result in results],
            key=_key(ref, "validation"),
            description=f"Checks of the synthetic table of run {ref.run}",
        )
    show_budget(ref)
