"""The commands about the account of a dataset."""

from typing import Any

import click

from flows.commands.places import open_place, store_options
from flows.commands.telling import JSON_OPTION, confirm, print_json, told


@click.command()
@click.argument("dataset")
@click.option("--set-cap", metavar="EPSILON", type=float, help="Change the cap, at the account's delta.")
@store_options
@JSON_OPTION
@told
def budget(dataset: str, set_cap: float | None, as_json: bool, **place: Any) -> None:
    """Show the account of DATASET: its cap, what is spent, what is left, and each run's part.

    \b
    Examples:
      ppsyn budget adult
      ppsyn budget adult --store s3://bucket/ppsyn --json
      ppsyn budget adult --set-cap 12
    """
    from flows.statements import set_cap as change
    from flows.statements import statement

    store = open_place(**place)
    if set_cap is not None:
        change(store, dataset, set_cap)
    found = statement(store, dataset)
    if as_json:
        print_json(found.as_json())
    else:
        found.print()


@click.command()
@click.argument("run")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--private", help="Where the run's encoded table is, if not in the store.")
@store_options
@told
def abandon(run: str, yes: bool, private: str | None, **place: Any) -> None:
    """Give up RUN: free the budget that it holds and has not spent, and remove its copy of the table.

    What it has spent stays spent. An abandoned run cannot be resumed.

    \b
    Example:
      ppsyn abandon 20260102-030405-9f8e7d6c
    """
    from flows.statements import give_up

    store = open_place(**place)
    if not yes:
        confirm(f"Abandon run {run} for good?")
    kept = open_place(**{**place, "store": private}) if private else store
    click.echo(give_up(store, kept, run))
