import shutil
from pathlib import Path

import pandas as pd
import pytest
from support.published import Published, copied, manifest_of, seal, shared_release

import ppsyn
from ppsyn.errors import ConfigError
from ppsyn.releases.layout import LEDGER, MANIFEST, MODEL, SEAL, SYNTHETIC
from ppsyn.releases.reader import (
    file_digest,
    open_release,
    published_codes,
    published_store,
    read_manifest,
    read_validation,
)
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def folder(release: Published, tmp_path: Path) -> Path:
    """A copy to do harm to."""
    return copied(release.folder, tmp_path / "copy")


def test_a_loaded_release_makes_the_published_rows(release: Published) -> None:
    published = pd.read_parquet(release.folder / SYNTHETIC)
    pd.testing.assert_frame_equal(ppsyn.load(release.folder).table, published, check_exact=True)


def test_a_release_loads_from_wherever_it_is(
    release: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(release.folder, tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    assert len(ppsyn.load("moved").table) == manifest_of(release.folder).rows


def test_a_loaded_release_knows_its_cost_and_its_settings(release: Published) -> None:
    loaded, manifest = ppsyn.load(release.folder), manifest_of(release.folder)
    assert loaded.rho == manifest.guarantee.rho == release.account.state.budgets[manifest.run].spent
    assert loaded.epsilon() == manifest.guarantee.epsilon
    assert (loaded.schema, loaded.privacy, loaded.config) == (manifest.table, manifest.privacy, manifest.algorithm)
    assert loaded.seed == manifest.generation.seed


def test_more_rows_begin_with_none_of_the_released_ones_but_follow_the_seed(release: Published) -> None:
    loaded = ppsyn.load(release.folder)
    again = loaded.generate(50, seed=9)
    pd.testing.assert_frame_equal(again, loaded.generate(50, seed=9), check_exact=True)
    assert not again.equals(loaded.generate(50, seed=10))


def test_a_loaded_release_can_be_saved_and_loaded_again(release: Published, tmp_path: Path) -> None:
    loaded = ppsyn.load(release.folder)
    ppsyn.save(loaded, tmp_path / "saved")
    pd.testing.assert_frame_equal(ppsyn.load(tmp_path / "saved").table, loaded.table, check_exact=True)


def test_the_run_finds_its_own_release(release: Published) -> None:
    assert read_manifest(published_store(release.ref))[0] == manifest_of(release.folder)
    assert read_validation(published_store(release.ref)).success


def test_a_release_opens_from_a_bucket(release: Published, s3: Location) -> None:
    store = open_store(s3)
    for path in release.folder.iterdir():
        store.put(path.name, path.read_bytes())
    assert len(open_release(store).table) == manifest_of(release.folder).rows


@pytest.mark.parametrize("file", [MODEL, LEDGER, SEAL])
def test_a_release_without_one_of_its_files_is_not_loaded(folder: Path, file: str) -> None:
    (folder / file).unlink()
    with pytest.raises(ConfigError):
        ppsyn.load(folder)


@pytest.mark.parametrize("file", [MANIFEST, MODEL, LEDGER])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.8, 0.99])
def test_a_release_with_a_changed_byte_is_not_loaded(folder: Path, file: str, share: float) -> None:
    data = bytearray((folder / file).read_bytes())
    data[int(share * len(data))] ^= 1
    (folder / file).write_bytes(data)
    with pytest.raises(ConfigError):
        ppsyn.load(folder)


@pytest.mark.parametrize("file", [MANIFEST, MODEL, LEDGER])
@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"{}", b"\xff" * 50])
def test_a_release_with_something_else_in_a_file_is_not_loaded(folder: Path, file: str, data: bytes) -> None:
    (folder / file).write_bytes(data)
    with pytest.raises(ConfigError):
        ppsyn.load(folder)


def test_a_changed_seed_under_the_old_seal_is_not_loaded(folder: Path) -> None:
    said = (folder / MANIFEST).read_bytes()
    (folder / MANIFEST).write_bytes(said.replace(b'"seed": 11', b'"seed": 12'))
    with pytest.raises(ConfigError):
        ppsyn.load(folder)


def test_a_model_of_another_table_is_not_loaded(folder: Path) -> None:
    said = manifest_of(folder)
    table = said.table.model_copy(update={"columns": said.table.columns[:2]})
    seal(folder, said.model_copy(update={"table": table}).to_bytes())
    with pytest.raises(ConfigError):
        ppsyn.load(folder)


def test_a_folder_without_a_release_is_not_loaded(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ConfigError):
            ppsyn.load(folder)


def test_a_table_that_is_none_is_told_although_its_digest_fits(folder: Path) -> None:
    store = open_store(Location(url=str(folder)))
    (folder / SYNTHETIC).write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    said = manifest_of(folder)
    files = {**said.files, SYNTHETIC: file_digest(store, SYNTHETIC)}
    seal(folder, said.model_copy(update={"files": files}).to_bytes())
    with pytest.raises(ConfigError, match=r"synthetic\.parquet to be a table that ppsyn wrote\.$"):
        list(published_codes(store, read_manifest(store)[0]))
