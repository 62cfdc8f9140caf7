"""Writing a release: its files are staged, then the whole folder appears at once."""

import hashlib
import json
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

from ppsyn.errors import AccountError, RunError, StoreError
from ppsyn.privacy.signatures import own_signer
from ppsyn.releases.budget_checks import account_part, guarantee_of, together
from ppsyn.releases.layout import (
    ANSWERS,
    FILES,
    LATEST,
    LEDGER,
    LEDGER_JSON,
    MANIFEST,
    MODEL,
    PAST,
    QUALITY,
    REPORT,
    SEAL,
    SIGNATURES,
    SYNTHETIC,
    VALIDATION,
    release_folder,
    staging_folder,
)
from ppsyn.releases.reader import file_digest, make_report, seal_of
from ppsyn.releases.signing import sign_release
from ppsyn.releases.tables import count_rows, entries_to_json, pack_answers, pack_entries, read_rows, write_rows
from ppsyn.releases.validation import validate
from ppsyn.runs.checkpoints import freeze
from ppsyn.runs.record import private_folder
from ppsyn.runs.run import Run
from ppsyn.schemas.manifest import FileDigest, Manifest
from ppsyn.serialization import pack
from ppsyn.storage import Store, open_store
from ppsyn.synthesis import Synthesis


def is_published(run: Run) -> bool:
    """Whether the release is there for all to see."""
    return run.releases.has(f"{release_folder(run.ref.dataset, run.ref.run)}/{MANIFEST}")


def synthesis_of(run: Run) -> Synthesis:
    """The finished run as a synthesis."""
    state, record = run.state, run.record
    seed = record.generation.seed
    return Synthesis.from_state(state, run.ledger, record.table, record.privacy, record.algorithm, seed)


@contextmanager
def _unless_published(run: Run) -> Generator[None]:
    """Let be what cannot be staged any more: whoever publishes a run takes away what others have staged of it."""
    try:
        yield
    except (AccountError, StoreError, RunError):
        if not is_published(run):
            raise


def stage_rows(run: Run) -> None:
    """Generate the synthetic table into the staging folder."""
    recipe = synthesis_of(run).recipe(run.record.generation.rows)
    with _unless_published(run), run.releases.writer(f"{_staging(run)}/{SYNTHETIC}") as file:
        write_rows(recipe.all_blocks(), recipe.no_rows(), file)


def stage_validation(run: Run) -> None:
    """Check the staged table against its schema.

    Raises:
        RunError: If it does not hold; nothing is published.
    """
    with _unless_published(run):
        _validate(run)


def _validate(run: Run) -> None:
    folder = _staging(run)
    with run.releases.reader(f"{folder}/{SYNTHETIC}") as file:
        validation = validate(read_rows(file), run.record.table)
    run.releases.put(f"{folder}/{VALIDATION}", validation.model_dump_json(indent=2).encode() + b"\n")
    if not validation.success:
        raise RunError(f"The synthetic table of run {run.ref.run} does not fit its schema. See {VALIDATION}.")


def stage_records(run: Run) -> None:
    """Write what the table was made from, the report and the manifest into the staging folder."""
    with _unless_published(run):
        _write_records(run)


def _write_records(run: Run) -> None:
    folder, record = _staging(run), run.record
    answers = run.answers()
    lines = run.account.chain(run.ref.run).lines
    run.releases.put(f"{folder}/{ANSWERS}", pack_answers(run.ledger.spends, answers, run.state.measurements))
    run.releases.put(f"{folder}/{MODEL}", pack(freeze(run.state, {})))
    run.releases.put(f"{folder}/{LEDGER}", pack_entries(lines))
    run.releases.put(f"{folder}/{LEDGER_JSON}", entries_to_json(lines))
    if run.past is not None:
        run.releases.put(f"{folder}/{PAST}", run.past)
    names = FILES if run.past is None else (*FILES, PAST)
    manifest = Manifest(
        dataset=record.dataset,
        run=record.run,
        published_at=datetime.now(UTC).replace(microsecond=0),
        inputs=record.digest(),
        table=record.table,
        privacy=record.privacy,
        algorithm=record.algorithm,
        generation=record.generation,
        learned_from=record.earlier,
        rests_on=record.rests_on,
        left_out=record.left_out,
        rows=_row_count(run.releases, f"{folder}/{SYNTHETIC}"),
        guarantee=guarantee_of(run.ledger.spent, record.privacy),
        together=together(run.ledger.spent, record.rests_on, record.privacy),
        account=account_part(run.account, run.ref.run),
        code=record.code,
        files={name: file_digest(run.releases, f"{folder}/{name}") for name in names if name != REPORT},
    )
    run.releases.put(f"{folder}/{REPORT}", make_report(open_store(run.releases.location.child(folder)), manifest))
    digests = {**manifest.files, REPORT: file_digest(run.releases, f"{folder}/{REPORT}")}
    manifest = manifest.model_copy(update={"files": digests})
    data = run.keep_first_manifest(manifest.to_bytes())
    if not _is_of(data, manifest):
        raise RunError(
            f"The manifest that is kept of run {run.ref.run} is damaged, or of other files; nothing was published. "
            f"`ppsyn abandon {run.ref.run}` ends the run."
        )
    run.releases.put(f"{folder}/{SEAL}", seal_of(hashlib.sha256(data).hexdigest()))
    run.releases.put(f"{folder}/{MANIFEST}", data)


def publish(run: Run) -> str:
    """Let the release appear, close its budget in the account, and remove the copy of the private table.

    It appears if an audit of what is staged finds nothing, and the account would accept its close as of then. May be
    repeated until it succeeds. Returns the address of the release.

    Raises:
        AccountError: If the account refuses the close: its policy wants another signature. Repeat it with a key that
            may sign.
        RunError: If the audit finds something; or if the run was published before, and not as it is there now.
    """
    folder = release_folder(run.ref.dataset, run.ref.run)
    if is_published(run):
        _check_published(run, folder)
    else:
        with _unless_published(run):
            _check_staged(run)
            run.account.check_close(run.ref.run, _manifest_digest(run, _staging(run)))
            run.releases.move_folder(_staging(run), folder, MANIFEST)
    digest = _manifest_digest(run, folder)
    if run.budget.is_open:
        _close(run, digest)
    _sign(run, folder)
    if run.account.state.latest == run.ref.run:
        latest = {"run": run.ref.run, "manifest": digest}
        run.releases.put(f"releases/{run.ref.dataset}/{LATEST}", json.dumps(latest).encode() + b"\n")
    run.releases.delete(staging_folder(run.ref.run))
    run.private.delete(private_folder(run.ref.run))
    return run.releases.url(folder)


def _manifest_digest(run: Run, folder: str) -> str:
    return hashlib.sha256(run.releases.get(f"{folder}/{MANIFEST}")).hexdigest()


def _check_staged(run: Run) -> None:
    from ppsyn.releases.audit import audit_own  # noqa: PLC0415  # which knows what is written here

    for finding in audit_own(open_store(run.releases.location.child(_staging(run))), run):
        if finding.problem is not None:
            raise RunError(
                f"The release of run {run.ref.run} would not pass an audit and is not published. {finding.subject}: "
                f"{finding.problem} `ppsyn abandon {run.ref.run}` ends the run."
            )


def _check_published(run: Run, folder: str) -> None:
    """See that what is there is what was published: the manifest as it was closed, and the files it names."""
    data = run.releases.get(f"{folder}/{MANIFEST}")
    digest, budget = hashlib.sha256(data).hexdigest(), run.budget
    if run.keep_first_manifest(data) != data or (not budget.is_open and budget.manifest != digest):
        problems = [MANIFEST]
    else:
        files = Manifest.model_validate_json(data).files
        problems = [name for name, digest in files.items() if not _is_there(run.releases, f"{folder}/{name}", digest)]
        problems += [] if run.releases.get(f"{folder}/{SEAL}") == seal_of(digest) else [SEAL]
        found = (key.removeprefix(f"{folder}/") for key in run.releases.keys(folder))
        known = {*files, MANIFEST, SEAL}
        problems += [
            name for name in found if name not in known and not name.startswith((f"{QUALITY}/", f"{SIGNATURES}/"))
        ]
    if problems:
        raise RunError(
            f"The release of run {run.ref.run} is not as it was published: {', '.join(sorted(problems))}. "
            "Restore it from a copy."
        )


def _is_there(store: Store, key: str, digest: FileDigest) -> bool:
    return store.has(key) and file_digest(store, key) == digest


def _is_of(data: bytes, manifest: Manifest) -> bool:
    """Whether the bytes are this manifest, whenever it was made."""
    try:
        kept = Manifest.model_validate_json(data)
    except ValueError:
        return False
    return kept.model_copy(update={"published_at": manifest.published_at}) == manifest


def _staging(run: Run) -> str:
    """Where this process puts the release together; no other touches it before the release is there."""
    return f"{staging_folder(run.ref.run)}/{run.token}"


def _sign(run: Run, folder: str) -> None:
    """Sign what was published, if the account trusts the key of whoever runs this."""
    signer = own_signer()
    key = None if signer is None else run.account.state.keys.get(signer.keyid)
    if signer is not None and key is not None and key.revoked is None:
        sign_release(open_store(run.releases.location.child(folder)), signer)


def _close(run: Run, digest: str) -> None:
    try:
        run.account.close(run.ref.run, digest)
    except AccountError:
        if run.budget.is_open:  # not that another process was faster
            raise


def _row_count(store: Store, key: str) -> int:
    with store.reader(key) as file:
        return count_rows(file)
