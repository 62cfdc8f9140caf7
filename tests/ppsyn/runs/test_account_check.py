"""An account that knows less than what lies beside it is refused, before anything is spent."""

import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from support.accounts import LyingStore, contents, reopened
from support.published import ABANDONED, OPEN, RUN, SCHEMA, Published, config_of, shared_release

from ppsyn.errors import AccountError
from ppsyn.flows.cli.accounts import read_statement
from ppsyn.privacy.account import StoredAccount
from ppsyn.quality.run import check_possible as check_quality
from ppsyn.releases.reader import read_manifest
from ppsyn.runs import preflight
from ppsyn.runs import record as records
from ppsyn.runs.account_check import check_known
from ppsyn.schemas.locations import Location
from ppsyn.schemas.quality import MarginalSet, QualityRecord
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.storage import Store, open_store

NEW = "20310203-060708-3d4e5f60"
FIGURES = f"{RUN}-q0a1b2c"


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def folder(release: Published, tmp_path: Path) -> Path:
    """A copy of the store of a release, of an abandoned run and of an open one, to do harm to."""
    return Path(shutil.copytree(release.root.location.url, tmp_path / "store"))


@pytest.fixture
def root(folder: Path) -> Store:
    return open_store(Location(url=str(folder)))


@pytest.fixture
def config(release: Published, root: Store) -> ReleaseConfig:
    return release.config.model_copy(update={"stores": config_of(Path("x"), root.location).stores})


def set_back(folder: Path, entries: int) -> None:
    """Leave the first entries of the account, and no charges of runs that these do not know."""
    account = folder / "accounts" / "people"
    for path in account.glob("*.json"):
        if int(path.stem) >= entries:
            path.unlink()
    known = StoredAccount(open_store(Location(url=str(folder))), "people").state.budgets if entries else {}
    for charged in (account / "charges").iterdir():
        if charged.name not in known:
            shutil.rmtree(charged)


def removed(folder: Path) -> None:
    shutil.rmtree(folder / "accounts")


def removed_with_runs(folder: Path) -> None:
    removed(folder)
    shutil.rmtree(folder / "runs")


def removed_with_releases(folder: Path) -> None:
    removed(folder)
    shutil.rmtree(folder / "releases")


def main_entries_removed(folder: Path) -> None:
    """All but the opening; the charges of all runs are still there."""
    for path in (folder / "accounts" / "people").glob("*.json"):
        if path.stem != "000000":
            path.unlink()
    shutil.rmtree(folder / "runs")
    shutil.rmtree(folder / "releases")


HARMS: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "removed": (removed, {ABANDONED, RUN, OPEN}),
    "removed, and the runs": (removed_with_runs, {RUN}),
    "removed, and the releases": (removed_with_releases, {ABANDONED, RUN, OPEN}),
    "set back to its opening": (lambda folder: set_back(folder, 1), {ABANDONED, RUN, OPEN}),
    "set back to its first run": (lambda folder: set_back(folder, 3), {RUN, OPEN}),
    "set back to its second run": (lambda folder: set_back(folder, 4), {OPEN}),
    "set back, and its charges are there": (main_entries_removed, {ABANDONED, RUN, OPEN}),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_new_run_is_refused_with_the_names_of_what_the_account_lacks_and_leaves_no_trace(
    folder: Path, root: Store, config: ReleaseConfig, harm: str
) -> None:
    act, lacking = HARMS[harm]
    act(folder)
    before = contents(root)
    for attempt in (
        lambda: preflight.begin(records.ref_of(config, NEW), config, SCHEMA),
        lambda: preflight.balance(config),
    ):
        with pytest.raises(AccountError, match="removed or set back") as caught:
            attempt()
        assert {run for run in (ABANDONED, RUN, OPEN) if run in str(caught.value)} == lacking
        assert "Restore accounts/people" in str(caught.value)
        assert contents(root) == before


@pytest.mark.parametrize("harm", ["removed", "set back to its opening"])
def test_what_the_account_has_left_is_not_told_then(folder: Path, root: Store, harm: str) -> None:
    HARMS[harm][0](folder)
    with pytest.raises(AccountError, match="removed or set back"):
        read_statement(root, "people")


def test_nor_are_figures_measured(folder: Path, root: Store, config: ReleaseConfig) -> None:
    ref = records.ref_of(config, FIGURES)
    store = open_store(root.location.child(f"releases/people/{RUN}"))
    manifest, digest = read_manifest(store)
    record = QualityRecord(
        run=FIGURES, dataset="people", release=RUN, manifest=digest, rho=Fraction(1, 100), delta=1e-6, person=None,
        sets=(MarginalSet(name="one", marginals=(("sex",),)),),
    )  # fmt: skip
    check_quality(ref, record, config.source, manifest.table, store)
    set_back(folder, 4)  # the release is known
    with pytest.raises(AccountError, match=OPEN):
        check_quality(ref, record, config.source, manifest.table, store)


def test_a_run_does_not_go_on_in_an_account_that_has_forgotten_others(
    folder: Path, root: Store, config: ReleaseConfig
) -> None:
    preflight.begin(records.ref_of(config, NEW), small(config), SCHEMA)
    (folder / "accounts" / "people" / "000006.json").unlink()  # its own hold
    answered(root, NEW)
    with pytest.raises(AccountError, match="removed or set back"):
        preflight.begin(records.ref_of(config, NEW), small(config), SCHEMA)


def small(config: ReleaseConfig) -> ReleaseConfig:
    return config.model_copy(update={"privacy": config.privacy.model_copy(update={"epsilon": 0.1})})


def answered(root: Store, run: str) -> None:
    root.put(f"runs/{run}/answers/000000.npz", b"an answer")


def test_figures_that_were_published_are_missed_too(root: Store) -> None:
    record = f'{{"dataset": "people", "release": "{RUN}"}}'.encode()
    root.put(f"runs/{FIGURES}/quality.json", record)
    check_known(StoredAccount(root, "people"), root, root)  # written down before the budget was reserved, and no more
    root.put(f"releases/people/{RUN}/quality/{FIGURES}.json", b"{}")
    with pytest.raises(AccountError, match=FIGURES):
        check_known(StoredAccount(root, "people"), root, root)


def test_releases_in_a_place_of_their_own_are_looked_at(folder: Path, root: Store, tmp_path: Path) -> None:
    (folder / "releases").rename(tmp_path / "elsewhere")
    other = open_store(Location(url=str(tmp_path)))
    (tmp_path / "elsewhere").rename(tmp_path / "releases")
    removed_with_runs(folder)
    check_known(StoredAccount(root, "people"), root, root)
    with pytest.raises(AccountError, match=RUN):
        check_known(StoredAccount(root, "people"), root, other)


# What an account need not know


def test_an_account_that_knows_all_is_not_refused(root: Store) -> None:
    check_known(StoredAccount(root, "people"), root, root)


@pytest.mark.parametrize(
    ("key", "data"),
    [
        (f"runs/{NEW}/config.json", b'{"dataset": "people"}'),  # of a run that has not reserved its budget yet
        (f"runs/{NEW}/config.json", b"damaged"),
        (f"runs/{NEW}/answers/000000.npz", b"of a run that is no one's"),
        ("runs/notes/readme.txt", b"hello"),
        ("releases/people/notes/readme.txt", b"hello"),
        ("releases/people/latest.json", b"{}"),
        ("releases/census/20310203-060708-3d4e5f60/manifest.json", b"{}"),
    ],
)
def test_what_has_told_nothing_or_is_not_of_the_dataset_is_not_missed(root: Store, key: str, data: bytes) -> None:
    root.put(key, data)
    check_known(StoredAccount(root, "people"), root, root)


def test_runs_of_other_datasets_of_the_store_are_not_missed(root: Store) -> None:
    root.put(f"runs/{NEW}/config.json", b'{"dataset": "census"}')
    answered(root, NEW)
    check_known(StoredAccount(root, "people"), root, root)
    with pytest.raises(AccountError, match=NEW):
        check_known(StoredAccount(root, "census"), root, root)


class CountingStore(LyingStore):
    """Counts what is read and listed."""

    reads = 0

    def get(self, key: str) -> bytes:
        self.reads += 1
        return super().get(key)

    def level(self, prefix: str = "") -> tuple[list[str], list[str]]:
        self.reads += 1
        return super().level(prefix)


def test_known_runs_cost_no_reading_however_many_there_are(root: Store) -> None:
    counting = reopened(CountingStore, root)
    check_known(StoredAccount(counting, "people"), counting, counting)
    before, account = counting.reads, StoredAccount(root, "people")
    for number in range(200):
        root.put(f"runs/many-{number}/config.json", b'{"dataset": "people"}')
        answered(root, f"many-{number}")
        account.reserve(f"many-{number}", Fraction(1, 10**6), "0" * 64)
    counting.reads = 0
    check_known(StoredAccount(counting, "people"), counting, counting)
    assert counting.reads == before + 200  # the new entries of the account
