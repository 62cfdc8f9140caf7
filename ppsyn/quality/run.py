"""Figures about a release, paid for: reserve, read the table, ask, close the account, publish."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from uuid import uuid4

from ppsyn.arrays import Ints
from ppsyn.data.ingest import ingest
from ppsyn.data.marginals import TableCounter
from ppsyn.data.snapshot import Shelf, open_snapshot
from ppsyn.data.sources import check_source, check_stable
from ppsyn.domain import Clique, domain_of
from ppsyn.errors import AccountError, ConfigError, InvariantError, StoreError
from ppsyn.privacy.account import RunAccount, StoredAccount
from ppsyn.privacy.account_state import RunBudget
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.requests import CompareRequest, Measured, MeasureRequest
from ppsyn.quality.questions import compare_request, figures_of, rows_of, rows_request, scaled_to, shares_of
from ppsyn.releases.budget_checks import account_part, guarantee_of
from ppsyn.releases.layout import QUALITY
from ppsyn.reports.quality import render
from ppsyn.runs.account_check import check_known
from ppsyn.runs.preflight import try_locations, unit_of
from ppsyn.runs.record import private_folder, quality_key, record_locations
from ppsyn.schemas.quality import Quality, QualityRecord
from ppsyn.schemas.release import Source
from ppsyn.schemas.run import RunRef
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import Store, open_store, prove


def new_run(release: str) -> str:
    """A name for a run that measures the quality of a release."""
    return f"{release}-q{uuid4().hex[:6]}"


def unanswered(account: StoredAccount, release: Store, run: str) -> list[RunBudget]:
    """Earlier runs about a release that have reserved or spent something, and have left no figures in its folder."""
    about = (budget for budget in account.budgets() if budget.quality_of == run and budget.committed)
    return [budget for budget in about if not release.has(f"{QUALITY}/{budget.run}.json")]


def check_possible(ref: RunRef, record: QualityRecord, source: Source, table: TableSchema, release: Store) -> None:
    """See that the figures can be had, before anything is written or reserved. No row is read.

    Raises:
        PPSynError: If they cannot.
    """
    root = open_store(ref.root)
    account = StoredAccount(root, ref.dataset)
    check_known(account, root, open_store(ref.releases))
    account.check_compatible(None, unit_of(record.person))
    budget = account.state.budgets.get(record.release)
    if budget is None or budget.manifest != record.manifest:
        raise ConfigError(
            f"The account of {ref.dataset!r} in {root.location.url} does not know the release in "
            f"{release.location.url}. Name the store that it was paid from."
        )
    account.check_room(record.rho, quality_of=record.release)
    check_source(source, table, record.person)
    check_stable(source, record.person)  # its doubts were told with the release


def measure(
    ref: RunRef, record: QualityRecord, source: Source, table: TableSchema, synthetic: Mapping[Clique, Ints]
) -> Quality:
    """Reserve the budget, ask, and close the run's budget; what is not spent is free again.

    Privacy:
        Claims C1, C5, C9 and C12. Reads the private table, whose codes are in the private
        store meanwhile. Both questions are charged before they are answered. If the
        process is killed in between, the answer is lost and stays charged.

    Args:
        ref: The run and its stores.
        record: What to measure.
        source: The private table, as it is now.
        table: The schema of the release.
        synthetic: Counts of the published table.

    Raises:
        CapExceededError: If the account does not have the budget; no row was read.
    """
    root = open_store(ref.root)
    account = StoredAccount(root, ref.dataset)
    try:
        if not prove(root, quality_key(ref.run), record.to_bytes()):
            raise InvariantError("A run has the name of another.")
        record_locations(root, ref)
        try_locations(ref)
    except StoreError:
        with suppress(StoreError):  # what went wrong before says more
            root.delete(f"runs/{ref.run}")
        raise
    try:
        account.reserve(ref.run, record.rho, record.digest(), quality_of=record.release)
    except AccountError:
        root.delete(f"runs/{ref.run}")
        raise
    try:
        quality = _ask(ref, record, source, table, synthetic)
        account.close(ref.run, hashlib.sha256(quality.to_bytes()).hexdigest())
    except BaseException:
        with suppress(AccountError, StoreError):  # what went wrong before says more
            account.close(ref.run, None)
        raise
    finally:
        open_store(ref.private).delete(private_folder(ref.run))
    return quality


def _ask(
    ref: RunRef, record: QualityRecord, source: Source, table: TableSchema, synthetic: Mapping[Clique, Ints]
) -> Quality:
    private, folder = open_store(ref.private), private_folder(ref.run)
    ingest(source, table, record.person, private, folder)
    account = StoredAccount(open_store(ref.root), ref.dataset)
    counter = TableCounter(open_snapshot(Shelf(private, folder), table), ref.runtime.marginals_mb)
    curator = TableCurator(counter, RunAccount(account, ref.run), record.max_rows, is_watched=True)
    first, second = shares_of(record.rho, record.sets)
    rows = rows_of(_answer(curator, rows_request(domain_of(table), first)))
    answer = _answer(curator, compare_request(record.sets, synthetic, scaled_to(rows), second))
    return Quality(
        request=record,
        measured_at=datetime.now(UTC).replace(microsecond=0),
        guarantee=guarantee_of(record.rho, record.privacy),
        rows=rows,
        sigma=answer.sigma,
        figures=figures_of(record.sets, synthetic, rows, answer),
        account=account_part(account, ref.run),
        entries=tuple(data.decode() for data in account.chain(ref.run).lines),
    )


def _answer(curator: TableCurator, request: MeasureRequest | CompareRequest) -> Measured:
    answer = curator.answer(request)
    if not isinstance(answer, Measured):
        raise InvariantError("Expected numbers for an answer.")
    return answer


def publish(release: Store, quality: Quality) -> str:
    """Put the figures into the release's folder, as JSON and as a page; returns the address of the JSON.

    The files of the release itself stay as they are.
    """
    key = f"{QUALITY}/{quality.request.run}"
    release.put(f"{key}.html", render(quality))
    if not release.create(f"{key}.json", quality.to_bytes()):
        raise InvariantError("Figures have the name of others.")
    return release.url(f"{key}.json")
