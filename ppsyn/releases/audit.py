"""Anyone's check of a release: its files, its chain, its arithmetic, and everything computed again from its answers."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest

import pandas as pd

from ppsyn.code_version import code_version
from ppsyn.domain import Clique, domain_of
from ppsyn.errors import MissingError, PPSynError, StoreError
from ppsyn.mechanisms.base import State
from ppsyn.mechanisms.loop import absorb, make_plan, next_request, start
from ppsyn.mechanisms.past import Past
from ppsyn.mechanisms.translation import Earlier, past_of
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.budget import rho_of
from ppsyn.privacy.requests import Answer, Measured, MeasureRequest, Request, noise_scale
from ppsyn.quality.audit import check_page, check_quality
from ppsyn.releases.budget_checks import Fault, check_chain, check_spending, check_stored, guarantee_of, together
from ppsyn.releases.layout import (
    ANSWERS,
    FILES,
    LEDGER,
    LEDGER_JSON,
    MANIFEST,
    MODEL,
    PAST,
    QUALITY,
    REPORT,
    RETIRED,
    SEAL,
    SIGNATURES,
    SYNTHETIC,
    VALIDATION,
)
from ppsyn.releases.reader import (
    file_digest,
    ledger_of,
    make_report,
    open_release,
    read_manifest,
    read_retirement,
    read_told,
    read_validation,
    seal_of,
)
from ppsyn.releases.signing import check_signature, is_demanded, is_signature, read_signature, signatures_in
from ppsyn.releases.tables import charges_of, entries_to_json, is_told_of, read_rows, unpack_answers, unpack_entries
from ppsyn.releases.validation import validate
from ppsyn.runs.checkpoints import freeze
from ppsyn.runs.run import Run
from ppsyn.schemas.manifest import Manifest
from ppsyn.schemas.retirement import Retirement
from ppsyn.schemas.run import EarlierRelease
from ppsyn.schemas.signature import Trust
from ppsyn.serialization import pack, pack_past, unpack_past
from ppsyn.storage import Store, open_store


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked.

    Attributes:
        subject: The artifact or the claim.
        problem: What is wrong with it; None if nothing is.
        unchecked: Why it could not be checked; None if it was.
    """

    subject: str
    problem: str | None = None
    unchecked: str | None = None


def audit(store: Store, account: StoredAccount | None = None, trust: Trust | None = None) -> Iterator[Finding]:
    """Check the release in this store, one finding at a time. No private table is needed.

    Args:
        store: The release's folder.
        account: The account it was paid from, for whoever may read it.
        trust: Public keys, and what their owners may do; by default those of the account. With them, a release that
            nobody has signed is at fault; with an account, if its policy names people.

    Raises:
        StoreError: If a store cannot be read, which says nothing about the release.
    """
    if store.has(RETIRED):
        yield from _retired(store, account)
        return
    yield (seal := _checked(MANIFEST, lambda: _check_seal(store)))
    if seal.problem is not None:
        return
    manifest, digest = read_manifest(store)
    files = [_checked(name, lambda name=name: _check_file(store, manifest, name)) for name in _names(store, manifest)]
    yield from files
    if any(finding.problem for finding in files):
        return  # what was computed from other files than the published ones tells nothing
    try:
        entries = unpack_entries(store.get(LEDGER))
    except ValueError as error:
        yield Finding(LEDGER, f"It is not the ledger of a release: {error}.")
        return
    yield from _paid(store, manifest, entries)
    yield from _recomputed(store, manifest, entries)
    yield from _learned(store, manifest)
    if account is not None:
        yield _checked("account", lambda: check_stored(account, manifest.run, manifest.account, entries, digest))
        if manifest.rests_on:
            yield _checked("account of what it rests on", lambda: _check_rests_on(account, manifest))
    yield from _signed(store, manifest, digest, account, trust)
    for key in filter(_is_about_quality, store.keys(QUALITY)):
        if key.endswith(".json"):
            yield _checked(key, lambda key=key: check_quality(store, manifest, digest, key, account))
        else:
            yield _checked(key, lambda key=key: check_page(store, key), hint=_hint(manifest))


def _signed(
    store: Store, manifest: Manifest, digest: str, account: StoredAccount | None, trust: Trust | None
) -> Iterator[Finding]:
    try:
        state = None if account is None else account.find()
    except PPSynError:
        return  # the finding about the account says so
    found = signatures_in(store)
    known = trust or (state.trust() if state is not None and state.keys else None)
    if not found and (trust is not None or (state is not None and is_demanded(state, manifest.run))):
        yield Finding(SIGNATURES, "Nobody has signed the release. Sign it: `ppsyn sign`.")
    for file in found:
        yield _checked(
            file, lambda file=file: check_signature(read_signature(store, digest, file), manifest, known, state)
        )


def _retired(store: Store, account: StoredAccount | None) -> Iterator[Finding]:
    """The audit of what is left of a release that was removed."""
    yield (found := _checked(RETIRED, lambda: read_retirement(store)))
    record = None if found.problem else read_retirement(store)
    if record is None:
        return
    yield _checked(f"retired: {record.sentence}", lambda: _check_removed(store))
    if account is not None:
        yield _checked("account", lambda: _check_spent(account, record))


def _check_removed(store: Store) -> None:
    left = [key for key in store.keys("") if key != RETIRED]
    if left:
        raise Fault(f"{left[0]} is still there. Repeat `ppsyn retire`.")


def _check_spent(account: StoredAccount, record: Retirement) -> None:
    budget = account.state.budgets.get(record.run)
    if budget is None or account.dataset != record.dataset:
        raise Fault(f"The account does not know run {record.run}: it was set back, or is of another store.")
    if (budget.manifest, budget.spent) != (record.manifest, record.guarantee.rho):
        raise Fault("The account has paid for another release, or another amount, than the erasure record says.")


def audit_own(store: Store, run: Run) -> Iterator[Finding]:
    """The audit of a release by the process that has just made it, before it appears.

    It does not make again what that process has made from the same answers: the rows, which it has read back and
    validated, the report and, unless the run went on from a checkpoint, the loop.
    """
    yield _checked(MANIFEST, lambda: _check_seal(store))
    manifest, _ = read_manifest(store)
    for name in _names(store, manifest):
        yield _checked(name, lambda name=name: _check_file(store, manifest, name))
    entries = unpack_entries(store.get(LEDGER))
    yield from _paid(store, manifest, entries)
    replayed = [run.state] if run.is_replayed else []
    if not replayed:
        yield _checked("replay", lambda: replayed.append(_replay(store, manifest, entries)), hint=_hint(manifest))
    if replayed:
        yield _checked("answers", lambda: _check_told(store, manifest, entries, run.answers(), replayed[0]))
        yield _checked("model", lambda: _check_model(store, replayed[0]), hint=_hint(manifest))


def _paid(store: Store, manifest: Manifest, entries: Sequence[bytes]) -> Iterator[Finding]:
    yield _checked("chain", lambda: _check_chain(manifest, entries, store.get(LEDGER_JSON)))
    yield _checked("budget", lambda: _check_budget(manifest, entries))


def _recomputed(store: Store, manifest: Manifest, entries: Sequence[bytes]) -> Iterator[Finding]:
    replayed: list[State] = []
    yield _checked("replay", lambda: replayed.append(_replay(store, manifest, entries)), hint=_hint(manifest))
    if replayed:
        yield _checked("model", lambda: _check_model(store, replayed[0]), hint=_hint(manifest))
    yield _checked("rows", lambda: _check_rows(store, manifest), hint=_hint(manifest))
    yield _checked("validation", lambda: _check_validation(store, manifest))
    yield _checked("report", lambda: _check_report(store, manifest), hint=_hint(manifest))


def _learned(store: Store, manifest: Manifest) -> Iterator[Finding]:
    """Whether what the release has learned is what the releases beside it tell, which are those that it names."""
    told = list[Earlier]()
    for earlier in manifest.learned_from:
        beside, subject = _beside(store, earlier.run), f"learned from {earlier.run}"
        if beside is None:
            yield Finding(
                subject, unchecked=f"It is not beside this release; what {PAST} says of it was taken as told."
            )
        else:
            yield _checked(subject, lambda beside=beside, e=earlier: told.append(_check_beside(beside, e, manifest)))
    if manifest.learned_from and len(told) == len(manifest.learned_from):
        yield _checked(PAST, lambda: _check_past(store, manifest, told), hint=_hint(manifest))


def _beside(store: Store, run: str) -> Store | None:
    """A release in the folder that this one is in, if it is there."""
    above = store.location.model_copy(update={"url": store.location.url.rstrip("/").rpartition("/")[0]})
    return open_store(above.child(run)) if open_store(above).has(f"{run}/{MANIFEST}") else None


def _check_beside(beside: Store, earlier: EarlierRelease, manifest: Manifest) -> Earlier:
    """What an earlier release tells, if it is the one that is named and cost what is said."""
    found, told = read_told(beside, earlier.manifest)
    person, protected = manifest.privacy.person, found.privacy.person
    if found.dataset != manifest.dataset or (person and person.column) != (protected and protected.column):
        raise Fault("It was charged to another account, or protects another unit.")
    is_named = all(release in manifest.rests_on for release in found.rests_on)
    if found.guarantee.rho != earlier.rho or not is_named:
        raise Fault("It cost something else, or rests on other releases, than the manifest says.")
    return told


def _check_rests_on(account: StoredAccount, manifest: Manifest) -> None:
    """See that the account has published each release that this one rests on, at the cost that is said."""
    budgets = account.state.budgets
    for release in manifest.rests_on:
        budget = budgets.get(release.run)
        if budget is None or (budget.manifest, budget.spent) != (release.manifest, release.rho):
            raise Fault(f"The account did not publish {release.run} so, or not at the cost that is said.")


def _check_past(store: Store, manifest: Manifest, told: Sequence[Earlier]) -> None:
    past, _ = past_of(told, manifest.table)
    found = None if past is None else pack_past(past)
    if found != (store.get(PAST) if PAST in manifest.files else None):
        raise Fault(f"{PAST} is not what the earlier releases tell.")


def _past(store: Store, manifest: Manifest) -> Past | None:
    """What the release has learned, as it is published with it."""
    if PAST not in manifest.files:
        return None
    if not manifest.learned_from:
        raise Fault(f"{PAST} is there, and the manifest names no release that it comes from.")
    return unpack_past(store.get(PAST), domain_of(manifest.table))


def _checked(subject: str, check: Callable[[], object], hint: str = "") -> Finding:
    try:
        check()
    except MissingError as error:
        return Finding(subject, f"{error}{hint}")
    except StoreError:
        raise  # of what cannot be read, nobody can say that it is wrong
    except (Fault, PPSynError) as error:
        return Finding(subject, f"{error}{hint}")
    except Exception as error:  # noqa: BLE001  # a forged file may make its reader fail in any way
        return Finding(subject, f"It cannot be read ({type(error).__name__}: {error}).{hint}")
    return Finding(subject)


def _hint(manifest: Manifest) -> str:
    """Where the bits may come from, if the code or the processor is another."""
    made, here = manifest.code, code_version()
    differs = [
        name
        for name in ("ppsyn", "source", "python", "libraries", "machine")
        if getattr(made, name) != getattr(here, name)
    ]
    if not differs:
        return ""
    return f" It was made by other {', '.join(differs)} ({made.ppsyn} on {made.machine}); repeat the audit there."


def _check_seal(store: Store) -> None:
    digest = hashlib.sha256(store.get(MANIFEST)).hexdigest()
    if store.get(SEAL) != seal_of(digest):
        raise Fault(f"{MANIFEST} and {SEAL} do not belong together: one of them was changed.")
    read_manifest(store)


def _names(store: Store, manifest: Manifest) -> list[str]:
    own = {*FILES, *manifest.files, *store.keys()} - {MANIFEST, SEAL}
    return sorted(name for name in own if not _is_about_quality(name) and not is_signature(name))


def _is_about_quality(key: str) -> bool:
    """Whether it was put there after the release, and is checked by itself."""
    return re.fullmatch(rf"{QUALITY}/[A-Za-z0-9-]+\.(json|html)", key) is not None


def _check_file(store: Store, manifest: Manifest, name: str) -> None:
    if name not in manifest.files:
        raise Fault("The manifest does not know this file.")
    if name not in (*FILES, PAST):
        raise Fault("No release has a file of this name.")
    if not store.has(name):
        raise Fault("The file is missing.")
    if file_digest(store, name) != manifest.files[name]:
        raise Fault("The file was changed after it was published.")


def _check_chain(manifest: Manifest, entries: Sequence[bytes], as_json: bytes) -> None:
    check_chain(manifest.account, entries, LEDGER)
    if entries_to_json(entries) != as_json:
        raise Fault(f"{LEDGER_JSON} does not say what {LEDGER} says.")


def _check_budget(manifest: Manifest, entries: Sequence[bytes]) -> None:
    grant = check_spending(entries, manifest.run, manifest.account, manifest.guarantee)
    if grant.rho != rho_of(manifest.privacy):
        raise Fault("The run reserved another budget than its configuration names.")
    if (grant.dataset, grant.inputs, grant.quality_of) != (manifest.dataset, manifest.inputs, None):
        raise Fault("The run was paid for with other inputs.")
    if manifest.guarantee != guarantee_of(manifest.guarantee.rho, manifest.privacy):
        raise Fault("The guarantee does not follow from what was spent.")
    if manifest.together != together(manifest.guarantee.rho, manifest.rests_on, manifest.privacy):
        raise Fault("What it costs together with the releases that it rests on does not follow from what they cost.")
    if not all(release in manifest.rests_on for release in manifest.learned_from):
        raise Fault("It has learned from a release that it is not said to rest on.")


def _replay(store: Store, manifest: Manifest, entries: Sequence[bytes]) -> State:
    """The loop over the published answers, which must ask what was charged."""
    person = manifest.privacy.person
    max_rows = person.max_rows if person else 1
    rho, past = rho_of(manifest.privacy), _past(store, manifest)
    state = start(make_plan(domain_of(manifest.table), rho, max_rows, manifest.algorithm, past=past))
    charges, answers = charges_of(entries, manifest.run), unpack_answers(store.get(ANSWERS))
    for step, (charge, answer) in enumerate(zip_longest(charges, answers)):
        request = next_request(state)
        if charge is None or answer is None or request is None:
            raise Fault(f"Step {step}: questions, charges and answers are not equally many.")
        if _as_charged(request) != (charge.mechanism, charge.clique, charge.rho, charge.request):
            raise Fault(f"Step {step}: the loop asks something else than was charged.")
        if isinstance(answer, Measured) and answer.sigma != _scale_of(request, max_rows):
            raise Fault(f"Step {step}: the noise is not what its charge buys.")
        state = absorb(state, request, answer)
    if state.stage != "done":
        raise Fault("The loop had more to ask.")
    _check_told(store, manifest, entries, answers, state)
    return state


def _check_told(
    store: Store, manifest: Manifest, entries: Sequence[bytes], answers: Sequence[Answer], state: State
) -> None:
    if not is_told_of(store.get(ANSWERS), ledger_of(entries, manifest.run).spends, answers, state.measurements):
        raise Fault(f"{ANSWERS} does not say what its answers are answers to.")


def _scale_of(request: Request, max_rows: int) -> float | None:
    """The noise that the charge for a measurement buys."""
    if not isinstance(request, MeasureRequest):
        return None
    return noise_scale(request.rho, max_rows * request.sensitivity)


def _as_charged(request: Request) -> tuple[str, Clique, Fraction, str]:
    """What a charge for the request says."""
    if isinstance(request, MeasureRequest):
        return "measure", request.clique, request.rho, request.digest()
    return "select", (), request.rho, request.digest()


def _check_model(store: Store, state: State) -> None:
    if pack(freeze(state, {})) != store.get(MODEL):
        raise Fault(f"{MODEL} is not what the answers imply.")


def _check_rows(store: Store, manifest: Manifest) -> None:
    expected = open_release(store).recipe(manifest.generation.rows).all_blocks()
    rows = 0
    with store.reader(SYNTHETIC) as file:
        for made, published in zip_longest(expected, read_rows(file)):
            if made is None or published is None or not _are_equal(made, published):
                raise Fault(f"{SYNTHETIC} is not what {MODEL} and the seed give.")
            rows += len(published)
    if rows != manifest.rows:
        raise Fault(f"{SYNTHETIC} has another number of rows than the manifest says.")


def _are_equal(made: pd.DataFrame, published: pd.DataFrame) -> bool:
    try:
        pd.testing.assert_frame_equal(made.reset_index(drop=True), published, check_exact=True)
    except AssertionError:
        return False
    return True


def _check_validation(store: Store, manifest: Manifest) -> None:
    with store.reader(SYNTHETIC) as file:
        found = validate(read_rows(file), manifest.table)
    if found != read_validation(store) or not found.success:
        raise Fault(f"{VALIDATION} does not say what the synthetic table is.")


def _check_report(store: Store, manifest: Manifest) -> None:
    if make_report(store, manifest) != store.get(REPORT):
        raise Fault(f"{REPORT} is not the page that the other files give.")
