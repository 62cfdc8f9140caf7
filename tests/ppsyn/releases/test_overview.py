"""What an overview finds in a store: all that there is, however much of it is in trouble."""

import os
import shutil
import time
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from support.published import ABANDONED, OPEN, RUN, Published, copied, shared_release

from ppsyn.errors import AccountError, StoreError
from ppsyn.privacy.account import StoredAccount
from ppsyn.releases.overview import Look
from ppsyn.reports.overview import Dataset, Planned
from ppsyn.runs.heartbeat import beating
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store

NOW = datetime.now(UTC)


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def store(release: Published, tmp_path: Path) -> Store:
    """A copy of the store, beside it another dataset, to be changed."""
    folder = copied(Path(release.ref.root.url), tmp_path / "store")
    root = open_store(Location(url=str(folder)))
    StoredAccount(root, "other").open(Fraction(1), 1e-9, "a row")
    return root


def seen(store: Store) -> dict[str, Dataset]:
    return {one.name: one for one in Look(store).overview(NOW, (), ()).datasets}


def test_every_run_is_there_with_its_state_and_what_the_account_counts(store: Store) -> None:
    found, state = seen(store)["people"], StoredAccount(store, "people").state
    assert {one.run: one.state for one in found.runs} == {
        ABANDONED: "abandoned", RUN: "published", OPEN: "waiting"
    }  # fmt: skip
    assert sum(one.committed for one in found.runs) == state.committed
    assert (found.cap, found.left) == (state.cap, state.left)


def test_a_run_whose_heart_beats_is_at_work(store: Store) -> None:
    with beating(store, OPEN):
        give_up = time.monotonic() + 20
        while not store.has(f"runs/{OPEN}/pulse/last") and time.monotonic() < give_up:
            time.sleep(0.05)
        assert seen(store)["people"].runs[-1].state == "working"
    assert seen(store)["people"].runs[-1].state == "waiting"


def test_a_heart_that_stopped_long_ago_does_not_beat(store: Store) -> None:
    store.put(f"runs/{OPEN}/pulse/last", b"token 7\n")
    for path in Path(store.url(f"runs/{OPEN}")).joinpath("pulse").rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    os.utime(Path(store.url(f"runs/{OPEN}/pulse")), (1_000_000_000, 1_000_000_000))
    assert seen(store)["people"].runs[-1].state == "waiting"


def test_a_damaged_dataset_does_not_hide_the_others(store: Store) -> None:
    Path(store.url("accounts/people/000001.json")).write_bytes(b"{}")
    look = Look(store)
    found = look.overview(NOW, (), ())
    assert [one.name for one in found.datasets] == ["other"]
    assert [one.dataset for one in found.troubles] == ["people"]
    assert "damaged" in found.troubles[0].problem
    assert [type(error) for error in look.failures] == [AccountError]


def test_an_account_that_was_removed_is_told_of_by_its_releases(store: Store) -> None:
    shutil.rmtree(store.url("accounts/people"))
    found = Look(store).overview(NOW, (), ())
    assert "removed or set back" in found.troubles[0].problem


def test_a_dataset_that_cannot_be_read_does_not_hide_the_others(store: Store) -> None:
    entry = Path(store.url("accounts/other/000000.json"))
    entry.unlink()
    os.mkfifo(entry)
    look = Look(store)
    found = look.overview(NOW, (), ())
    assert [one.name for one in found.datasets] == ["people"]
    assert [type(error) for error in look.failures] == [StoreError]


def test_releases_are_audited_where_they_are(store: Store) -> None:
    asked = list[str]()

    def audit(folder: Store, account: StoredAccount) -> list[str]:
        asked.append(folder.location.url)
        return ["rows: not these."]

    found = Look(store, audit).overview(NOW, (), ())
    assert asked == [store.url(f"releases/people/{RUN}")]
    assert next(one.audit for one in found.datasets[-1].runs if one.audit).problems == ("rows: not these.",)
    assert found.is_audited


def test_an_audit_that_cannot_read_says_nothing_and_is_told(store: Store) -> None:
    def audit(folder: Store, account: StoredAccount) -> list[str]:
        raise StoreError("Cannot read it.")

    look = Look(store, audit)
    found = look.overview(NOW, (), ())
    assert all(one.audit is None for one in found.datasets[-1].runs)
    assert [one.problem for one in found.troubles] == ["Cannot read it."]
    assert len(look.failures) == 1


def test_plans_go_to_their_dataset_and_those_of_none_are_kept(store: Store) -> None:
    plans = [
        Planned("people", "x", None, Fraction(1, 9)),
        Planned("people", "y", NOW, None),
        Planned("no", "z", None, None),
    ]
    found = Look(store).overview(NOW, plans, ())
    assert [one.source for one in found.datasets[-1].planned] == ["y", "x"]
    assert [one.source for one in found.unassigned] == ["z"]
