"""Claim C9 across stores: an account that moves can be spent from in one store at most, whatever races or dies."""

import random
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from support.interrupted import killed_at
from support.policies import policy
from support.published import OPEN, RUN, Published, copied, shared_release
from support.signers import RIGHTS, Office

from ppsyn.errors import AccountError, PolicyError, PPSynError
from ppsyn.flows.cli.accounts import read_statement
from ppsyn.privacy.account import StoredAccount
from ppsyn.releases.audit import audit
from ppsyn.releases.retirement import Erasure, retire
from ppsyn.runs.account_check import check_known
from ppsyn.runs.cleanup import give_up
from ppsyn.runs.moving import move
from ppsyn.runs.record import private_folder
from ppsyn.schemas.account import Arrival, Departure, from_bytes, to_bytes
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store

CAP, PART = Fraction(1), Fraction(1, 10)
DIGEST = "5e" * 32


def place() -> Store:
    return open_store(Location(url=f"memory://{secrets.token_hex(8)}"))


def opened(store: Store) -> StoredAccount:
    account = StoredAccount(store, "people")
    account.open(CAP, 1e-9, "a row")
    return account


def reserves(store: Store, run: str) -> bool:
    """Whether the account here grants a run budget."""
    account = StoredAccount(store, "people")
    try:
        account.reserve(run, PART, DIGEST)
        account.close(run, None)
    except PPSynError:
        return False
    return True


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture
def store(release: Published, tmp_path: Path) -> Store:
    """A copy of the store, without an open run."""
    root = open_store(Location(url=str(copied(Path(release.ref.root.url), tmp_path / "store"))))
    give_up(root, None, OPEN)
    return root


@pytest.fixture
def target(tmp_path: Path) -> Store:
    return open_store(Location(url=str(tmp_path / "target")))


def usable(*stores: Store) -> list[bool]:
    return [reserves(store, f"probe-{secrets.token_hex(4)}") for store in stores]


def test_c9_an_account_goes_on_where_it_was_moved_to_and_nowhere_else(store: Store, target: Store) -> None:
    before = StoredAccount(store, "people").state
    move(store, target, "people")
    after = StoredAccount(target, "people").state
    assert (after.budgets, after.left, after.cap) == (before.budgets, before.left, before.cap)
    assert after.moved_to is None
    assert usable(store, target) == [False, True]
    with pytest.raises(AccountError, match=f"was moved to {target.location.url}. Go on there"):
        StoredAccount(store, "people").check_compatible(None, "a row")
    check_known(StoredAccount(target, "people"), target, target)
    folder = open_store(target.location.child(f"releases/people/{RUN}"))
    assert [one for one in audit(folder, StoredAccount(target, "people")) if one.problem] == []
    assert not [key for key in target.keys("") if private_folder(RUN) in key or key.startswith("staging/")]
    assert read_statement(store, "people").as_json()["moved_to"] == target.location.url


def test_c9_nothing_can_follow_a_departure(store: Store, target: Store) -> None:
    move(store, target, "people")
    before = {key: store.get(key) for key in store.keys("")}
    old = StoredAccount(store, "people")
    for change in (
        partial(old.set_cap, Fraction(9)),
        partial(old.reserve, "new", PART, DIGEST),
        partial(old.leave, "x"),
    ):
        with pytest.raises(AccountError, match="was moved to"):
            change()
    assert {key: store.get(key) for key in store.keys("")} == before


def test_c9_a_move_that_is_repeated_after_it_ended_changes_nothing(store: Store, target: Store) -> None:
    assert move(store, target, "people").copied > 20
    assert usable(target) == [True]
    retire(target, None, RUN, Erasure("A. N. Other", "old"))
    before = {key: target.get(key) for key in target.keys("")}
    assert move(store, target, "people").copied == 0
    assert {key: target.get(key) for key in target.keys("")} == before


def test_c9_no_account_leaves_while_a_run_is_open(target: Store) -> None:
    here = place()
    account = opened(here)
    account.reserve("running", PART, DIGEST)
    with pytest.raises(AccountError, match="Expected no open run of 'people', got running"):
        move(here, target, "people")
    assert account.state.moved_to is None
    account.close("running", None)
    move(here, target, "people")
    assert usable(here, target) == [False, True]


def test_c9_a_place_that_has_something_of_the_dataset_is_refused(store: Store, target: Store) -> None:
    for key in ("accounts/people/charges/x/000000.json", "releases/people/x/manifest.json", f"runs/{RUN}/config.json"):
        target.put(key, b"{}")
        with pytest.raises(AccountError, match="Expected nothing of 'people'"):
            move(store, target, "people")
        target.discard([key])
    assert StoredAccount(store, "people").state.moved_to is None


def test_c9_until_all_of_an_account_is_there_it_cannot_be_spent_from(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = place(), place()
    account = opened(here)
    for number in range(4):
        account.reserve(f"run-{number}", PART, DIGEST)
        account.close(f"run-{number}", None)
    write, seen = Store.create, list[bool]()

    def create(self: Store, key: str, data: bytes) -> bool:
        if self.location == there.location and key.startswith("accounts/"):
            monkeypatch.setattr(Store, "create", write)
            seen.append(any(usable(here, there)))
            monkeypatch.setattr(Store, "create", create)
        return write(self, key, data)

    monkeypatch.setattr(Store, "create", create)
    move(here, there, "people")
    monkeypatch.undo()
    assert len(seen) > 8
    assert not any(seen)
    assert usable(here, there) == [False, True]


def test_c9_moves_to_two_places_and_reservations_at_once_leave_one_place_to_go_on() -> None:
    rng = random.Random(7)
    for _ in range(15):
        here, left, right = place(), place(), place()
        opened(here)
        jobs: list[Callable[[], object]] = [
            *(partial(_try, partial(move, here, there, "people")) for there in (left, right, left)),
            *(partial(reserves, here, f"run-{number}") for number in range(5)),
        ]
        rng.shuffle(jobs)
        with ThreadPoolExecutor(len(jobs)) as pool:
            done = [future.result() for future in [pool.submit(job) for job in jobs]]
        granted = sum(one is True for one in done)
        assert sum(usable(here, left, right)) == 1
        whole = max((here, left, right), key=lambda store: len(store.keys("accounts")))
        budgets = StoredAccount(whole, "people").state.budgets
        assert sum(run.startswith("run-") for run in budgets) == granted


def _try(job: Callable[[], object]) -> None:
    try:
        job()
    except PPSynError:
        return


def test_c9_an_account_that_was_opened_meanwhile_where_it_goes_is_not_mixed_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, there = place(), place()
    opened(here)
    leave = StoredAccount.leave

    def overtaken(self: StoredAccount, to: str) -> None:
        leave(self, to)
        opened(there)

    monkeypatch.setattr(StoredAccount, "leave", overtaken)
    with pytest.raises(AccountError, match="There is another account of 'people'"):
        move(here, there, "people")
    assert StoredAccount(there, "people").state.count == 1
    there.delete("accounts")
    monkeypatch.undo()
    move(here, there, "people")
    assert usable(here, there) == [False, True]


def test_c9_a_departure_names_no_secret(store: Store, target: Store) -> None:
    move(store, target, "people")
    last = from_bytes(StoredAccount(store, "people").entries()[-1])
    assert isinstance(last, Departure)
    assert last.to == target.location.url


@pytest.mark.parametrize("who", [None, "ana"])
def test_c9_where_a_policy_names_people_an_account_leaves_with_the_signature_of_whoever_may_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str | None
) -> None:
    here, there, office = place(), place(), Office(tmp_path, monkeypatch)
    account = office.govern(here, policy(people=RIGHTS), "people")
    before = account.entries()
    with office.as_person(who), pytest.raises(PolicyError, match="signature of somebody who may change the policy"):
        move(here, there, "people")
    assert (account.entries(), there.keys("")) == (before, [])
    with office.as_person("dee"):
        account.leave(there.location.url)
    with office.as_person(who):
        move(here, there, "people")  # what is allowed, anybody may finish
    arrived = StoredAccount(there, "people")
    arrival = from_bytes(arrived.entries()[-1])
    assert isinstance(arrival, Arrival)
    assert arrival.departure == from_bytes(account.entries()[-1])
    assert arrived.state.keys == account.state.keys
    for forged in (
        arrival.departure.model_copy(update={"to": "elsewhere"}),
        arrival.departure.model_copy(update={"signed": None}),
        arrival.departure.model_copy(update={"nonce": "another"}),
    ):
        there.put(
            f"accounts/people/{arrival.number:06d}.json", to_bytes(arrival.model_copy(update={"departure": forged}))
        )
        with pytest.raises(AccountError, match=f"is damaged at entry {arrival.number}"):
            _ = StoredAccount(there, "people").state


@pytest.mark.slow
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("number", [1, 6, 7, 8, 9, 12])
def test_c9_killed_anywhere_the_same_command_ends_it(store: Store, target: Store, number: int, is_after: bool) -> None:
    command = ["move", "people", "--store", store.location.url, "--to", target.location.url]
    before = StoredAccount(store, "people").state.budgets
    assert killed_at(number, is_after=is_after, arguments=command) == -9
    assert sum(usable(store, target)) <= 1
    move(store, target, "people")
    assert usable(store, target) == [False, True]
    assert before.items() <= StoredAccount(target, "people").state.budgets.items()


def test_c9_an_account_moves_to_a_bucket_and_back_elsewhere(store: Store, s3: Location, tmp_path: Path) -> None:
    bucket, home = open_store(s3), open_store(Location(url=str(tmp_path / "home")))
    move(store, bucket, "people")
    assert usable(store, bucket) == [False, True]
    move(bucket, home, "people")
    assert usable(store, bucket, home) == [False, False, True]
    with pytest.raises(AccountError, match="Expected nothing of 'people'"):
        move(home, store, "people")
    assert usable(home) == [True]
