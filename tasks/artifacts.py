"""What the Prefect UI shows of a run: released values only."""

import re
import time
from typing import cast
from uuid import UUID

from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from ppsyn.releases.opened import read_manifest, read_validation, released
from ppsyn.runs.run import Run
from schemas.run import RunRef
from tasks.runs import run_of

_SECONDS_BETWEEN_MOVES = 2
_MOVED: dict[UUID, float] = {}


def _key(ref: RunRef, name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"{ref.dataset}-{ref.run}-{name}".lower())


def start_progress(ref: RunRef) -> UUID:
    """A bar that shows how much of the budget is spent."""
    description = f"{ref.dataset}: budget spent by run {ref.run}"
    made = create_progress_artifact(_percent(run_of(ref)), key=_key(ref, "progress"), description=description)
    return cast("UUID", made)  # not awaited: this is not a coroutine


def show_progress(ref: RunRef, artifact: UUID) -> None:
    """Move the bar; between the first round and the last, not so often that a run would wait for it."""
    now, run = time.monotonic(), run_of(ref)
    if run.state.stage == "done" or now >= _MOVED.get(artifact, 0.0) + _SECONDS_BETWEEN_MOVES:
        update_progress_artifact(artifact, _percent(run))
        _MOVED[artifact] = now


def _percent(run: Run) -> float:
    return round(100 * float(run.state.spent / run.plan.rho), 2)


def show_rounds(ref: RunRef) -> None:
    """The rounds: what was measured, how its cells were merged, and how far the answer lay from the model."""
    rows: list[dict[str, object]] = [
        {
            "round": number,
            "marginal": " x ".join(done.clique),
            "groups": done.groups,
            "noise (sd of a count)": round(done.sigma, 2),
            "distance from the model": round(done.surprise, 1),
            "of which noise": round(done.noise, 1),
        }
        for number, done in enumerate(run_of(ref).state.rounds, 1)
    ]
    create_table_artifact(rows, key=_key(ref, "rounds"), description=f"Rounds of run {ref.run}")


def show_budget(ref: RunRef) -> None:
    """The account of the dataset, release by release."""
    book = run_of(ref).account.book
    rows: list[dict[str, object]] = [
        {
            "run": part.run,
            "held (rho)": float(part.ledger.total),
            "spent (rho)": float(part.ledger.spent),
            "state": "published" if part.manifest else "open" if part.is_open else "abandoned",
        }
        for part in book.parts.values()
    ]
    description = f"{ref.dataset}: rho {float(book.left):.6g} left of {float(book.cap):.6g}"
    create_table_artifact(rows, key=_key(ref, "budget"), description=description)


def show_release(ref: RunRef, url: str) -> None:
    """What was released, at which cost, and whether it fits its schema."""
    run = run_of(ref)
    store = released(ref)
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
    create_markdown_artifact("\n".join(lines), key=_key(ref, "release"), description=f"Release of {ref.dataset}")
    create_table_artifact(
        [result.model_dump(mode="json") for result in results],
        key=_key(ref, "validation"),
        description="Checks of the synthetic table",
    )
    show_budget(ref)
