"""The start of a run: see that it can be done, reserve its budget, copy its table to codes."""

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from ppsyn.data.ingest import ingest, is_whole
from ppsyn.data.sources import check_source, check_stable
from ppsyn.errors import AccountError, CapExceededError, ConfigError, RunError, StoreError
from ppsyn.privacy.account import StoredAccount, missing_account
from ppsyn.privacy.budget import rho_of
from ppsyn.releases.layout import RETIRED, release_folder, staging_folder
from ppsyn.runs.account_check import check_known
from ppsyn.runs.earlier import learn
from ppsyn.runs.record import (
    Learned,
    broken,
    budget_of,
    check_unchanged,
    differences,
    has_record,
    new_record,
    past_key,
    plan_of,
    private_folder,
    read_record,
    record_key,
    record_locations,
    run_folder,
)
from ppsyn.schemas.config import PersonUnit, PrivacyConfig
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import RunRecord, RunRef
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import Store, open_store, prove, try_out


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
    _learn(config, table)
    check_source(config.source, table, config.privacy.person)
    return check_stable(config.source, config.privacy.person)


def unfinished_runs(config: ReleaseConfig, table: TableSchema) -> Iterator[str]:
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
    return not any(differences(before, new_record(config, table, run)))


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


def _learn(config: ReleaseConfig, table: TableSchema) -> Learned:
    """What a new run learns from earlier releases, if there can be any."""
    return learn(config, table) if _account(config) is not None else Learned()


def _check_budget(config: ReleaseConfig) -> None:
    requested, (left, cap), account = rho_of(config.privacy), balance(config), _account(config)
    if account is not None and account.find() is not None:
        account.check_room(requested, purpose=config.purpose)
    elif requested > left:
        raise CapExceededError(config.dataset, requested, left, cap)


def begin(ref: RunRef, config: ReleaseConfig, table: TableSchema) -> None:
    """Write down a new run's inputs, try its stores and reserve its budget; or see that a run can go on.

    What is tried is written where the run has its own: whatever ends the run removes it, should the process be killed.

    Raises:
        ResumeRefusedError: If the run began with other inputs.
        RunError: If its record is gone or damaged.
        StoreError: If a store will not do; a new run then leaves no trace.
        AccountError: If the account does not have the budget, or does not fit; a new run then leaves no trace.
    """
    root, budget = open_store(ref.root), budget_of(ref)
    if open_store(ref.releases).has(f"{release_folder(ref.dataset, ref.run)}/{RETIRED}"):
        raise RunError(f"The release of run {ref.run} was retired; it cannot be made again.")
    is_new = budget is None and not has_record(root, ref.run)
    learned = _learn(config, table) if is_new else Learned()
    record = new_record(config, table, ref.run, learned)
    if budget is not None and not has_record(root, ref.run) and budget.grant.inputs != record.digest():
        raise broken(ref.run, "its record is gone, and the release file as it is now would make another")
    try:
        if has_record(root, ref.run):
            check_unchanged(ref, record)
            prove(root, record_key(ref.run), root.get(record_key(ref.run)))
        else:
            _write_record(root, record, learned)
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


def try_locations(ref: RunRef) -> None:
    """See that the locations of a run, beside the one with its account, can be used."""
    try_out(open_store(ref.private), private_folder(ref.run))
    try_out(open_store(ref.releases), staging_folder(ref.run))


def _reserve(ref: RunRef, config: ReleaseConfig) -> None:
    root = open_store(ref.root)
    account = StoredAccount(root, ref.dataset)
    check_known(account, root, open_store(ref.releases))
    cap = config.account.cap
    account.open(_cap(config), cap.delta if cap else config.privacy.delta, unit_of(config.privacy.person))
    budget = account.state.budgets.get(ref.run)
    if budget is None:
        inputs = read_record(root, ref.run).digest()
        account.reserve(ref.run, rho_of(config.privacy), inputs, purpose=config.purpose)
    elif not budget.is_open and budget.manifest is None:
        raise RunError(f"Expected run {ref.run} to be open, but it was abandoned. Start a new run.")


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
    record, budget = read_record(root, ref.run), budget_of(ref)
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


def _write_record(root: Store, record: RunRecord, learned: Learned) -> None:
    """Write down the inputs of a new run: first what it learns from, which the record names by digest."""
    if learned.past is not None and record.past is not None:
        root.put(past_key(record.run, record.past), learned.past)
    key, data = record_key(record.run), record.to_bytes()
    if not prove(root, key, data) and root.get(key) != data:
        raise RunError(f"There is a run {record.run} already.")
