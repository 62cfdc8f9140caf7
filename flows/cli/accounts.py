"""The commands about the account of a dataset."""

import sys
from typing import TYPE_CHECKING, Any

import click

from ppsyn.flows.cli.locations import locations_in, open_store_at, release_file, store_options
from ppsyn.flows.cli.output import JSON_OPTION, confirm, print_json, told

if TYPE_CHECKING:
    from ppsyn.schemas.locations import Location
    from ppsyn.storage import Store


@click.command()
@click.argument("dataset")
@click.option("--set-cap", metavar="EPSILON", type=float, help="Change the cap, at the account's delta.")
@store_options
@JSON_OPTION
@told
def budget(dataset: str, set_cap: float | None, as_json: bool, **location: Any) -> None:
    """Show the account of DATASET: its cap, what is spent, what is left, and each run's part.

    \b
    Examples:
      ppsyn budget adult
      ppsyn budget adult --store s3://bucket/ppsyn --json
      ppsyn budget adult --set-cap 12
    """
    from ppsyn.flows.cli.account_view import set_cap as change
    from ppsyn.flows.cli.account_view import statement

    store = open_store_at(**location)
    if set_cap is not None:
        change(store, dataset, set_cap)
    found = statement(store, dataset)
    if as_json:
        print_json(found.as_json())
    else:
        found.print()


@click.command()
@click.argument("run")
@release_file
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--private", help="Where the run's encoded table is, if neither FILE nor the run itself tells.")
@store_options
@told
def abandon(run: str, file: str | None, yes: bool, private: str | None, **location: Any) -> None:
    """Give up RUN: free the budget that it reserved and has not spent, and remove its copy of the table.

    What it has spent stays spent. An abandoned run cannot be resumed. FILE is the release file, which names the
    locations of the run, each with its keys; without it, they are where the run wrote them down in the store. What
    could not be removed is told, with exit code 6: the same command again removes it.

    \b
    Examples:
      ppsyn abandon 20260102-030405-9f8e7d6c
      ppsyn abandon 20260102-030405-9f8e7d6c release.yaml
      ppsyn abandon RUN --store 's3://state/prod?credentials=STATE' --private 's3://private/prod?credentials=PRIVATE'
    """
    from ppsyn.flows.cli.cleanup_view import still_there, told
    from ppsyn.runs.cleanup import give_up

    root, locations = _locations(file, private, location)
    if not yes:
        confirm(f"Abandon run {run} for good?")
    found = give_up(root, locations, run)
    click.echo(told(run, found))
    if found.stuck:
        raise still_there(found.stuck, ["ppsyn", *sys.argv[1:]])


def _locations(
    file: str | None, private: str | None, location: dict[str, Any]
) -> "tuple[Store, list[Location] | None]":
    """The store with the account, and the locations of a run as far as the command line tells them."""
    if file is not None:
        return locations_in(file)
    kept = None if private is None else [open_store_at(**{**location, "store": private}).location]
    return open_store_at(**location), kept


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--set", "settings", multiple=True, metavar="FIELD=VALUE", help="Change a field: stores.root=out")
@click.option("--yes", is_flag=True, help="Do not ask.")
@JSON_OPTION
@told
def clean(file: str, settings: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove what dead runs left in the places that FILE, a release file, names.

    Copies of private tables and unfinished releases of runs that are published or abandoned, and those of runs
    that no account in FILE's root knows, if nothing wrote to them for a day. Runs that are open are left as they
    are: go on with them, or abandon them.

    \b
    Examples:
      ppsyn clean release.yaml
      ppsyn clean release.yaml --yes --json
    """
    from ppsyn.flows.cli.cleanup_view import clean as remove
    from ppsyn.flows.cli.cleanup_view import still_there
    from ppsyn.runs.cleanup import orphans

    lefts, unseen = orphans(*locations_in(file, settings))
    for left in lefts:
        click.echo(f"{left.why:<24} {left.url}", err=as_json)
    if lefts and not yes:
        confirm(f"Remove {'it' if len(lefts) == 1 else f'these {len(lefts)}'} for good?")
    done = remove(lefts, unseen)
    if as_json:
        print_json(done.as_json())
    else:
        click.echo(f"{len(done.removed)} removed" if lefts or unseen else "Nothing is left behind.")
    if done.stuck:
        raise still_there(done.stuck, ["ppsyn", *sys.argv[1:]])
