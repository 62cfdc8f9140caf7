"""Moving a dataset to another store: its account, its runs and its releases.

The account leaves the old store first, by an entry that nothing can follow, and is usable in the new one last. In
between it is usable nowhere, so that both stores can never go on. Whatever ends the process, the same command goes on.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import uuid4

from ppsyn.errors import AccountError, InvariantError
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.account_state import AccountState, moved_account
from ppsyn.releases.layout import LATEST, MANIFEST
from ppsyn.runs.account_check import check_known
from ppsyn.runs.record import private_folder, run_folder
from ppsyn.storage import Store, prove


@dataclass(frozen=True, slots=True)
class Move:
    """What became of a move.

    Attributes:
        copied: How many objects this call has copied, beside the entries of the account.
        runs: How many runs the account has.
    """

    copied: int
    runs: int


def move(source: Store, target: Store, dataset: str) -> Move:
    """Move a dataset's account to another store, with the runs and releases that lie beside it, and go on there.

    Privacy:
        Claim C9. Only one of the two stores can ever grant budget: the old one until the
        account has left it, the new one from when all of it is there.

    Raises:
        AccountError: If a run is open, the account was moved elsewhere, or there is another in the target.
        StoreError: If a store fails; repeat it.
    """
    account = StoredAccount(source, dataset)
    state = account.state
    check_known(account, source, source)
    if state.moved_to is None:
        _check_free(target, state)
        _try(target)
        account.leave(target.location.url)
    elif state.moved_to != target.location.url:
        raise moved_account(dataset, state.moved_to)
    there = StoredAccount(target, dataset)
    objects = () if there.has_begun else _objects(source, account)  # what was removed there since is not brought back
    copied = sum(_copied(source, target, key) for key in objects)
    there.arrive(account.entries())
    if not account.state.budgets.items() <= there.state.budgets.items():
        raise InvariantError(f"The account of {dataset!r} is not the same where it was moved to.")
    check_known(there, target, target)
    return Move(copied, len(state.budgets))


def _check_free(target: Store, state: AccountState) -> None:
    """See that the target has nothing of the dataset."""
    dataset = state.opening.dataset
    taken = [f"accounts/{dataset}", f"releases/{dataset}", *(run_folder(run) for run in state.budgets)]
    for folder in taken:
        if target.holds(folder):
            raise AccountError(
                f"Expected nothing of {dataset!r} in {target.location.url}, got {folder}. Nothing was changed. Name an "
                "empty place."
            )


def _try(target: Store) -> None:
    """See that the target honours conditional writes, before anything depends on it."""
    key = f"staging/move-{uuid4().hex}"
    prove(target, key, b"tried")
    target.discard([key])


def _objects(source: Store, account: StoredAccount) -> Iterable[str]:
    """What is copied, in order: charges, runs, releases with their manifests after the rest, and `latest`."""
    dataset = account.dataset
    yield from source.keys(f"accounts/{dataset}/charges")
    for run in account.state.budgets:
        hidden = (f"{private_folder(run)}/", f"{run_folder(run)}/pulse/")
        yield from (key for key in source.keys(run_folder(run)) if not key.startswith(hidden))
    releases = source.keys(f"releases/{dataset}")
    yield from sorted(releases, key=lambda key: (key.endswith(f"/{LATEST}"), key.endswith(f"/{MANIFEST}"), key))


def _copied(source: Store, target: Store, key: str) -> bool:
    """Copy an object, unless it is there: none of these ever changes."""
    if target.has(key):
        return False
    with source.reader(key) as old, target.writer(key) as new:
        shutil.copyfileobj(old, new)
    return True
