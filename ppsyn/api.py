"""From a DataFrame and a public schema to a synthetic DataFrame with an account of its cost."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pandas as pd
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ppsyn.data.contributions import bound_contributions
from ppsyn.data.encoding import encode
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import domain_of
from ppsyn.errors import ConfigError, SchemaError, translated
from ppsyn.extras import require
from ppsyn.mechanisms.loop import make_plan, run, start
from ppsyn.mechanisms.past import Past
from ppsyn.mechanisms.translation import past_of
from ppsyn.privacy.budget import rho_of
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount
from ppsyn.reports.progress import show_progress
from ppsyn.schemas.config import AlgorithmConfig, PersonUnit, PrivacyConfig
from ppsyn.schemas.files import SchemaFileError
from ppsyn.schemas.table import TableSchema
from ppsyn.schemas.types import FrozenModel
from ppsyn.synthesis import Synthesis
from ppsyn.synthesis_files import load


def synthesize(  # noqa: PLR0913  # keyword-only: the whole surface in one place
    frame: pd.DataFrame,
    schema: TableSchema | Path | str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    person: tuple[str, int] | None = None,
    earlier: Sequence[Synthesis | Path | str] = (),
    seed: int = 0,
    progress: bool | None = None,
    **settings: object,
) -> Synthesis:
    """Release a differentially private synthetic table.

    Args:
        frame: The private table.
        schema: Its public schema, or the YAML file of it.
        epsilon: With `delta`, the guarantee.
        delta: With `epsilon`, the guarantee.
        rho: The guarantee as zCDP, instead.
        person: The column that says whose row it is, and how many rows of one person
            count. Without it the unit of privacy is a row.
        earlier: Releases of the same people, oldest first, that this one learns from: each a synthesis, or a folder
            with a saved or a published one. The result costs what it and they cost together, and all that they
            learned from; its own ledger has its own part alone (L9).
        seed: For generating rows from the fitted model; it has no part in the noise.
        progress: Whether to show progress on standard error; by default on a terminal.
        settings: Fields of `AlgorithmConfig`.

    Privacy:
        Claims C1 to C8 of PRIVACY.md. Bad settings are refused before the table is
        looked at; nothing is charged for them.

    Raises:
        PPSynError: If the schema, the settings or the table's columns are at fault.
    """
    table = _schema(schema)
    privacy = _privacy(epsilon, delta, rho, person)
    config = _checked(AlgorithmConfig, settings)
    _check_seed(seed)
    if config.estimator == "mbi":
        require("mbi", "estimator='mbi'")
    max_rows = 1 if privacy.person is None else privacy.person.max_rows
    past = _past(earlier, table, privacy)
    plan = make_plan(domain_of(table), rho_of(privacy), max_rows, config, past=past)
    if privacy.person is not None:
        frame = _bounded(frame, table, privacy.person)
    account = MemoryAccount(plan.rho)
    curator = TableCurator(TableCounter(encode(frame, table)), account, max_rows)
    with show_progress(progress) as watch:
        state = run(curator, start(plan), watch)
    return Synthesis.from_state(state, account.ledger, table, privacy, config, seed)


def _past(earlier: Sequence[Synthesis | Path | str], table: TableSchema, privacy: PrivacyConfig) -> Past | None:
    """What earlier releases tell, of people who are protected in the same way."""
    releases = [release if isinstance(release, Synthesis) else load(release) for release in earlier]
    for place, release in enumerate(releases):
        then, now = (each.person and each.person.column for each in (release.privacy, privacy))
        if then != now:
            raise ConfigError(
                f"Expected earlier[{place}] to protect {_unit(now)}, got a release that protects {_unit(then)}. What "
                "one unit of privacy costs does not add up over releases of different units; leave it out."
            )
    return past_of([release.told for release in releases], table)[0]


def _unit(column: str | None) -> str:
    return "a row" if column is None else f"the person in {column!r}"


def _schema(schema: TableSchema | Path | str) -> TableSchema:
    if isinstance(schema, TableSchema):
        return schema
    with translated(SchemaFileError, to=SchemaError, message=str):
        return TableSchema.load(schema)


def _privacy(
    epsilon: float | None, delta: float | None, rho: float | None, person: tuple[str, int] | None
) -> PrivacyConfig:
    unit = None if person is None else {"column": person[0], "max_rows": person[1]}
    return _checked(PrivacyConfig, {"epsilon": epsilon, "delta": delta, "rho": rho, "person": unit})


_Config = TypeVar("_Config", bound=FrozenModel)


def _checked(kind: type[_Config], values: Mapping[str, object]) -> _Config:
    """The validated model, or every fault as one sentence each. Configuration is public."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        faults = [_sentence(fault) for fault in error.errors()]
    raise ConfigError(" ".join(faults))


def _sentence(fault: ErrorDetails) -> str:
    field = ".".join(str(part) for part in fault["loc"])
    rule = fault["msg"].removeprefix("Value error, ")
    return f"Expected {field}={fault['input']!r} to be valid: {rule}." if field else f"Expected otherwise: {rule}."


def _check_seed(seed: object) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError(f"Expected seed={seed!r} to be a whole number, not negative.")


def _bounded(frame: pd.DataFrame, table: TableSchema, person: PersonUnit) -> pd.DataFrame:
    if any(column.name == person.column for column in table.columns):
        raise ConfigError(f"Expected the person column {person.column!r} to be in `excluded`, not to be released.")
    return bound_contributions(frame, person.column, person.max_rows)
