"""A published release, read back: its files, its model, its rows as counts, its report."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from ppsyn.arrays import Codes, Ints
from ppsyn.data.encoding import encode
from ppsyn.data.marginals.kernel import count_blocks
from ppsyn.domain import Clique, domain_of
from ppsyn.errors import ConfigError, MissingError, translated
from ppsyn.mechanisms.translation import Earlier
from ppsyn.privacy.account_state import spend_of
from ppsyn.privacy.ledger import Ledger
from ppsyn.releases.layout import (
    ANSWERS,
    LATEST,
    LEDGER,
    MANIFEST,
    MODEL,
    REPORT,
    RETIRED,
    SEAL,
    SYNTHETIC,
    VALIDATION,
    release_folder,
)
from ppsyn.releases.tables import charges_of, read_rows, unpack_answers, unpack_entries
from ppsyn.schemas.account import Grant, Reservation, from_bytes
from ppsyn.schemas.files import other_format
from ppsyn.schemas.limits import DOCUMENT_BYTES
from ppsyn.schemas.manifest import RELEASE_FORMAT, FileDigest, Manifest, Validation
from ppsyn.schemas.retirement import Retirement
from ppsyn.schemas.run import RunRef
from ppsyn.serialization import unpack, unpack_told
from ppsyn.storage import Store, open_store
from ppsyn.synthesis import Synthesis


def read_manifest(store: Store) -> tuple[Manifest, str]:
    """The manifest of the release in this store, and its digest.

    Raises:
        ConfigError: If there is none.
    """
    try:
        data = store.get(MANIFEST, DOCUMENT_BYTES)
    except MissingError:
        data = None
    if data is None:
        retired = read_retirement(store)
        raise ConfigError(
            f"There is no release in {store.location.url}: it has no {MANIFEST}."
            if retired is None
            else retired.sentence
        )
    other = other_format(data, RELEASE_FORMAT)
    if other is not None:
        raise ConfigError(f"Cannot read {store.url(MANIFEST)}. {other}")
    damaged = f"Expected {store.url(MANIFEST)} to be the manifest of a release."
    with translated(ValueError, to=ConfigError, message=damaged):
        return Manifest.model_validate_json(data), hashlib.sha256(data).hexdigest()


def read_retirement(store: Store) -> Retirement | None:
    """What is left of the release in this store, if it was removed on purpose.

    Raises:
        ConfigError: If that is damaged.
    """
    try:
        data = store.get(RETIRED, DOCUMENT_BYTES)
    except MissingError:
        return None
    with translated(ValueError, to=ConfigError, message=f"Expected {store.url(RETIRED)} to be an erasure record."):
        return Retirement.model_validate_json(data)


def read_sealed(store: Store) -> tuple[Manifest, str]:
    """As `read_manifest`, if the manifest is the one that was published.

    Raises:
        ConfigError: If there is none, or it was changed.
    """
    manifest, digest = read_manifest(store)
    if _read(store, SEAL) != seal_of(digest):
        raise ConfigError(f"{store.url(MANIFEST)} was changed after it was published.")
    return manifest, digest


def latest_in(store: Store) -> Store:
    """The release of a dataset that was published last, where `store` holds all of them.

    Raises:
        ConfigError: If none is named.
    """
    no_latest = f"There is no {store.url(LATEST)}, which names the latest release."
    with translated(MissingError, to=ConfigError, message=no_latest):
        data = store.get(LATEST)
    try:
        run = json.loads(data)["run"]
    except (ValueError, TypeError, KeyError):
        run = None
    if not isinstance(run, str) or not re.fullmatch(r"[A-Za-z0-9-]+", run):
        raise ConfigError(f"Expected {store.url(LATEST)} to name a run.")
    return open_store(store.location.child(run))


def read_validation(store: Store) -> Validation:
    """The checks of the synthetic table, as published."""
    return Validation.model_validate_json(store.get(VALIDATION, DOCUMENT_BYTES))


def published_store(ref: RunRef) -> Store:
    """Where a run's release is published."""
    return open_store(ref.releases.child(release_folder(ref.dataset, ref.run)))


def open_release(store: Store) -> Synthesis:
    """The release in this store as a synthesis, to make more rows of, at no cost.

    Raises:
        ConfigError: If there is none, or a file of it is damaged.
    """
    manifest, _ = read_sealed(store)
    model, entries = (_read_whole(store, manifest, name) for name in (MODEL, LEDGER))
    rule = f"Expected {store.url(LEDGER)} to be the ledger of a release"
    with translated(ValueError, to=ConfigError, message=lambda error: f"{rule}: {error}."):
        return synthesis_from(manifest, model, unpack_entries(entries))


def read_told(store: Store, digest: str | None) -> tuple[Manifest, Earlier]:
    """What a later release may learn from the one in this store, if it is as it was published.

    Args:
        store: The release's folder.
        digest: Of its manifest, as it was published.

    Raises:
        ConfigError: If there is none, or it was changed.
    """
    manifest, found = read_sealed(store)
    if found != digest:
        raise ConfigError(f"{store.url(MANIFEST)} is not the one that was published.")
    return manifest, unpack_told(_read_whole(store, manifest, MODEL), manifest.table)


def synthesis_from(manifest: Manifest, model: bytes, entries: Sequence[bytes]) -> Synthesis:
    """A release as a synthesis.

    Raises:
        ConfigError: If the model is not one of this table.
        ValueError: If the entries are not those of this run.
    """
    fitted = unpack(model, domain_of(manifest.table))
    ledger, seed = ledger_of(entries, manifest.run), manifest.generation.seed
    return Synthesis.from_state(fitted, ledger, manifest.table, manifest.privacy, manifest.algorithm, seed)


def seal_of(digest: str) -> bytes:
    """What manifest.sha256 holds, as sha256sum writes it."""
    return f"{digest}  {MANIFEST}\n".encode()


def _read(store: Store, name: str) -> bytes:
    with translated(MissingError, to=ConfigError, message=f"The release in {store.location.url} has lost {name}."):
        return store.get(name)


def _read_whole(store: Store, manifest: Manifest, name: str) -> bytes:
    data, said = _read(store, name), manifest.files.get(name)
    if said is None or hashlib.sha256(data).hexdigest() != said.sha256:
        raise ConfigError(f"{store.url(name)} was changed after it was published.")
    return data


def ledger_of(entries: Sequence[bytes], run: str) -> Ledger:
    """What the run reserved and spent, by the entries.

    Raises:
        ValueError: If it reserved nothing.
    """
    total = next((e.rho for e in map(from_bytes, entries) if isinstance(e, Grant | Reservation) and e.run == run), None)
    if total is None:
        raise ValueError("no grant of this run")
    return Ledger(total, tuple(map(spend_of, charges_of(entries, run))))


def published_counts(store: Store, manifest: Manifest, cliques: Sequence[Clique]) -> dict[Clique, Ints]:
    """Marginals of the synthetic table of the release in this store.

    Raises:
        ConfigError: If the table is not the one that was published.
    """
    counts = count_blocks(domain_of(manifest.table), published_codes(store, manifest), cliques)
    return dict(zip(cliques, counts, strict=True))


def published_codes(store: Store, manifest: Manifest) -> Iterator[Mapping[str, Codes]]:
    """The synthetic table as codes, a block of rows at a time.

    Raises:
        ConfigError: If the table is not the one that was published.
    """
    if not store.has(SYNTHETIC) or file_digest(store, SYNTHETIC) != manifest.files.get(SYNTHETIC):
        raise ConfigError(f"{store.url(SYNTHETIC)} is not the table that was published.")
    damaged = f"Expected {store.url(SYNTHETIC)} to be a table that ppsyn wrote."
    with store.reader(SYNTHETIC) as file, translated((OSError, ValueError), to=ConfigError, message=damaged):
        for frame in read_rows(file):
            yield encode(frame, manifest.table).columns


def make_report(store: Store, manifest: Manifest) -> bytes:
    """The page, from the other files of the release in this store.

    Neither when the release was published nor the digest of the report itself has a part in it.
    """
    from ppsyn.reports.release import render  # noqa: PLC0415  # pages come with the extra
    from ppsyn.reports.released import Released  # noqa: PLC0415

    entries = unpack_entries(store.get(LEDGER))
    released = Released(
        manifest=manifest,
        entries=tuple(map(from_bytes, entries)),
        answers=tuple(unpack_answers(store.get(ANSWERS))),
        synthesis=synthesis_from(manifest, store.get(MODEL), entries),
        validation=read_validation(store),
    )
    return render(released, REPORT)


def file_digest(store: Store, key: str) -> FileDigest:
    """The digest of a file, read in pieces."""
    with store.reader(key) as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return FileDigest(sha256=sha256, bytes=file.tell())
