"""What is spent, given up, retired, left behind: `ppsyn budget`, `abandon`, `retire`, `move`, `clean`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ppsyn.flows.cli.locations import locations_in, open_store_at, release_file, release_locations_in, store_options
from ppsyn.flows.cli.output import JSON_OPTION, confirm, handle_errors, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ppsyn.errors import StoreError
    from ppsyn.privacy.account_state import AccountState, RunBudget
    from ppsyn.runs.cleanup import GivenUp, Left, Stuck
    from ppsyn.schemas.locations import Location
    from ppsyn.storage import Store


@click.command()
@click.argument("dataset")
@click.option("--set-cap", "cap", metavar="EPSILON", type=float, help="Change the cap, at the account's delta.")
@store_options
@JSON_OPTION
@handle_errors
def budget(dataset: str, cap: float | None, as_json: bool, **location: Any) -> None:
    """Show the account of DATASET: its cap, what is spent, what is left, and the budget of each run.

    \b
    Examples:
      ppsyn budget adult
      ppsyn budget adult --store s3://bucket/ppsyn --json
      ppsyn budget adult --set-cap 12
    """
    store = open_store_at(**location)
    if cap is not None:
        set_cap(store, dataset, cap)
    statement = read_statement(store, dataset)
    if as_json:
        print_json(statement.as_json())
    else:
        statement.print()


@dataclass(frozen=True, slots=True)
class Statement:
    """An account as of now."""

    dataset: str
    state: AccountState
    budgets: tuple[RunBudget, ...]

    @property
    def _totals(self) -> dict[str, Fraction]:
        state, spent = self.state, sum((budget.spent for budget in self.budgets), Fraction(0))
        return {"cap": state.cap, "spent": spent, "reserved": state.committed - spent, "left": state.left}

    def _epsilon(self, rho: Fraction) -> float | None:
        delta = self.state.opening.delta
        return None if delta is None else _epsilon_from(rho, delta)

    def as_json(self) -> dict[str, object]:
        """For scripts. Amounts are exact fractions of zCDP rho, with epsilon at the account's delta."""
        state = self.state
        return {
            "dataset": self.dataset,
            "unit": state.opening.unit,
            "delta": state.opening.delta,
            "moved_to": state.moved_to,
            **{name: _amount(value, self._epsilon(value)) for name, value in self._totals.items()},
            "releases": [
                {
                    "run": budget.run,
                    "quality_of": budget.quality_of,
                    "state": state_of(budget),
                    "reserved": _amount(budget.reserved, self._epsilon(budget.reserved)),
                    "spent": _amount(budget.spent, self._epsilon(budget.spent)),
                    "charges": budget.charges,
                    "opened_at": budget.grant.at.isoformat(),
                    "closed_at": budget.closed_at.isoformat() if budget.closed_at else None,
                }
                for budget in self.budgets
            ],
        }

    def print(self) -> None:
        """For a person."""
        opening = self.state.opening
        click.echo(f"Account of {self.dataset}, protecting {opening.unit}")
        if self.state.moved_to is not None:
            click.echo(f"It was moved to {self.state.moved_to} and goes on there.")
        epsilon = f"epsilon at delta {opening.delta:g}" if opening.delta else "epsilon"
        totals = [(name, *self._numbers(rho)) for name, rho in self._totals.items()]
        print_table(("", "rho", epsilon), totals, numbers=("rho", epsilon))
        if self.budgets:
            click.echo()
            rows = [(b.run, _status(b), str(b.charges), *self._numbers(b.spent)) for b in self.budgets]
            numbers = ("charges", "rho", "epsilon")
            print_table(("run", "state", *numbers), rows, numbers=numbers, unwrapped=("run", "state"))

    def _numbers(self, rho: Fraction) -> tuple[str, str]:
        epsilon = self._epsilon(rho)
        return f"{float(rho):.6g}", "" if epsilon is None else f"{epsilon:.4g}"


@cache  # a conversion takes a millisecond, and most runs of an account have spent the same
def _epsilon_from(rho: Fraction, delta: float) -> float:
    from ppsyn.privacy.budget import epsilon_from

    return epsilon_from(rho, delta)


def state_of(budget: RunBudget) -> str:
    """Whether a run is open, published or abandoned."""
    if budget.is_open:
        return "open"
    return "abandoned" if budget.manifest is None else "published"


def _status(budget: RunBudget) -> str:
    return "quality" if budget.quality_of and budget.manifest else state_of(budget)


def _amount(rho: Fraction, epsilon: float | None) -> dict[str, object]:
    return {"rho": str(rho), "rho_value": float(rho), "epsilon": epsilon}


def read_statement(store: Store, dataset: str) -> Statement:
    """The account of a dataset.

    Raises:
        AccountError: If there is none, naming those that there are, or it does not know all runs in its store.
    """
    from ppsyn.errors import AccountError
    from ppsyn.privacy.account import StoredAccount, datasets
    from ppsyn.runs.account_check import check_known

    account = StoredAccount(store, dataset)
    is_there = dataset in datasets(store)
    if is_there or dataset in store.folders("releases"):
        check_known(account, store, store)
    state = account.find() if is_there else None
    if state is None:
        known = ", ".join(datasets(store)) or "none"
        raise AccountError(f"There is no account of {dataset!r} in {store.location.url}. Accounts there: {known}.")
    return Statement(dataset, state, tuple(account.budgets()))


def set_cap(store: Store, dataset: str, epsilon: float) -> None:
    """Change the cap, at the account's delta.

    Raises:
        AccountError: If the account has no delta, or more is spent or reserved already.
    """
    from ppsyn.errors import AccountError
    from ppsyn.privacy.account import StoredAccount
    from ppsyn.privacy.budget import rho_from

    account = StoredAccount(store, dataset)
    delta = account.state.opening.delta
    if delta is None:
        raise AccountError(f"The account of {dataset!r} has no delta, so its cap cannot be an epsilon. Give --rho.")
    account.set_cap(rho_from(epsilon, delta))


@click.command()
@click.argument("run")
@release_file
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--private", help="Where the run's encoded table is, if neither FILE nor the run itself says so.")
@store_options
@handle_errors
def abandon(run: str, file: str | None, yes: bool, private: str | None, **location: Any) -> None:
    """Abandon RUN: free the budget that it reserved and has not spent, and remove its copy of the table.

    What it has spent stays spent. An abandoned run cannot be resumed. FILE is the release file, which names the
    locations of the run, each with its keys. Without FILE, they are read from the run's record in the store. What
    could not be removed is listed, with exit code 6. Repeat the command to remove it.

    \b
    Examples:
      ppsyn abandon 20260102-030405-9f8e7d6c
      ppsyn abandon 20260102-030405-9f8e7d6c release.yaml
      ppsyn abandon RUN --store 's3://state/prod?credentials=STATE' --private 's3://private/prod?credentials=PRIVATE'
    """
    from ppsyn.runs.cleanup import give_up

    root, locations = _locations(file, private, location)
    if not yes:
        confirm(f"Abandon run {run} for good?")
    outcome = give_up(root, locations, run)
    click.echo(_describe(run, outcome))
    if outcome.stuck:
        raise _not_removed(outcome.stuck)


def _locations(file: str | None, private: str | None, location: dict[str, Any]) -> tuple[Store, list[Location] | None]:
    """The store with the account, and the locations of the run that the command line names; None if it names none."""
    if file is not None:
        return locations_in(file)
    others = None if private is None else [open_store_at(**{**location, "store": private}).location]
    return open_store_at(**location), others


def _describe(run: str, outcome: GivenUp) -> str:
    """What became of a run, for a person."""
    spent = f"rho {float(outcome.spent):.6g} stays spent"
    if not outcome.reserved:
        return f"Run {run} had reserved nothing. It is removed."
    if outcome.was_over:
        return f"Run {run} was abandoned before; {spent}."
    return f"Run {run} is abandoned: rho {float(outcome.freed):.6g} is free again, {spent}."


@click.command()
@click.argument("run")
@release_file
@click.option("--by", required=True, metavar="NAME", help="Who retires it; stays on record.")
@click.option("--reason", required=True, metavar="TEXT", help="Why, in a sentence; stays on record.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--releases", help="Where the release is, if neither FILE nor the run itself says so.")
@store_options
@JSON_OPTION
@handle_errors
def retire(
    run: str,
    file: str | None,
    *,
    by: str,
    reason: str,
    yes: bool,
    releases: str | None,
    as_json: bool,
    **location: Any,
) -> None:
    """Retire RUN: remove its published release, and the answers that it could be made of again, for good.

    What it has spent stays spent. An erasure record takes the place of the release: who, when, why, its cost and the
    digests of all files. `ppsyn audit` reads it, and `latest` moves to the release before. If the command is killed,
    repeat it.

    \b
    Examples:
      ppsyn retire 20260102-030405-9f8e7d6c --by "A. N. Other" --reason "Kept for five years."
      ppsyn retire RUN release.yaml --by "A. N. Other" --reason "A column was published by mistake." --yes
    """
    from ppsyn.errors import ConfigError
    from ppsyn.releases.retirement import Erasure
    from ppsyn.releases.retirement import retire as remove

    if not (by.strip() and reason.strip()):
        raise ConfigError("Expected --by and --reason to say something: they stay on record.")
    root, place = open_store_at(**location), None
    if file is not None:
        root, place = release_locations_in(file)
    elif releases is not None:
        place = open_store_at(**{**location, "store": releases}).location
    if not yes:
        confirm(f"Remove the release of run {run} for good?")
    found = remove(root, place, run, Erasure(by, reason))
    if as_json:
        print_json({**found.record.model_dump(mode="json"), "was_retired": found.was_over, "latest": found.latest})
    else:
        click.echo(found.record.sentence)
        click.echo(f"latest    {found.latest or 'none: no release of the dataset is left'}")


@click.command()
@click.argument("dataset")
@click.option(
    "--to", "target", required=True, metavar="STORE", help="Where it goes on: a folder or s3://bucket/prefix."
)
@store_options
@JSON_OPTION
@handle_errors
def move(dataset: str, target: str, *, as_json: bool, **location: Any) -> None:
    """Move DATASET to another store: its account, its runs and the releases beside them, and go on there.

    The account leaves the old store for good, and works in the new one once all of it is there; what the old store
    holds stays as it was. Refused while a run is open, and if the new store has anything of the dataset. If the command
    is killed, repeat it: until it has succeeded, nothing can be released from the dataset.

    \b
    Examples:
      ppsyn move adult --to s3://bucket/ppsyn
      ppsyn move adult --store out --to /srv/ppsyn
      ppsyn move adult --store 's3://old?credentials=OLD' --to 's3://new/prod?credentials=NEW'
    """
    from ppsyn.flows.preflight import location_at
    from ppsyn.runs.moving import move as move_account
    from ppsyn.storage import open_store

    source = open_store_at(**location)
    options = {name: value for name, value in location.items() if name != "store"}
    place = location_at(target, **options).resolved_against(Path.cwd())
    done = move_account(source, open_store(place), dataset)
    if as_json:
        print_json({"dataset": dataset, "to": place.url, "runs": done.runs, "copied": done.copied})
    else:
        click.echo(f"moved     {dataset}: {done.runs} runs, {done.copied} objects written")
        click.echo(f"go on     with stores.root: {place.url} in the release file")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--set", "settings", multiple=True, metavar="FIELD=VALUE", help="Change a field: stores.root=out")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@JSON_OPTION
@handle_errors
def clean(file: str, settings: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove what dead runs left in the locations that FILE, a release file, names.

    It lists, and after confirmation removes, copies of private tables and unfinished releases of runs that are
    published or abandoned. It does the same for runs that no account in FILE's root knows, if nothing was written
    to them for a day. Open runs are left alone: resume or abandon them.

    \b
    Examples:
      ppsyn clean release.yaml
      ppsyn clean release.yaml --yes --json
    """
    from ppsyn.runs.cleanup import orphans, remove

    found, unseen = orphans(*locations_in(file, settings))
    if found:
        print_table(("why", "what"), [(left.why, left.url) for left in found], unwrapped=("why",), to_stderr=as_json)
    if found and not yes:
        confirm(f"Remove {'it' if len(found) == 1 else f'these {len(found)}'} for good?")
    removed, kept = remove(found)
    stuck = (*unseen, *kept)
    if as_json:
        print_json(_cleaned_as_json(removed, stuck))
    else:
        click.echo(f"{len(removed)} removed" if found or unseen else "Nothing is left behind.")
    if stuck:
        raise _not_removed(stuck)


def _cleaned_as_json(removed: Sequence[Left], stuck: Sequence[Stuck]) -> dict[str, object]:
    return {
        "removed": [{"url": left.url, "why": left.why} for left in removed],
        "left": [{"url": one.url, "problem": one.problem} for one in stuck],
    }


def _not_removed(stuck: Sequence[Stuck]) -> StoreError:
    """The error of what could not be removed, with what to do next."""
    from ppsyn.errors import StoreError

    lines = [f"  {one.url}  {one.problem}" for one in stuck]
    remedy = f"Solve these problems, then repeat: {shlex.join(['ppsyn', *sys.argv[1:]])}"
    return StoreError("\n".join(("Not everything could be removed. Still there, or out of reach:", *lines, remedy)))
