"""The start of a run: its inputs written down, its budget reserved, its table copied to codes."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import cast

from ppsyn.code_version import code_version
from ppsyn.data.ingest import ingest, is_whole
from ppsyn.data.sources import check_source, check_stable
from ppsyn.domain import domain_of
from ppsyn.errors import (
    AccountError,
    CapExceededError,
    ConfigError,
    MissingError,
    ResumeRefusedError,
    RunError,
    StoreError,
    translated,
)
from ppsyn.mechanisms.base import Plan
from ppsyn.mechanisms.loop import make_plan
from ppsyn.privacy.account import StoredAccount, missing_account
from ppsyn.privacy.account_state import RunBudget
from ppsyn.privacy.budget import rho_of
from ppsyn.releases.layout import staging_folder
from ppsyn.runs.account_check import check_known
from ppsyn.schemas.config import PersonUnit, PrivacyConfig
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import RunLocations, RunRecord, RunRef
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import Store, open_store, prove, try_out

_ANY = {"run", "format", "code.machine", "code.ppsyn"}
"""What may differ: the bits that follow from them are compared where they matter."""


def private_folder(run: str) -> str:
    """Where the codes of the private table are kept while the run lasts."""
    return f"runs/{run}/private"


def ref_of(config: ReleaseConfig, run: str) -> RunRef:
    """A run of this release, by name and addresses."""
    stores = config.stores
    return RunRef(
        run=run,
        dataset=config.dataset,
        root=stores.root,
        private=stores.private or stores.root,
        releases=stores.releases or stores.root,
        runtime=config.runtime,
    )


def new_record(config: ReleaseConfig, table: TableSchema, run: str) -> RunRecord:
    """The exact inputs of a run."""
    return RunRecord(
        run=run,
        dataset=config.dataset,
        source=config.source,
        table=table,
        privacy=config.privacy,
        algorithm=config.algorithm,
        generation=config.generation,
        code=code_version(),
    )


def plan_of(record: RunRecord) -> Plan:
    """What a run is going to do, from its public inputs."""
    person = record.privacy.person
    return make_plan(
        domain_of(record.table), rho_of(record.privacy), person.max_rows if person else 1, record.algorithm
    )


def has_record(root: Store, run: str) -> bool:
    """Whether there is such a run."""
    return root.has(_key(run))


def read_record(root: Store, run: str) -> RunRecord:
    """The inputs that a run began with.

    Raises:
        RunError: If there is no such run, or its record is damaged.
    """
    with translated(MissingError, to=RunError, message=f"There is no run {run} in {root.location.url}."):
        data = root.get(_key(run))
    with translated(ValueError, to=partial(broken, run), message="its record is damaged"):
        return RunRecord.model_validate_json(data)


def broken(run: str, problem: str) -> RunError:
    """The error of a run that lacks what it has built on: it can only be given up."""
    return RunError(
        f"Run {run} cannot go on: {problem}. Nothing was charged. What it has spent stays spent; `ppsyn abandon {run}` "
        "frees the rest and removes its copy of the table."
    )


def quality_key(run: str) -> str:
    """Where the record of a run about the quality of a release is."""
    return f"runs/{run}/quality.json"


def _write_record(root: Store, record: RunRecord) -> None:
    """Write down the inputs of a new run."""
    key, data = _key(record.run), record.to_bytes()
    if not prove(root, key, data) and root.get(key) != data:
        raise RunError(f"There is a run {record.run} already.")


def check_unchanged(ref: RunRef, now: RunRecord) -> None:
    """See that a run would still be the same run. All that is compared is public.

    Privacy:
        A run is about its snapshot. Whether the table has changed since is not looked at,
        because whatever followed from it would be seen, and nobody has paid for it (C11).

    Raises:
        ResumeRefusedError: Saying all that differs.
    """
    differences = list(_differences(read_record(open_store(ref.root), ref.run), now))
    if differences:
        raise ResumeRefusedError(ref.run, differences)


def _differences(before: RunRecord, now: RunRecord) -> Iterator[str]:
    old, new = dict(_leaves(before.model_dump(mode="json"))), dict(_leaves(now.model_dump(mode="json")))
    for name in sorted(old.keys() | new.keys()):
        if name not in _ANY and old.get(name) != new.get(name):
            yield f"{name} was {_told(old, name)} and is {_told(new, name)} now."


def _leaves(document: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for name, value in document.items():
        if name == "columns":
            columns = cast("list[dict[str, object]]", value)
            yield f"{above}{name}", [column["name"] for column in columns]
            yield from _leaves({f"column {column['name']!r}": column for column in columns}, above)
        elif isinstance(value, dict):
            yield from _leaves(cast("dict[str, object]", value), f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _told(values: Mapping[str, object], name: str) -> str:
    return repr(values[name]) if name in values else "absent"


def check_possible(config: ReleaseConfig, table: TableSchema) -> list[str]:
    """See that a new run can be done at all: the plan, the columns, the budget. No row is read, nothing is written.

    Returns:
        What the owner has to answer for himself, a sentence each.

    Raises:
        PPSynError: If it cannot.
    """
    _check_person(config.privacy, table)
    plan_of(new_record(config, table, "new"))
    _check_budget(config)
    check_source(config.source, table, config.privacy.person)
    return check_stable(config.source, config.privacy.person)


def unfinished(config: ReleaseConfig, table: TableSchema) -> Iterator[str]:
    """Runs that began with the inputs of this release, have reserved budget and have not ended, the oldest first."""
    account = _account(config)
    state = None if account is None else account.find()
    for budget in () if state is None else tuple(state.budgets.values()):
        if budget.is_open and budget.quality_of is None and _began_as(config, table, budget.run):
            yield budget.run


def _began_as(config: ReleaseConfig, table: TableSchema, run: str) -> bool:
    try:
        before = read_record(open_store(config.stores.root), run)
    except RunError:
        return False
    return not any(_differences(before, new_record(config, table, run)))


def _account(config: ReleaseConfig) -> StoredAccount | None:
    """The account, unless there is not even a folder that could hold it."""
    location = config.stores.root
    is_there = not location.is_local or Path(location.url).is_dir()
    return StoredAccount(open_store(location), config.dataset) if is_there else None


def balance(config: ReleaseConfig) -> tuple[Fraction, Fraction]:
    """What the account has left, and its cap; of one that is not open yet, what the release file says.

    Raises:
        AccountError: If there is neither account nor cap, the account has another cap or unit than the release, or it
            does not know all that lies beside it.
    """
    cap, account = _cap(config), _account(config)
    if account is not None:
        root, releases = open_store(config.stores.root), config.stores.releases
        check_known(account, root, root if releases is None else open_store(releases))
        account.check_compatible(cap, unit_of(config.privacy.person))
        state = account.find()
        if state is not None:
            return state.left, state.cap
    if cap is None:
        raise missing_account(config.dataset)
    return cap, cap


def _check_budget(config: ReleaseConfig) -> None:
    asked, (left, cap) = rho_of(config.privacy), balance(config)
    if asked > left:
        raise CapExceededError(config.dataset, asked, left, cap)


def begin(ref: RunRef, config: ReleaseConfig, table: TableSchema) -> None:
    """Write down a new run's inputs, try its stores and reserve its budget; or see that a run can go on.

    What is tried is written where the run has its own: whatever ends the run removes it, should the process be killed.

    Raises:
        ResumeRefusedError: If the run began with other inputs.
        RunError: If its record is gone or damaged.
        StoreError: If a store will not do; a new run then leaves no trace.
        AccountError: If the account does not have the budget, or does not fit; a new run then leaves no trace.
    """
    root, record = open_store(ref.root), new_record(config, table, ref.run)
    budget = _budget_of(ref)
    is_new = budget is None and not has_record(root, ref.run)
    if budget is not None and not has_record(root, ref.run) and budget.grant.inputs != record.digest():
        raise broken(ref.run, "its record is gone, and the release file as it is now would make another")
    try:
        if has_record(root, ref.run):
            check_unchanged(ref, record)
            prove(root, _key(ref.run), root.get(_key(ref.run)))
        else:
            _write_record(root, record)
        record_locations(root, ref)
        try_locations(ref)
    except StoreError:
        if is_new:
            with suppress(StoreError):  # what went wrong before says more
                root.delete(run_folder(ref.run))
        raise
    try:
        _reserve(ref, config)
    except AccountError:
        if is_new:
            root.delete(f"runs/{ref.run}")
        raise


def is_known(ref: RunRef) -> bool:
    """Whether there is such a run: by its record or, if that is gone, by its account."""
    return has_record(open_store(ref.root), ref.run) or _budget_of(ref) is not None


def _budget_of(ref: RunRef) -> RunBudget | None:
    account = StoredAccount(open_store(ref.root), ref.dataset)
    return None if account.find() is None else account.budget(ref.run)


def record_locations(root: Store, ref: RunRef) -> None:
    """Write down where the run keeps what, so that it can be given up by whoever knows its name alone."""
    private, releases = (None if location == ref.root else location for location in (ref.private, ref.releases))
    data = RunLocations(private=private, releases=releases).model_dump_json(indent=2).encode() + b"\n"
    root.put(_locations_key(ref.run), data)


def try_locations(ref: RunRef) -> None:
    """See that the locations of a run, beside the one with its account, can be used."""
    try_out(open_store(ref.private), private_folder(ref.run))
    try_out(open_store(ref.releases), staging_folder(ref.run))


def locations_of(root: Store, run: str) -> RunLocations | None:
    """Where a run keeps its copy of the table and what it makes, if that is written down."""
    try:
        return RunLocations.model_validate_json(root.get(_locations_key(run)))
    except (MissingError, ValueError):
        return None


def _reserve(ref: RunRef, config: ReleaseConfig) -> None:
    root = open_store(ref.root)
    account = StoredAccount(root, ref.dataset)
    check_known(account, root, open_store(ref.releases))
    cap = config.account.cap
    account.open(_cap(config), cap.delta if cap else config.privacy.delta, unit_of(config.privacy.person))
    budget = account.state.budgets.get(ref.run)
    if budget is None:
        account.reserve(ref.run, rho_of(config.privacy), read_record(open_store(ref.root), ref.run).digest())
    elif not budget.is_open and budget.manifest is None:
        raise RunError(f"Run {ref.run} was abandoned; it cannot go on.")


def _cap(config: ReleaseConfig) -> Fraction | None:
    return None if config.account.cap is None else rho_of(config.account.cap)


def unit_of(person: PersonUnit | None) -> str:
    """What an account protects."""
    return "a row" if person is None else f"the person in {person.column!r}"


def snapshot(ref: RunRef) -> None:
    """Copy the private table to codes, once; a run that has asked something never reads the table again.

    Raises:
        RunError: If the copy is gone or damaged although the run has asked something and has more to ask.
    """
    root, private, folder = open_store(ref.root), open_store(ref.private), private_folder(ref.run)
    record, budget = read_record(root, ref.run), _budget_of(ref)
    if (budget is not None and budget.spent == budget.total) or is_whole(private, folder, record.table):
        return
    if budget is not None and budget.charges:
        raise broken(
            ref.run,
            f"its encoded table is gone from {private.location.url} or damaged, and cannot be made again, because "
            "answers were drawn from it",
        )
    ingest(record.source, record.table, record.privacy.person, private, folder)


def _check_person(privacy: PrivacyConfig, table: TableSchema) -> None:
    """See that the column that names the person is not released."""
    if privacy.person is not None and privacy.person.column not in table.excluded:
        raise ConfigError(f"Expected the person column {privacy.person.column!r} to be in `excluded` of the schema.")


def _key(run: str) -> str:
    return f"{run_folder(run)}/config.json"


def _locations_key(run: str) -> str:
    return f"{run_folder(run)}/locations.json"


def run_folder(run: str) -> str:
    """Where a run is kept.

    Raises:
        RunError: If that is not the name of a run.
    """
    if not re.fullmatch(r"[A-Za-z0-9-]+", run):
        raise RunError(f"There is no run {run}: that is not the name of one.")
    return f"runs/{run}"
