import hashlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.published import (
    ABANDONED,
    DATASET,
    OPEN,
    RUN,
    SCHEMA,
    Published,
    begin,
    config_of,
    finish,
    manifest_of,
    people,
    stage,
)
from support.published import make_release as make
from support.published import shared_release as shared

from ppsyn.code_version import code_version
from ppsyn.errors import RunError
from ppsyn.privacy.budget import epsilon_from
from ppsyn.releases.layout import FILES, LEDGER, MANIFEST, SEAL, SYNTHETIC, release_folder, staging_folder
from ppsyn.releases.reader import file_digest
from ppsyn.releases.tables import unpack_entries
from ppsyn.releases.writer import is_published, publish, stage_rows, stage_validation
from ppsyn.runs.record import private_folder, read_record
from ppsyn.runs.run import Run
from ppsyn.schemas.account import Charge, Grant, from_bytes
from ppsyn.schemas.locations import Location
from ppsyn.schemas.manifest import AccountPart
from ppsyn.storage import Store

ALL = {*FILES, MANIFEST, SEAL}


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared(tmp_path_factory)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that has asked all there is to ask."""
    return finished(tmp_path, Location(url=str(tmp_path / "store")))


def finished(folder: Path, root: Location, name: str = RUN) -> Run:
    source = folder / "table.parquet"
    pq.write_table(pa.Table.from_pandas(people(), preserve_index=False), source)
    return finish(begin(config_of(source, root), run=name))


def seen(store: Store) -> dict[str, bytes]:
    return {key: store.get(key) for key in store.keys()}  # noqa: SIM118  # a store is not a mapping


def test_files_are_staged_where_no_reader_looks(run: Run) -> None:
    stage(run)
    assert not is_published(run)
    assert run.releases.keys("releases") == []
    assert set(run.releases.keys(staging_folder(RUN))) == {f"{staging_folder(RUN)}/{run.token}/{name}" for name in ALL}


def test_publishing_moves_all_of_them_and_leaves_nothing_staged(run: Run) -> None:
    stage(run)
    url = publish(run)
    assert is_published(run)
    assert {path.name for path in Path(url).iterdir()} == ALL
    assert run.releases.keys("staging") == []


def whenever_it_is_there(store: Store, stop: threading.Event) -> list[set[str]]:
    """What a reader who waits for the manifest finds beside it."""
    folder, found = release_folder(DATASET, RUN), list[set[str]]()
    while not (stop.is_set() and found):
        if store.has(f"{folder}/{MANIFEST}"):
            found.append({key.rsplit("/", 1)[-1] for key in store.keys(folder)})
    return found


@pytest.mark.parametrize("location", ["folder", "memory"])
def test_whoever_sees_the_manifest_sees_the_whole_release(tmp_path: Path, location: str) -> None:
    url = str(tmp_path / "store") if location == "folder" else f"memory://{tmp_path.name}"
    run, stop = finished(tmp_path, Location(url=url)), threading.Event()
    stage(run)
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(whenever_it_is_there, run.releases, stop)
        publish(run)
        stop.set()
        assert all(names == ALL for names in reader.result(timeout=60))


def test_publishing_twice_changes_nothing(run: Run) -> None:
    stage(run)
    publish(run)
    before, entries = seen(run.releases), run.account.entries()
    publish(Run(run.ref))
    assert (seen(run.releases), run.account.entries()) == (before, entries)


def test_publishing_goes_on_where_it_was_interrupted(run: Run) -> None:
    stage(run)
    run.releases.move_folder(f"{staging_folder(RUN)}/{run.token}", release_folder(DATASET, RUN), MANIFEST)
    assert run.budget.is_open
    publish(Run(run.ref))
    digest = hashlib.sha256(run.releases.get(f"{release_folder(DATASET, RUN)}/{MANIFEST}")).hexdigest()
    assert run.budget.manifest == digest
    assert run.private.keys(private_folder(RUN)) == []


def latest(store: Store) -> dict[str, str]:
    return json.loads(store.get(f"releases/{DATASET}/latest.json"))


def test_the_latest_release_is_named_with_its_digest(release: Published) -> None:
    digest = hashlib.sha256((release.folder / MANIFEST).read_bytes()).hexdigest()
    assert latest(release.root) == {"run": RUN, "manifest": digest}


def test_publishing_an_old_release_again_does_not_make_it_the_latest(tmp_path: Path) -> None:
    root = Location(url=str(tmp_path / "store"))
    old, new = finished(tmp_path, root), finished(tmp_path, root, OPEN)
    for run in (old, new):
        stage(run)
        publish(run)
    publish(Run(old.ref))
    assert latest(new.releases)["run"] == OPEN


def test_two_releases_at_once_both_stand_and_one_is_the_latest(tmp_path: Path) -> None:
    root = Location(url=str(tmp_path / "store"))
    runs = [finished(tmp_path, root), finished(tmp_path, root, OPEN)]
    for run in runs:
        stage(run)
    with ThreadPoolExecutor(2) as pool:
        urls = list(pool.map(publish, runs))
    assert [{path.name for path in Path(url).iterdir()} for url in urls] == [ALL, ALL]
    assert latest(runs[0].releases)["run"] in (RUN, OPEN)
    budgets = Run(runs[0].ref).account.state.budgets
    assert all(budgets[name].manifest for name in (RUN, OPEN))


def test_the_copy_of_the_private_table_is_gone_and_that_of_an_open_run_is_not(release: Published) -> None:
    assert release.root.keys(private_folder(RUN)) == []
    assert release.root.keys(private_folder(OPEN)) != []


def test_nothing_of_the_private_prefix_is_left_as_a_folder(run: Run) -> None:
    stage(run)
    publish(run)
    assert not (Path(run.ref.private.url) / private_folder(RUN)).exists()


def test_a_run_publishes_where_its_stores_say(tmp_path: Path) -> None:
    locations = {name: str(tmp_path / name) for name in ("root", "private", "releases")}
    made = make(tmp_path, changes={"stores": locations})
    assert {path.name for path in made.folder.iterdir()} == ALL
    assert made.folder.is_relative_to(tmp_path / "releases")
    assert [path for path in (tmp_path / "private").rglob("*") if path.is_file()] == []


# The manifest


def test_the_manifest_says_what_the_release_was_told(release: Published) -> None:
    manifest, config = manifest_of(release.folder), release.config
    assert (manifest.dataset, manifest.run, manifest.table) == (DATASET, RUN, SCHEMA)
    assert (manifest.privacy, manifest.algorithm, manifest.generation) == (
        config.privacy,
        config.algorithm,
        config.generation,
    )


def test_the_manifest_says_what_was_spent(release: Published) -> None:
    guarantee, budget = manifest_of(release.folder).guarantee, release.account.state.budgets[RUN]
    assert guarantee.rho == budget.spent == budget.total
    assert (guarantee.epsilon, guarantee.delta) == (epsilon_from(budget.spent, 1e-6), 1e-6)
    assert guarantee.epsilon == pytest.approx(2.0, rel=1e-6)
    assert guarantee.unit == "a row"


def test_the_manifest_names_the_inputs_the_code_and_the_hour(release: Published) -> None:
    manifest = manifest_of(release.folder)
    assert manifest.inputs == read_record(release.root, RUN).digest() == release.account.state.budgets[RUN].grant.inputs
    assert manifest.code == code_version()
    assert timedelta(0) <= datetime.now(UTC) - manifest.published_at < timedelta(hours=1)


def test_the_manifest_has_the_digests_of_the_files(release: Published) -> None:
    manifest = manifest_of(release.folder)
    assert set(manifest.files) == set(FILES)
    for name, said in manifest.files.items():
        data = (release.folder / name).read_bytes()
        assert (said.sha256, said.bytes) == (hashlib.sha256(data).hexdigest(), len(data))
        assert file_digest(release.store, name) == said


def test_the_manifest_counts_the_rows(release: Published) -> None:
    assert manifest_of(release.folder).rows == pq.read_metadata(release.folder / SYNTHETIC).num_rows


def test_the_ledger_is_the_grant_and_the_charges_of_the_run_and_nothing_else_of_the_account(release: Published) -> None:
    said, lines = manifest_of(release.folder).account, unpack_entries((release.folder / LEDGER).read_bytes())
    assert lines == release.account.chain(RUN).lines
    grant, *charges = map(from_bytes, lines)
    assert isinstance(grant, Grant)
    assert (grant.run, grant.dataset) == (RUN, DATASET)
    assert all(isinstance(charge, Charge) and charge.run == RUN for charge in charges)
    assert isinstance(said, AccountPart)
    assert (said.charges, said.head) == (len(charges), hashlib.sha256(lines[-1]).hexdigest())
    for run in (OPEN, ABANDONED):
        assert not any(run.encode() in path.read_bytes() for path in release.folder.iterdir())


def test_the_manifest_says_which_cap_the_account_had(release: Published) -> None:
    assert manifest_of(release.folder).account.cap == release.account.state.cap


def test_sha256sum_knows_the_seal(release: Published) -> None:
    digest = hashlib.sha256((release.folder / MANIFEST).read_bytes()).hexdigest()
    assert (release.folder / SEAL).read_text(encoding="utf-8") == f"{digest}  {MANIFEST}\n"


def test_as_many_rows_are_made_as_the_release_asks_for(tmp_path: Path) -> None:
    made = make(tmp_path, changes={"generation": {"rows": 17, "seed": 3}})
    assert pq.read_metadata(made.folder / SYNTHETIC).num_rows == manifest_of(made.folder).rows == 17


def test_a_table_that_does_not_fit_its_schema_is_not_published(run: Run) -> None:
    stage_rows(run)
    key = f"{staging_folder(RUN)}/{run.token}/{SYNTHETIC}"
    path = Path(run.releases.url(key))
    frame = pq.read_table(path).to_pandas()
    frame.loc[0, "age"] = 99
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    with pytest.raises(RunError, match="does not fit its schema"):
        stage_validation(run)
