"""Removing a published release for good, so that what it has cost is not forgotten.

The erasure record comes first, and is created once; then everything else goes. Whatever ends the process in between,
the release counts as retired, and the same command goes on where it stopped.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from ppsyn.errors import RunError
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.account_state import RunBudget
from ppsyn.releases.layout import LATEST, MANIFEST, RETIRED, release_folder
from ppsyn.releases.reader import file_digest, read_retirement, read_sealed
from ppsyn.runs.cleanup import account_of
from ppsyn.runs.record import locations_of, run_folder
from ppsyn.schemas.locations import Location
from ppsyn.schemas.retirement import Retirement
from ppsyn.storage import Store, open_store

_KEPT_OF_RUNS = ("answers", "checkpoints")
"""What a run keeps that the release could be made of again."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """Who wants a release removed, and why."""

    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Retired:
    """What became of a release.

    Attributes:
        was_over: Whether it had been retired before, and nothing was left to remove.
        latest: The release that `latest` stands for now; None if there is none.
    """

    record: Retirement
    was_over: bool
    latest: str | None


def retire(root: Store, releases: Location | None, run: str, erasure: Erasure) -> Retired:
    """Remove a published release, with the answers that it could be made of again. May be repeated until all is gone.

    Args:
        root: The store with the account and the run.
        releases: Where the release is; None if that is where the run wrote down that it publishes.
        run: The run.
        erasure: Who and why.

    Raises:
        RunError: If there is no such release, or it is not published to the end.
        ConfigError: If its manifest is not the one that was published.
        StoreError: If something cannot be removed; repeat it.
    """
    run_folder(run)  # or it is no name of a run
    account = account_of(root, run)
    budget = None if account is None else account.state.budgets.get(run)
    if account is None or budget is None or budget.quality_of is not None:
        raise RunError(f"There is no release {run} that an account in {root.location.url} knows.")
    if budget.is_open or budget.manifest is None:
        ended = "still open: resume it first" if budget.is_open else "abandoned: there is nothing to retire"
        raise RunError(f"Run {run} is {ended}.")
    store = open_store(releases or _noted(root, run))
    folder = release_folder(account.dataset, run)
    record = _record(store, folder, budget, account.dataset, erasure)
    rest = [key for key in store.keys(folder) if key != f"{folder}/{RETIRED}"]
    store.discard(sorted(rest, key=lambda key: key != f"{folder}/{MANIFEST}"))
    for name in _KEPT_OF_RUNS:
        root.delete(f"{run_folder(run)}/{name}")
    return Retired(record, not rest, _move_latest(store, account))


def _noted(root: Store, run: str) -> Location:
    noted = locations_of(root, run)
    return root.location if noted is None or noted.releases is None else noted.releases


def _record(store: Store, folder: str, budget: RunBudget, dataset: str, erasure: Erasure) -> Retirement:
    """The one erasure record of the release: the first that any process made."""
    inside = open_store(store.location.child(folder))
    before = read_retirement(inside)
    if before is not None:
        return before
    manifest, digest = read_sealed(inside)
    if (manifest.dataset, manifest.run, digest) != (dataset, budget.run, budget.manifest):
        raise RunError(f"{inside.location.url} is not the release that the account of {dataset!r} has paid for.")
    record = Retirement(
        dataset=dataset,
        run=budget.run,
        retired_at=datetime.now(UTC).replace(microsecond=0),
        by=erasure.by,
        reason=erasure.reason,
        published_at=manifest.published_at,
        guarantee=manifest.guarantee,
        manifest=digest,
        files={name: file_digest(inside, name) for name in inside.keys("")},
    )
    inside.create(RETIRED, record.to_bytes())
    return read_retirement(inside) or record


def _move_latest(store: Store, account: StoredAccount) -> str | None:
    """Have `latest` name the newest release that is there; whoever publishes meanwhile names its own after us."""
    key = f"releases/{account.dataset}/{LATEST}"
    while True:
        newest = _newest(store, account)
        if newest is None:
            store.discard([key])
        else:
            latest = {"run": newest.run, "manifest": newest.manifest}
            store.put(key, json.dumps(latest).encode() + b"\n")
        if _newest(store, account) == newest:
            return None if newest is None else newest.run


def _newest(store: Store, account: StoredAccount) -> RunBudget | None:
    done = [b for b in account.state.budgets.values() if b.closed_at and b.manifest and b.quality_of is None]
    for budget in sorted(done, key=lambda budget: (str(budget.closed_at), budget.run), reverse=True):
        folder = release_folder(account.dataset, budget.run)
        if store.has(f"{folder}/{MANIFEST}") and not store.has(f"{folder}/{RETIRED}"):
            return budget
    return None
