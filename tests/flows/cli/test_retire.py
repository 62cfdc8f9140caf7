"""Releases that are removed for good: what goes, what stays on record, and that nothing of the budget comes back."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.interrupted import killed_at
from support.overviews import NOW
from support.published import (
    ABANDONED,
    OPEN,
    RUN,
    SCHEMA,
    Published,
    begin,
    config_of,
    copied,
    finish,
    people,
    shared_release,
    stage,
)

from ppsyn.errors import AccountError, ConfigError, RunError
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.privacy.account import StoredAccount
from ppsyn.releases.audit import audit
from ppsyn.releases.layout import LATEST, RETIRED, release_folder
from ppsyn.releases.overview import Look
from ppsyn.releases.reader import latest_in, open_release, read_retirement
from ppsyn.releases.writer import publish
from ppsyn.runs import preflight
from ppsyn.runs.account_check import check_known
from ppsyn.schemas.locations import Location
from ppsyn.schemas.run import RunRef
from ppsyn.storage import Store, open_store

SECOND = "20310204-040506-4e5f6071"
WHY = ("--by", "A. N. Other", "--reason", "Kept for five years.", "--yes")


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def store(release: Published, tmp_path: Path) -> Store:
    """A copy of the store, to be changed."""
    return open_store(Location(url=str(copied(Path(release.ref.root.url), tmp_path / "store"))))


def retire(store: Store, run: str = RUN, *more: str) -> Result:
    return CliRunner().invoke(main, ["retire", run, *WHY, "--store", store.location.url, *more])


def folder_of(store: Store, run: str = RUN) -> Store:
    return open_store(store.location.child(release_folder("people", run)))


def entries(store: Store) -> list[bytes]:
    account = StoredAccount(store, "people")
    return [*account.entries(), *account.chain(RUN).lines]


def files(store: Store) -> dict[str, bytes]:
    return {key: store.get(key) for key in store.keys("")}


def second_release(release: Published, store: Store, tmp_path: Path) -> Published:
    """A later release of the same dataset, into the same store."""
    people().to_parquet(tmp_path / "table.parquet", index=False)
    small = {"privacy": {"epsilon": 0.5, "delta": 1e-6}}
    config = config_of(tmp_path / "table.parquet", store.location, small)
    run = finish(begin(config, run=SECOND))
    stage(run)
    publish(run)
    return Published(run.ref, config)


def test_the_release_goes_and_what_it_has_cost_stays(store: Store) -> None:
    account, state = entries(store), StoredAccount(store, "people").state
    digest = folder_of(store).get("manifest.sha256").split()[0].decode()
    done = retire(store)
    assert done.exit_code == 0, done.output
    assert "Its budget stays spent: epsilon 2 at delta 1e-06 (rho 0.0881527)." in done.stdout
    assert folder_of(store).keys("") == [RETIRED]
    assert store.keys(f"runs/{RUN}/answers") == store.keys(f"runs/{RUN}/checkpoints") == []
    assert entries(store) == account
    assert StoredAccount(store, "people").state.left == state.left
    record = read_retirement(folder_of(store))
    assert record is not None
    assert (record.by, record.reason, record.manifest) == ("A. N. Other", "Kept for five years.", digest)
    assert {"synthetic.parquet", "manifest.json", "measurements.parquet"} <= record.files.keys()


def test_an_audit_says_that_it_was_retired_and_what_stays_spent(store: Store) -> None:
    retire(store)
    done = CliRunner().invoke(main, ["audit", folder_of(store).location.url, "--account", store.location.url])
    assert done.exit_code == 0, done.output
    assert "was retired on" in done.stdout
    assert "Its budget stays spent" in done.stdout
    assert done.stdout.count("ok") == 3


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"guarantee": {"rho": "1/100", "epsilon": None, "delta": None, "unit": "a row"}}, "another amount"),
        ({"manifest": "5e" * 32}, "another release"),
        ({"run": ABANDONED}, "another release"),
        ({"run": "20310203-040506-ffffffff"}, "set back"),
        ({"reason": 7}, "erasure record"),
    ],
)
def test_a_forged_erasure_record_is_found(store: Store, change: dict[str, object], found: str) -> None:
    retire(store)
    folder = folder_of(store)
    folder.put(RETIRED, json.dumps({**json.loads(folder.get(RETIRED)), **change}).encode())
    problems = [one.problem for one in audit(folder, StoredAccount(store, "people")) if one.problem]
    assert len(problems) == 1
    assert found in problems[0]


def test_a_file_that_came_back_is_found(store: Store) -> None:
    retire(store)
    folder_of(store).put("synthetic.parquet", b"rows")
    problems = [one.problem for one in audit(folder_of(store)) if one.problem]
    assert problems == ["synthetic.parquet is still there. Repeat `ppsyn retire`."]
    assert retire(store).exit_code == 0
    assert [one for one in audit(folder_of(store)) if one.problem] == []


def test_latest_moves_to_the_release_before_and_is_gone_with_the_last(
    release: Published, store: Store, tmp_path: Path
) -> None:
    second_release(release, store, tmp_path)
    releases = open_store(store.location.child("releases/people"))
    assert latest_in(releases).location.url.endswith(SECOND)
    assert json.loads(retire(store, SECOND, "--json").stdout)["latest"] == RUN
    assert latest_in(releases).location.url.endswith(RUN)
    assert [one for one in audit(latest_in(releases)) if one.problem] == []
    assert "none: no release of the dataset is left" in retire(store).stdout
    assert not releases.has(LATEST)


def test_the_first_erasure_record_stays_however_often_it_is_repeated(store: Store) -> None:
    retire(store)
    before = files(store)
    again = CliRunner().invoke(
        main, ["retire", RUN, "--by", "X", "--reason", "Y", "--yes", "--store", store.location.url]
    )
    assert again.exit_code == 0
    assert "by A. N. Other" in again.stdout
    assert files(store) == before


def test_a_retired_release_is_not_read_nor_made_again(release: Published, store: Store) -> None:
    retire(store)
    with pytest.raises(ConfigError, match="was retired on"):
        open_release(folder_of(store))
    config = release.config.model_copy(update={"stores": config_of(Path("x"), store.location).stores})
    ref = RunRef(run=RUN, dataset="people", root=store.location, private=store.location, releases=store.location)
    before = files(store)
    with pytest.raises(RunError, match="was retired; it cannot be made again"):
        preflight.begin(ref, config, SCHEMA)
    assert files(store) == before


def test_an_account_that_forgets_a_retired_release_is_refused(store: Store) -> None:
    retire(store)
    check_known(StoredAccount(store, "people"), store, store)
    store.delete("accounts/people")
    store.delete("runs")
    with pytest.raises(AccountError, match="removed or set back"):
        check_known(StoredAccount(store, "people"), store, store)


def test_an_overview_shows_it_as_retired_and_still_counts_it(store: Store) -> None:
    retire(store)
    (found,) = Look(store).overview(NOW, (), ()).datasets
    line = next(one for one in found.runs if one.run == RUN)
    assert (line.state, line.committed) == ("retired", Fraction(6352070631998929, 72057594037927936))
    assert found.releases == ()
    assert found.outlook is not None


@pytest.mark.parametrize(
    ("run", "code"),
    [(OPEN, Exit.RESUME), (ABANDONED, Exit.RESUME), ("20310203-040506-ffffffff", Exit.RESUME), ("../x", Exit.RESUME)],
)
def test_what_is_no_published_release_is_refused(store: Store, run: str, code: int) -> None:
    before = files(store)
    done = retire(store, run)
    assert (done.exit_code, "Traceback" in done.output) == (code, False)
    assert files(store) == before


@pytest.mark.parametrize("words", [("--by", " ", "--reason", "Y"), ("--by", "X", "--reason", "")])
def test_who_and_why_must_be_said(store: Store, words: tuple[str, ...]) -> None:
    before = files(store)
    done = CliRunner().invoke(main, ["retire", RUN, *words, "--yes", "--store", store.location.url])
    assert done.exit_code == Exit.MISTAKE
    assert files(store) == before


def test_without_a_yes_nothing_changes(store: Store) -> None:
    before = files(store)
    arguments = ["retire", RUN, "--by", "X", "--reason", "Y", "--store", store.location.url]
    assert CliRunner().invoke(main, arguments, input="n\n").exit_code == Exit.INTERRUPTED
    assert files(store) == before


def test_a_release_that_is_not_the_one_that_was_paid_for_is_left_alone(store: Store) -> None:
    folder = folder_of(store)
    manifest = folder.get("manifest.json") + b" "
    folder.put("manifest.json", manifest)
    assert retire(store).exit_code == Exit.MISTAKE
    assert folder.get("manifest.json") == manifest


def is_over(store: Store) -> bool:
    return folder_of(store).keys("") == [RETIRED] and not store.has("releases/people/latest.json")


@pytest.mark.slow
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_killed_anywhere_it_is_gone_on_with(store: Store, number: int, is_after: bool) -> None:
    account, url = entries(store), store.location.url
    assert killed_at(number, is_after=is_after, arguments=["retire", RUN, *WHY, "--store", url]) == -9
    check_known(StoredAccount(store, "people"), store, store)
    assert retire(store).exit_code == 0
    assert is_over(store)
    assert entries(store) == account
    assert [one for one in audit(folder_of(store), StoredAccount(store, "people")) if one.problem] == []


@pytest.mark.slow
def test_the_last_change_of_all_is_the_fifth(store: Store) -> None:
    """So that the test above kills at every step."""
    url = store.location.url
    assert killed_at(6, is_after=False, arguments=["retire", RUN, *WHY, "--store", url]) == 0
