"""Writing a release: its files are staged, then the whole folder appears at once."""

import hashlib
import json
from datetime import UTC, datetime
from fractions import Fraction

from ppsyn.checks import validate
from ppsyn.dp.account import StoredAccount
from ppsyn.dp.budget import epsilon_from
from ppsyn.errors import AccountError, RunError
from ppsyn.packing import pack
from ppsyn.releases.layout import (
    ANSWERS,
    FILES,
    LEDGER,
    LEDGER_JSON,
    MANIFEST,
    MODEL,
    REPORT,
    SEAL,
    SYNTHETIC,
    VALIDATION,
    release_folder,
    staging_folder,
)
from ppsyn.releases.opened import seal_of
from ppsyn.releases.reporting import make_report
from ppsyn.releases.tables import count_rows, entries_to_json, pack_answers, pack_entries, read_rows, write_rows
from ppsyn.runs.checkpoints import freeze
from ppsyn.runs.records import private_folder
from ppsyn.runs.run import Run
from ppsyn.storage import Store, open_store
from ppsyn.synthesis import Synthesis
from schemas.account import hash_of
from schemas.config import PrivacyConfig
from schemas.manifest import AccountPart, FileDigest, Guarantee, Manifest
from schemas.validation import Validation

_CHUNK = 2**20


def is_published(run: Run) -> bool:
    """Whether the release is there for all to see."""
    return run.releases.has(f"{release_folder(run.ref.dataset, run.ref.run)}/{MANIFEST}")


def synthesis_of(run: Run) -> Synthesis:
    """The finished run as a synthesis."""
    state, record = run.state, run.record
    return Synthesis(
        record.table, record.privacy, record.method, run.ledger, state.measurements, state.evidence, state.rounds,
        state.model, record.generation.seed,
    )  # fmt: skip


def stage_rows(run: Run) -> None:
    """Generate the synthetic table into the staging folder."""
    recipe = synthesis_of(run).recipe(run.record.generation.rows)
    with run.releases.writer(f"{_staging(run)}/{SYNTHETIC}") as file:
        write_rows(recipe.made(), recipe.no_rows(), file)


def stage_validation(run: Run) -> Validation:
    """Check the staged table against its schema.

    Raises:
        RunError: If it does not hold; nothing is published.
    """
    folder = _staging(run)
    with run.releases.reader(f"{folder}/{SYNTHETIC}") as file:
        validation = validate(read_rows(file), run.record.table)
    run.releases.put(f"{folder}/{VALIDATION}", validation.model_dump_json(indent=2).encode() + b"\n")
    if not validation.success:
        raise RunError(f"The synthetic table of run {run.ref.run} does not fit its schema; see {VALIDATION}.")
    return validation


def stage_records(run: Run) -> None:
    """Write what the table was made from, the report and the manifest into the staging folder."""
    folder, record = _staging(run), run.record
    answers = run.answers()
    lines = run.account.chain(run.ref.run).lines
    run.releases.put(f"{folder}/{ANSWERS}", pack_answers(run.ledger.spends, answers, run.state.measurements))
    run.releases.put(f"{folder}/{MODEL}", pack(freeze(run.state, {})))
    run.releases.put(f"{folder}/{LEDGER}", pack_entries(lines))
    run.releases.put(f"{folder}/{LEDGER_JSON}", entries_to_json(lines))
    manifest = Manifest(
        dataset=record.dataset,
        run=record.run,
        published_at=datetime.now(UTC).replace(microsecond=0),
        inputs=record.digest(),
        table=record.table,
        privacy=record.privacy,
        method=record.method,
        generation=record.generation,
        rows=_row_count(run.releases, f"{folder}/{SYNTHETIC}"),
        guarantee=guarantee_of(run.ledger.spent, record.privacy),
        account=part_of(run.account, run.ref.run),
        code=record.code,
        files={name: file_digest(run.releases, f"{folder}/{name}") for name in FILES if name != REPORT},
    )
    run.releases.put(f"{folder}/{REPORT}", make_report(open_store(run.releases.place.under(folder)), manifest))
    digests = {**manifest.files, REPORT: file_digest(run.releases, f"{folder}/{REPORT}")}
    manifest = manifest.model_copy(update={"files": digests})
    data = run.settle_manifest(manifest.to_bytes())
    if Manifest.model_validate_json(data).files != manifest.files:
        raise RunError(f"Another process made other files of run {run.ref.run}; nothing was published.")
    run.releases.put(f"{folder}/{SEAL}", seal_of(hashlib.sha256(data).hexdigest()))
    run.releases.put(f"{folder}/{MANIFEST}", data)


def publish(run: Run) -> str:
    """Let the release appear, close its part of the account, and remove the copy of the private table.

    May be repeated until it succeeds. Returns the address of the release.
    """
    folder = release_folder(run.ref.dataset, run.ref.run)
    if not is_published(run):
        run.releases.move_folder(_staging(run), folder, MANIFEST)
    digest = hashlib.sha256(run.releases.get(f"{folder}/{MANIFEST}")).hexdigest()
    if run.part.is_open:
        _close(run, digest)
    if run.account.book.latest == run.ref.run:
        latest = {"run": run.ref.run, "manifest": digest}
        run.releases.put(f"releases/{run.ref.dataset}/latest.json", json.dumps(latest).encode() + b"\n")
    run.releases.delete(staging_folder(run.ref.run))
    run.private.delete(private_folder(run.ref.run))
    return run.releases.url(folder)


def _staging(run: Run) -> str:
    """Where this process puts the release together; no other touches it before the release is there."""
    return f"{staging_folder(run.ref.run)}/{run.token}"


def _close(run: Run, digest: str) -> None:
    try:
        run.account.close(run.ref.run, digest)
    except AccountError:
        if run.part.is_open:  # not that another process was faster
            raise


def guarantee_of(rho: Fraction, privacy: PrivacyConfig) -> Guarantee:
    """What a release that spent rho promises."""
    person = privacy.person
    unit = "a row" if person is None else f"a person, by at most {person.max_rows} rows ({person.column!r})"
    epsilon = None if privacy.delta is None else epsilon_from(rho, privacy.delta)
    return Guarantee(rho=rho, epsilon=epsilon, delta=privacy.delta, unit=unit)


def part_of(account: StoredAccount, run: str) -> AccountPart:
    """What a release tells of its part of the account. Nothing that another run has done plays a part in it."""
    part, chain = account.book.parts[run], account.chain(run)
    return AccountPart(charges=len(chain.ledger.spends), head=hash_of(chain.lines[-1]), cap=part.cap)


def _row_count(store: Store, key: str) -> int:
    with store.reader(key) as file:
        return count_rows(file)


def file_digest(store: Store, key: str) -> FileDigest:
    """The digest of a file, read in pieces."""
    hashed, size = hashlib.sha256(), 0
    with store.reader(key) as file:
        while piece := bytes(file.read(_CHUNK)):
            hashed.update(piece)
            size += len(piece)
    return FileDigest(sha256=hashed.hexdigest(), bytes=size)
