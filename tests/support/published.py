"""Finished releases without Prefect, and what a forger would do to one."""

import hashlib
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ppsyn.mechanisms.loop import next_request
from ppsyn.privacy.account import RunAccount, StoredAccount
from ppsyn.privacy.ledger import Spend
from ppsyn.privacy.requests import MeasureRequest
from ppsyn.releases.layout import FILES, LEDGER, LEDGER_JSON, MANIFEST, REPORT, SEAL, release_folder
from ppsyn.releases.reader import make_report
from ppsyn.releases.tables import entries_to_json, pack_entries, unpack_entries
from ppsyn.releases.writer import publish, stage_records, stage_rows, stage_validation
from ppsyn.runs import preflight
from ppsyn.runs import record as records
from ppsyn.runs.run import Run
from ppsyn.schemas.account import FIRST, Grant, Line, from_bytes, hash_of, to_bytes
from ppsyn.schemas.locations import Location
from ppsyn.schemas.manifest import FileDigest, Manifest
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.run import RunRef
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import Store, open_store

DATASET = "people"
RUN, OPEN, ABANDONED = "20310203-040506-0a1b2c3d", "20310203-050607-1b2c3d4e", "20310203-030405-2c3d4e5f"
LOST = frozenset({1, 6})

SCHEMA = TableSchema.model_validate(
    {
        "name": "people",
        "columns": [
            {"name": "sex", "kind": "categorical", "values": ["f", "m"], "other": "m"},
            {"name": "age", "kind": "integer", "lower": 0, "upper": 23},
            {"name": "is member", "kind": "boolean", "nullable": True},
            {"name": "score", "kind": "real", "lower": 0.0, "upper": 1.0, "bins": 4, "nullable": True},
        ],
    }
)
"""A few columns, so that a release takes little time and its files few bytes."""

TINY: Mapping[str, object] = {
    "privacy": {"epsilon": 2.0, "delta": 1e-6},
    "account": {"cap": {"epsilon": 8.0, "delta": 1e-6}},
    "algorithm": {"workload": {"degree": 2}, "rounds": 4, "max_fit_steps": 20},
    "generation": {"seed": 11},
}


def people(rows: int = 200, seed: int = 0) -> pd.DataFrame:
    """A private table of `SCHEMA`."""
    rng = np.random.Generator(np.random.PCG64(seed))
    age = rng.integers(0, 24, rows)
    return pd.DataFrame(
        {
            "sex": np.where(rng.random(rows) < 0.4, "f", "m"),
            "age": age,
            "is member": pd.array(age + rng.integers(0, 12, rows) > 16, dtype="boolean"),
            "score": np.where(rng.random(rows) < 0.1, np.nan, np.round(rng.random(rows), 3)),
        }
    )


@dataclass(frozen=True, slots=True)
class Published:
    """A finished release.

    Attributes:
        ref: The run.
        config: What it was told.
    """

    ref: RunRef
    config: ReleaseConfig

    @property
    def root(self) -> Store:
        return open_store(self.ref.root)

    @property
    def folder(self) -> Path:
        return Path(self.ref.releases.url) / release_folder(self.ref.dataset, self.ref.run)

    @property
    def account(self) -> StoredAccount:
        return StoredAccount(self.root, self.ref.dataset)

    @property
    def store(self) -> Store:
        return open_store(self.ref.releases.child(release_folder(self.ref.dataset, self.ref.run)))


def config_of(source: Path, root: Location, changes: Mapping[str, object] | None = None) -> ReleaseConfig:
    """A release of the Parquet file `source` into `root`."""
    document = {
        "dataset": DATASET,
        "source": {"kind": "parquet", "path": str(source)},
        "schema": "given-elsewhere.yaml",
        "stores": {"root": root},
        **TINY,
        **(changes or {}),
    }
    return ReleaseConfig.model_validate(document)


def begin(config: ReleaseConfig, schema: TableSchema = SCHEMA, run: str = RUN) -> Run:
    """A run that has reserved its budget and copied its table."""
    ref = records.ref_of(config, run)
    preflight.begin(ref, config, schema)
    preflight.snapshot(ref)
    return Run(ref)


def lose(run: Run) -> Run:
    """The run after a crash between a charge and its answer."""
    request = next_request(run.state)
    assert request is not None
    is_measured = isinstance(request, MeasureRequest)
    clique = request.clique if isinstance(request, MeasureRequest) else ()
    spend = Spend("measure" if is_measured else "select", request.rho, request.digest(), clique)
    RunAccount(run.account, run.ref.run).charge(spend)
    return Run(run.ref)


def finish(run: Run, lost: Collection[int] = ()) -> Run:
    """Ask all there is to ask; answers of the steps in `lost` never arrive."""
    while run.state.stage != "done":
        if run.step in lost:
            run = lose(run)
        else:
            run.ask()
            run.absorb()
    return run


def stage(run: Run) -> None:
    """Put a finished run's files together."""
    stage_rows(run)
    stage_validation(run)
    stage_records(run)


def make_release(
    folder: Path,
    frame: pd.DataFrame | None = None,
    schema: TableSchema = SCHEMA,
    *,
    root: Location | None = None,
    run: str = RUN,
    changes: Mapping[str, object] | None = None,
    lost: Collection[int] = (),
) -> Published:
    """Release a table, by default into `folder`/store; its source is `folder`/table.parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "table.parquet"
    table = pa.Table.from_pandas(people() if frame is None else frame, preserve_index=False)
    pq.write_table(table, source)
    config = config_of(source, root or Location(url=str(folder / "store")), changes)
    done = finish(begin(config, schema, run), lost)
    stage(done)
    publish(done)
    return Published(done.ref, config)


_SHARED: list[Published] = []


def shared_release(folders: pytest.TempPathFactory) -> Published:
    """One release for all tests of a process, who must not change it.

    Its account also has a run that was abandoned and one that is open, which was charged meanwhile; two of its answers
    were lost.
    """
    if not _SHARED:
        _SHARED.append(_crowded_release(folders.mktemp("published")))
    return _SHARED[0]


def _crowded_release(folder: Path) -> Published:
    source = folder / "table.parquet"
    pq.write_table(pa.Table.from_pandas(people(), preserve_index=False), source)
    location, small = Location(url=str(folder / "store")), {"privacy": {"epsilon": 0.5, "delta": 1e-6}}
    abandoned = _asked(begin(config_of(source, location, small), run=ABANDONED))
    abandoned.private.delete(records.private_folder(ABANDONED))
    abandoned.account.close(ABANDONED, None)
    config = config_of(source, location)
    run = _asked(begin(config))
    _asked(begin(config_of(source, location, small), run=OPEN))
    done = finish(run, LOST)
    stage(done)
    publish(done)
    return Published(done.ref, config)


def _asked(run: Run) -> Run:
    run.ask()
    run.absorb()
    return run


def copied(folder: Path, target: Path) -> Path:
    """A copy of a release to do harm to."""
    shutil.copytree(folder, target)
    return target


def in_memory(folder: Path, name: str) -> Store:
    """A copy of a release that is quick to read."""
    store = open_store(Location(url=f"memory://{name}"))
    for path in folder.iterdir():
        store.put(path.name, path.read_bytes())
    return store


def manifest_of(folder: Path) -> Manifest:
    return Manifest.model_validate_json((folder / MANIFEST).read_bytes())


def reseal(folder: Path, manifest: Manifest | None = None) -> None:
    """Make the digests those of the files as they are now, as a forger would."""
    manifest = manifest or manifest_of(folder)
    files = {name: _digest((folder / name).read_bytes()) for name in FILES}
    seal(folder, manifest.model_copy(update={"files": files}).to_bytes())


def retell(folder: Path, manifest: Manifest) -> None:
    """Make the report anew for this manifest, and reseal."""
    (folder / REPORT).write_bytes(make_report(open_store(Location(url=str(folder))), manifest))
    reseal(folder, manifest)


def seal(folder: Path, manifest: bytes) -> None:
    (folder / MANIFEST).write_bytes(manifest)
    (folder / SEAL).write_text(f"{hashlib.sha256(manifest).hexdigest()}  {MANIFEST}\n", encoding="utf-8")


def _digest(data: bytes) -> FileDigest:
    return FileDigest(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))


def entries_of(folder: Path) -> list[Line]:
    return [from_bytes(data) for data in unpack_entries((folder / LEDGER).read_bytes())]


def write_entries(folder: Path, entries: Sequence[Line]) -> None:
    """Replace the ledger by one with these entries, chained and counted as they should be, and reseal."""
    said, previous, data = manifest_of(folder), FIRST, list[bytes]()
    number = 0
    for entry in entries:
        placed = (
            entry if isinstance(entry, Grant) else entry.model_copy(update={"number": number, "previous": previous})
        )
        number += not isinstance(entry, Grant)
        data.append(to_bytes(placed))
        previous = hash_of(data[-1])
    (folder / LEDGER).write_bytes(pack_entries(data))
    (folder / LEDGER_JSON).write_bytes(entries_to_json(data))
    told = said.account.model_copy(update={"charges": number, "head": previous})
    reseal(folder, said.model_copy(update={"account": told}))


def edit_parquet(path: Path, edit: Callable[[list[dict[str, object]]], list[dict[str, object]]]) -> None:
    """Change rows of a Parquet file, and keep its types."""
    table = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist(edit(table.to_pylist()), schema=table.schema), path, compression="zstd")
