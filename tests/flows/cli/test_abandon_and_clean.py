"""Runs that are given up, and what is removed after those that have ended: nothing private stays behind."""

import json
import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.killing import Stage, run_of, starter_for
from support.published import ABANDONED, OPEN, RUN, Published, begin, config_of, copied, people, shared_release

from ppsyn.errors import AccountError, RunError, StoreError
from ppsyn.flows.cli.accounts import read_statement, state_of
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.privacy.account import StoredAccount
from ppsyn.releases.layout import staging_folder
from ppsyn.runs.cleanup import give_up
from ppsyn.runs.record import private_folder
from ppsyn.schemas.limits import ARRAYS_BYTES
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def store(release: Published, tmp_path: Path) -> Store:
    """A copy of the store, to be changed."""
    return open_store(Location(url=str(copied(Path(release.ref.root.url), tmp_path / "store"))))


def ppsyn(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_giving_a_run_up_frees_what_it_reserved_and_removes_its_table(store: Store) -> None:
    before = read_statement(store, "people").state
    ledger, left = StoredAccount(store, "people").chain(OPEN).ledger, before.left
    found = give_up(store, None, OPEN)
    after = read_statement(store, "people").state
    assert (found.freed, found.spent, found.stuck) == (ledger.left, ledger.spent, ())
    assert after.left == left + ledger.left
    assert state_of(after.budgets[OPEN]) == "abandoned"
    assert store.keys(private_folder(OPEN)) == []


@pytest.mark.parametrize("gone", ["config.json", "locations.json", "answers", "checkpoints", ""])
def test_a_run_is_given_up_from_its_account_alone(store: Store, gone: str) -> None:
    for key in store.keys(f"runs/{OPEN}"):
        if key.startswith(f"runs/{OPEN}/{gone}") and not key.startswith(private_folder(OPEN)):
            Path(store.url(key)).unlink()
    assert ppsyn("abandon", OPEN, "--yes", "--store", store.location.url).exit_code == 0
    assert state_of(read_statement(store, "people").state.budgets[OPEN]) == "abandoned"
    assert store.keys(private_folder(OPEN)) == []


def test_a_published_run_cannot_be_given_up(store: Store) -> None:
    entries = StoredAccount(store, "people").entries()
    with pytest.raises(AccountError, match="closed"):
        give_up(store, None, RUN)
    assert StoredAccount(store, "people").entries() == entries


def test_giving_up_again_removes_what_was_left_and_writes_no_entry(store: Store) -> None:
    entries = StoredAccount(store, "people").entries()
    store.put(f"{private_folder(ABANDONED)}/fragments/00000.parquet", b"rows")
    found = give_up(store, None, ABANDONED)
    assert found.was_over
    assert store.keys(private_folder(ABANDONED)) == []
    assert StoredAccount(store, "people").entries() == entries


@pytest.mark.parametrize("run", ["20310101-000000-00000000", "..", "../..", "a/b", "", "ü"])
def test_a_run_that_is_none_cannot_be_given_up(store: Store, run: str) -> None:
    before = store.keys()
    with pytest.raises(RunError):
        give_up(store, None, run)
    assert store.keys() == before


def test_a_run_with_answers_that_no_account_knows_keeps_what_speaks_of_it(store: Store) -> None:
    store.delete("accounts")
    before = store.keys()
    with pytest.raises(AccountError, match="removed or set back"):
        give_up(store, None, OPEN)
    assert store.keys() == before


def test_a_run_whose_table_may_be_anywhere_is_given_up_and_that_is_told(release: Published, store: Store) -> None:
    store.delete(private_folder(OPEN))  # as if it were elsewhere
    Path(store.url(f"runs/{OPEN}/locations.json")).unlink()
    ended = ppsyn("abandon", OPEN, "--yes", "--store", store.location.url)
    assert ended.exit_code == Exit.STORE
    assert "is abandoned" in ended.stdout
    assert "Give the release file" in ended.stderr
    assert not read_statement(store, "people").state.budgets[OPEN].is_open


@pytest.fixture
def open_run(three: dict[str, Location], tmp_path: Path) -> tuple[str, Path]:
    """A run in three buckets with three keys that has copied its table, and its release file."""
    people().to_parquet(tmp_path / "table.parquet", index=False)
    stores = {name: location.model_dump(mode="json") for name, location in three.items()}
    config = config_of(tmp_path / "table.parquet", three["root"], {"stores": stores})
    run = begin(config)
    run.ask()
    run.absorb()
    file = tmp_path / "release.yaml"
    document = json.loads(config.model_dump_json(by_alias=True))
    file.write_text(json.dumps({**document, "algorithm": {}, "runtime": {}}), encoding="utf-8")
    assert open_store(three["private"]).keys(private_folder(RUN))
    return RUN, file


def at(location: Location) -> str:
    """A location as the command line names it."""
    return f"{location.url}?endpoint={location.endpoint}&credentials={location.credentials}"


@pytest.mark.parametrize("told", ["file", "places", "note"])
def test_abandon_clears_three_buckets_with_three_keys(
    open_run: tuple[str, Path], three: dict[str, Location], told: str
) -> None:
    run, file = open_run
    open_store(three["releases"]).put(f"{staging_folder(run)}/token/synthetic.parquet", b"half")
    locations = {
        "file": [file],
        "places": ["--store", at(three["root"]), "--private", at(three["private"])],
        "note": ["--store", at(three["root"])],
    }[told]
    ended = ppsyn("abandon", run, "--yes", *locations)
    assert (ended.exit_code, ended.stderr) == (0, ""), ended.output
    assert open_store(three["private"]).keys() == []
    assert (told == "places") == open_store(three["releases"]).holds(staging_folder(run))  # which it was not told of
    assert not StoredAccount(open_store(three["root"]), "people").state.budgets[run].is_open


def test_abandon_tells_what_it_could_not_remove_and_the_same_command_finishes(
    open_run: tuple[str, Path], three: dict[str, Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = open_run
    command = ["abandon", run, "--yes", "--store", at(three["root"])]
    with monkeypatch.context() as patch:
        for part in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
            patch.setenv(f"PRIVATE_{part}", os.environ[f"ROOT_{part}"])  # one key for all, which opens not all
        ended = ppsyn(*command)
    assert ended.exit_code == Exit.STORE
    assert "is abandoned" in ended.stdout
    assert f"{three['private'].url}/{private_folder(run)}" in ended.stderr
    assert open_store(three["private"]).keys()
    ended = ppsyn(*command)
    assert (ended.exit_code, open_store(three["private"]).keys()) == (0, [])
    assert "was abandoned before" in ended.stdout


# Orphans


def aged(store: Store, folder: str, days: float) -> None:
    """As if nobody had written there for so long."""
    top, then = Path(store.url(folder)), time.time() - days * 86_400
    for path in (*top.rglob("*"), top):
        os.utime(path, (then, then))


def write_file(store: Store, folder: Path) -> Path:
    config = config_of(folder / "table.parquet", store.location)
    document = json.loads(config.model_dump_json(by_alias=True))
    file = folder / "release.yaml"
    file.write_text(json.dumps({**document, "algorithm": {}, "runtime": {}}), encoding="utf-8")
    return file


def test_clean_removes_what_dead_runs_left_and_nothing_else(store: Store, tmp_path: Path) -> None:
    kept = set(store.keys())
    dead = [f"{private_folder(RUN)}/a", f"{private_folder(ABANDONED)}/b", f"{staging_folder(RUN)}/t/c"]
    unknown = [f"{private_folder('20200101-000000-00000000')}/d", f"{staging_folder('20200101-000000-00000001')}/t/e"]
    young = [f"{private_folder('20200101-000000-00000002')}/f", f"{staging_folder(OPEN)}/t/g"]
    for key in (*dead, *unknown, *young):
        store.put(key, b"x")
    for key in unknown:
        aged(store, key.rsplit("/", 1)[0], 2)
        aged(store, key.split("/private")[0].rsplit("/t/", 1)[0], 2)
    file = write_file(store, tmp_path)
    assert CliRunner().invoke(main, ["clean", str(file)], input="n\n").exit_code == Exit.INTERRUPTED
    assert set(store.keys()) == kept.union(dead, unknown, young)
    ended = ppsyn("clean", file, "--yes", "--json")
    assert ended.exit_code == 0, ended.output
    told = json.loads(ended.stdout)
    assert len(told["removed"]) == len((*dead, *unknown))
    assert told["left"] == []
    assert set(store.keys()) == kept.union(young)
    again = ppsyn("clean", file, "--yes")
    assert (again.exit_code, again.stdout) == (0, "Nothing is left behind.\n")


def test_clean_finds_orphans_in_three_buckets_and_tells_which_it_cannot_see(
    open_run: tuple[str, Path], three: dict[str, Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, file = open_run
    assert ppsyn("clean", file, "--yes").stdout == "Nothing is left behind.\n"  # the run is open
    StoredAccount(open_store(three["root"]), "people").close(run, None)  # and nothing was removed
    with monkeypatch.context() as patch:
        patch.setenv("PRIVATE_SECRET_ACCESS_KEY", "wrong")
        blind = ppsyn("clean", file, "--yes")
    assert blind.exit_code == Exit.STORE
    assert three["private"].url in blind.stderr
    ended = ppsyn("clean", file, "--yes")
    assert (ended.exit_code, open_store(three["private"]).keys()) == (0, [])
    assert "abandoned" in ended.stdout


def test_clean_stops_where_an_account_is_damaged(store: Store, tmp_path: Path) -> None:
    store.put(f"{private_folder(RUN)}/a", b"x")
    first = next(key for key in store.keys("accounts/people"))
    Path(store.url(first)).write_bytes(b"{}")
    before = set(store.keys())
    assert ppsyn("clean", write_file(store, tmp_path), "--yes").exit_code == Exit.BUDGET
    assert set(store.keys()) == before


def test_a_run_that_is_killed_leaves_nothing_that_clean_does_not_find(prefect_api: str, tmp_path: Path) -> None:
    stage = Stage(starter_for(prefect_api), tmp_path, Location(url=str(tmp_path / "out")))
    file = stage.write()
    run = run_of(stage.start("release", str(file), point="artifacts").wait())
    store = open_store(stage.root)
    StoredAccount(store, "club").close(run, None)
    assert store.holds(staging_folder(run))
    assert ppsyn("clean", file, "--yes").exit_code == 0
    assert not store.holds(staging_folder(run))
    assert not store.holds(private_folder(run))


# Places of their own, and latest


def test_an_audit_tells_access_from_tampering(open_run: tuple[str, Path], three: dict[str, Location]) -> None:
    address = f"{three['releases'].url}/releases/people/{RUN}"
    for more in (["--credentials", "ROOT"], ["--credentials", "NOBODYS"]):
        ended = ppsyn("audit", address, "--endpoint", three["releases"].endpoint, *more)
        assert (ended.exit_code, "WRONG" in ended.stdout) == (Exit.STORE, False), ended.output
    nothing = ppsyn("audit", f"{address}?endpoint={three['releases'].endpoint}&credentials=RELEASES")
    assert nothing.exit_code == Exit.AUDIT  # it can be seen, and it is not there


def test_a_store_that_fails_in_the_middle_of_an_audit_is_no_finding(
    release: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = Store.get

    def failing(store: Store, key: str, most: int = ARRAYS_BYTES) -> bytes:
        if key == "ledger.json":
            raise StoreError("Cannot read it: AccessDenied")
        return get(store, key, most)

    monkeypatch.setattr(Store, "get", failing)
    ended = ppsyn("audit", release.folder)
    assert (ended.exit_code, "WRONG" in ended.stdout) == (Exit.STORE, False)
    assert "AccessDenied" in ended.stderr


def test_the_latest_release_has_an_address(release: Published) -> None:
    latest = release.folder.parent / "latest"
    assert ppsyn("audit", latest).stdout == ppsyn("audit", release.folder).stdout
    missing = ppsyn("audit", release.folder / "latest")
    assert missing.exit_code == Exit.MISTAKE
    assert "latest.json" in missing.stderr
