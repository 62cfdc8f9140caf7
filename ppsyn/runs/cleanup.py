"""The end of a run that is not published, and the removal of what runs that have ended left behind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from ppsyn.errors import AccountError, InvariantError, RunError, StoreError
from ppsyn.privacy.account import StoredAccount, datasets
from ppsyn.privacy.account_state import RunBudget
from ppsyn.releases.layout import staging_folder
from ppsyn.runs.checkpoints import Answers
from ppsyn.runs.record import locations_of, private_folder, run_folder
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store

_GIVE = "Give the release file, or that location as --private."
_UNKNOWN_FOR = timedelta(days=1)
"""What no account knows is left alone for so long: it may be of a run that has just begun."""


@dataclass(frozen=True, slots=True)
class Left:
    """Something that a run has left behind.

    Attributes:
        location: Where it is.
        folder: What it is, as a folder of that location.
        why: Why nobody needs it any more.
    """

    location: Location
    folder: str
    why: str

    @property
    def url(self) -> str:
        """Its address."""
        return self.location.child(self.folder).url


@dataclass(frozen=True, slots=True)
class Stuck:
    """Something that could not be removed, or even looked for, and why."""

    url: str
    problem: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """What became of a run.

    Attributes:
        freed: What it had reserved and had not spent.
        spent: What stays spent.
        reserved: Whether it had reserved anything at all.
        was_over: Whether it had been given up before.
        removed: What was removed of it.
        stuck: What could not be.
    """

    freed: Fraction
    spent: Fraction
    reserved: bool
    was_over: bool
    removed: tuple[Left, ...]
    stuck: tuple[Stuck, ...]


def account_of(root: Store, run: str) -> StoredAccount | None:
    """The account that a run is paid by, as the accounts tell; None if none knows the run.

    Raises:
        AccountError: If none knows it and an account is damaged, which may be the one.
    """
    damaged: AccountError | None = None
    for dataset in datasets(root):
        account = StoredAccount(root, dataset)
        try:
            state = account.find()
        except AccountError as error:
            damaged = error
        else:
            if state is not None and run in state.budgets:
                return account
    if damaged is not None:
        raise damaged
    return None


def give_up(root: Store, locations: Sequence[Location] | None, run: str) -> GivenUp:
    """Close a run that will not be resumed, from its account alone; then remove what it left behind.

    May be repeated, until all is removed.

    Args:
        root: The store with the account.
        locations: Where the run left something, besides; None if that is where the run wrote down that it keeps things.
        run: The run.

    Raises:
        RunError: If there is no such run.
        AccountError: If it is published.
    """
    folder, account, noted = run_folder(run), account_of(root, run), locations_of(root, run)
    if locations is None and noted is not None:
        locations = [location for location in (noted.private, noted.releases) if location is not None]
    rests = [
        Left(location, each, "given up")
        for location in {location.url: location for location in (root.location, *(locations or ()))}.values()
        for each in (private_folder(run), staging_folder(run))
    ]
    if account is None:
        if not root.keys(folder):
            raise RunError(f"There is no run {run} in {root.location.url}.")
        _check_untold(root, run)
        removed, stuck = remove(
            [*rests, Left(root.location, folder, "it reserved nothing")]
        )  # or it could still be resumed
        return GivenUp(Fraction(0), Fraction(0), False, False, removed, stuck)
    budget = account.budget(run)
    if budget is None:
        raise InvariantError("An account does not know a run that it knew.")
    if budget.manifest is not None:
        raise AccountError(f"Run {run} is closed: it is published. What it left behind is removed by `ppsyn clean`.")
    was_open = budget.is_open
    if was_open:
        account.close(run, None)
        budget = account.state.budgets[run]
    removed, stuck = remove(rests)
    if locations is None and was_open and not any(left.folder == private_folder(run) for left in removed):
        stuck = (*stuck, Stuck(f"its copy of the table: no note in {root.url(folder)} tells where it is", _GIVE))
    return GivenUp(budget.total - budget.spent, budget.spent, True, not was_open, removed, stuck)


def _check_untold(root: Store, run: str) -> None:
    """See that a run that no account knows has told nothing: what it leaves would be all that speaks of it."""
    charged = {name for dataset in datasets(root) for name in StoredAccount(root, dataset).charged_runs()}
    if run in charged or Answers(root, run).steps():
        raise AccountError(
            f"No account in {root.location.url} knows run {run}, which has answers: an account was removed or set "
            "back. Nothing was changed. Restore it."
        )


def remove(rests: Iterable[Left]) -> tuple[tuple[Left, ...], tuple[Stuck, ...]]:
    """Remove as much as can be: what was there and is gone, and what is there still or nobody knows."""
    removed, stuck = list[Left](), list[Stuck]()
    for left in rests:
        try:
            store = open_store(left.location)
            if store.holds(left.folder):
                store.delete(left.folder)
                removed.append(left)
        except StoreError as error:
            stuck.append(Stuck(left.url, str(error)))
    return tuple(removed), tuple(stuck)


def orphans(root: Store, locations: Sequence[Location]) -> tuple[list[Left], list[Stuck]]:
    """What can be removed from these locations; and where nobody can look.

    That is what runs that have ended left there, and what nobody knows of and nobody has written to for a day. A run
    that is open, in any account of the root, is left as it is.

    Raises:
        AccountError: If an account is damaged: its open runs are not known.
    """
    found, stuck = list[_Candidate](), list[Stuck]()
    for location in locations:  # before the accounts: what runs that begin meanwhile reserve is not among it
        try:
            found += _candidates(open_store(location))
        except StoreError as error:
            stuck.append(Stuck(location.url, str(error)))
    budgets: dict[str, RunBudget] = {}
    for dataset in datasets(root):
        budgets |= StoredAccount(root, dataset).state.budgets
    return [left for each in found if (left := each.left(budgets.get(each.run))) is not None], stuck


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A folder that is removed when its run ends."""

    location: Location
    folder: str
    run: str
    is_old: bool

    def left(self, budget: RunBudget | None) -> Left | None:
        """What it is, unless it is needed or may be."""
        if budget is None:
            return Left(self.location, self.folder, "of no run that is known") if self.is_old else None
        return (
            None
            if budget.is_open
            else Left(self.location, self.folder, "published" if budget.manifest else "abandoned")
        )


def _candidates(store: Store) -> list[_Candidate]:
    folders = [(run, private_folder(run)) for run in store.folders("runs") if store.holds(private_folder(run))]
    folders += [(run, staging_folder(run)) for run in store.folders("staging")]
    return [_Candidate(store.location, folder, run, store.is_older(folder, _UNKNOWN_FOR)) for run, folder in folders]
