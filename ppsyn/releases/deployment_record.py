"""The documents that go with a release, in a folder of their own: they appear together, and change nothing else."""

import hashlib
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ppsyn.errors import ConfigError, StoreError, translated
from ppsyn.releases.layout import MANIFEST, SEAL, SYNTHETIC
from ppsyn.releases.reader import file_digest, open_release, read_sealed
from ppsyn.releases.tables import read_rows, write_csv
from ppsyn.reports.deployment_record import Facts, People, documents
from ppsyn.storage import Store

RELEASE_SUMS, SUMS = "release.sha256", "SHA256SUMS"
"""Digests of the release's files, and of the files beside this one, as `sha256sum --check` reads them."""


def write_documents(store: Store, people: People, out: Path, *, with_csv: bool) -> None:
    """Write the documents of the release in this store into a new folder, which appears when it is complete.

    Args:
        store: The release.
        people: What it does not say of itself.
        out: The folder.
        with_csv: Whether to write the synthetic table as CSV too.

    Raises:
        ConfigError: If a file of the release is not the one that was published, or the folder exists.
        StoreError: If it cannot be written.
    """
    manifest, digest = read_sealed(store)
    changed = [name for name, told in manifest.files.items() if not store.has(name) or file_digest(store, name) != told]
    if changed:
        raise ConfigError(f"{store.url(changed[0])} is not the file that was published. See `ppsyn audit`.")
    if out.exists():
        raise ConfigError(f"Expected --out={out} not to exist: a record is written into a new folder.")
    facts = Facts(manifest, digest, open_release(store), people)
    sums = {name: told.sha256 for name, told in manifest.files.items()}
    sums |= {MANIFEST: digest, SEAL: hashlib.sha256(store.get(SEAL)).hexdigest()}
    _write(out, {**documents(facts), RELEASE_SUMS: _sums(sums)}, store if with_csv else None)


def _write(out: Path, files: Mapping[str, bytes], table: Store | None) -> None:
    partial = out.with_name(f".{out.name}.{os.getpid()}.part")
    with translated(OSError, to=StoreError, message=lambda error: f"Cannot write {out}: {error.strerror}."):
        try:
            partial.mkdir()
            for name, data in files.items():
                (partial / name).write_bytes(data)
            if table is not None:
                _write_table(table, partial / "synthetic.csv")
            digests = {path.name: _digest(path) for path in sorted(partial.iterdir())}
            (partial / SUMS).write_bytes(_sums(digests))
            partial.rename(out)
        finally:
            with suppress(OSError):
                shutil.rmtree(partial)


def _write_table(store: Store, path: Path) -> None:
    with store.reader(SYNTHETIC) as empty:
        first = next(iter(read_rows(empty)))
    with store.reader(SYNTHETIC) as file, path.open("xb") as out:
        write_csv(read_rows(file), first.iloc[:0], out)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sums(digests: Mapping[str, str]) -> bytes:
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode()
