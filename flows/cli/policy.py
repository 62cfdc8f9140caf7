"""What the releases of a dataset may spend: `ppsyn policy`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ppsyn.flows.cli.locations import FilePath, open_store_at, store_options
from ppsyn.flows.cli.output import JSON_OPTION, handle_errors, print_json, print_table

if TYPE_CHECKING:
    from fractions import Fraction

    from ppsyn.privacy.account_state import AccountState
    from ppsyn.privacy.policy import Limit
    from ppsyn.schemas.policy import Policy, PolicyFile
    from ppsyn.storage import Store


@click.group()
def policy() -> None:
    """Say what the releases of a dataset may spend, when, for what, and in what portions.

    \b
    Examples:
      ppsyn policy check policy.yaml
      ppsyn policy set people policy.yaml
      ppsyn policy show people
    """


@policy.command()
@click.argument("dataset")
@store_options
@JSON_OPTION
@handle_errors
def show(dataset: str, as_json: bool, **location: Any) -> None:
    """Show the policy of DATASET: each limit, and what is left of it as of now.

    \b
    Examples:
      ppsyn policy show people
      ppsyn policy show people --store s3://bucket/ppsyn --json
    """
    from ppsyn.flows.cli.accounts import read_statement

    state = read_statement(open_store_at(**location), dataset).state
    if as_json:
        print_json(_as_json(state))
    else:
        _print(state)


@policy.command("set")
@click.argument("dataset")
@click.argument("file", type=FilePath())
@click.option(
    "--person",
    metavar="COLUMN",
    help="If there is no account yet: protect the persons that this column names, not rows.",
)
@store_options
@handle_errors
def set_policy(dataset: str, file: str, person: str | None, **location: Any) -> None:
    """Put the policy in FILE in force for DATASET, whose account is opened if there is none.

    It holds from the next reservation on. What was spent in the current period counts.

    \b
    Examples:
      ppsyn policy set people policy.yaml
      ppsyn policy set people policy.yaml --person patient_id --store s3://bucket/ppsyn
    """
    from ppsyn.errors import ConfigError
    from ppsyn.privacy.account import StoredAccount

    document, exact = _read(file)
    account = StoredAccount(_store_for(location), dataset)
    if account.find() is None:
        if exact.people:
            raise ConfigError(
                f"There is no account of {dataset!r} yet, which could trust the keys of people. Set the policy without "
                "`people` first, then trust their keys (`ppsyn keys trust`), then set it with them."
            )
        unit = "a row" if person is None else f"the person in {person!r}"
        account.open(exact.cap, document.cap.delta, unit)
    elif person is not None:
        account.check_compatible(None, f"the person in {person!r}")
    account.set_policy(exact)
    _print(account.state)


@policy.command()
@click.argument("file", type=FilePath())
@handle_errors
def check(file: str) -> None:
    """Check whether the policy in FILE can be kept to, without an account.

    \b
    Example:
      ppsyn policy check policy.yaml
    """
    _read(file)
    click.echo(f"{file}: no contradiction")


def _read(file: str) -> tuple[PolicyFile, Policy]:
    """A policy file, as written and with exact amounts.

    Raises:
        SchemaError: If it is none.
        ConfigError: If it contradicts itself.
    """
    from ppsyn.errors import ConfigError, SchemaError, translated
    from ppsyn.privacy.policy import contradictions, exactly
    from ppsyn.schemas.files import SchemaFileError
    from ppsyn.schemas.policy import load_policy

    with translated(SchemaFileError, to=SchemaError, message=str):
        document = load_policy(file)
    exact = exactly(document)
    problems = [f"{file}: {problem}" for problem in contradictions(exact)]
    if problems:
        raise ConfigError("\n".join(problems))
    return document, exact


def _store_for(location: dict[str, Any]) -> Store:
    """The store, in which an account may be the first thing there is."""
    from pathlib import Path

    from ppsyn.flows.preflight import location_at
    from ppsyn.storage import open_store

    address = location["store"]
    found = location_at(address, **{name: value for name, value in location.items() if name != "store"})
    return open_store(found.resolved_against(Path.cwd()))


def _as_json(state: AccountState) -> dict[str, object]:
    """For scripts. Amounts are exact fractions of zCDP rho, with epsilon at the account's delta."""
    return {
        "dataset": state.opening.dataset,
        "policy": None if state.policy is None else state.policy.model_dump(mode="json"),
        "since": None if state.policy is None else state.since,
        "limits": [
            {
                "name": limit.name,
                "purpose": limit.purpose,
                "period": limit.period,
                **{name: _amount(state, rho) for name, rho in _numbers(limit).items()},
            }
            for limit in _limits(state)
        ],
    }


def _print(state: AccountState) -> None:
    """For a person."""
    dataset, found = state.opening.dataset, state.policy
    if found is None:
        click.echo(f"{dataset} has no policy, but a cap: ppsyn budget {dataset}")
        return
    click.echo(f"Policy of {dataset}, protecting {state.opening.unit}")
    delta = state.opening.delta
    click.echo("Amounts are " + ("zCDP rho" if delta is None else f"epsilon at delta {delta:g}"))
    columns = ("in all", "used", "left")
    rows = [(limit.name, *(_told(state, rho) for rho in _numbers(limit).values())) for limit in _limits(state)]
    print_table(("limit", *columns), rows, numbers=columns)
    for word, rho in (("smallest", found.smallest), ("largest", found.largest)):
        if rho is not None:
            click.echo(f"{word} release: {_told(state, rho)}")


def _limits(state: AccountState) -> list[Limit]:
    """The cap and all limits beside it, as of now."""
    from ppsyn.privacy.policy import Limit

    return [Limit("the cap", state.cap, state.committed), *state.limits(state.month_at(datetime.now(UTC)))]


def _numbers(limit: Limit) -> dict[str, Fraction]:
    return {"total": limit.total, "used": limit.used, "left": limit.left}


def _amount(state: AccountState, rho: Fraction) -> dict[str, object]:
    return {"rho": str(rho), "rho_value": float(rho), "epsilon": _epsilon(state, rho)}


def _told(state: AccountState, rho: Fraction) -> str:
    epsilon = _epsilon(state, rho)
    return f"{float(rho):.6g}" if epsilon is None else f"{epsilon:.4g}"


def _epsilon(state: AccountState, rho: Fraction) -> float | None:
    from ppsyn.privacy.budget import epsilon_from

    delta = state.opening.delta
    return None if delta is None else epsilon_from(rho, delta)
