"""Claim C9: an account in a store is never passed, never forgets and is never shared."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from privacy.instruments import Watched, watch_draws
from privacy.neighbours import encoded
from support.accounts import (
    DATASET,
    DIGEST,
    GRAIN,
    AccountMachine,
    LyingStore,
    OverwritingStore,
    RacedStore,
    ToldStore,
    Writer,
    charge_key,
    contents,
    cost,
    join,
    key_of,
    kill,
    new_memory,
    open_account,
    place_of,
    reopened,
    replay,
    spend_and_reserve,
    spend_until_taken,
    start,
    wait_until,
)

from ppsyn.arrays import Ints
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import AccountError, CapExceededError, RunTakenError, StoreError
from ppsyn.privacy.account import RunAccount, StoredAccount
from ppsyn.privacy.account_state import AccountState, RunBudget
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.partition import finest
from ppsyn.privacy.requests import Candidate, MeasureRequest, Request, SelectRequest
from ppsyn.runs.account_check import check_known
from ppsyn.schemas.account import CapChange, Charge, Close, Entry, Reservation, Spent, from_bytes, to_bytes
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store

COUNTER = TableCounter(encoded(Domain((Attribute("a0", 2),)), [(0,), (1,), (1,)]))
MEASURE = MeasureRequest(("a0",), finest(2), Fraction(1, 3))
SELECT = SelectRequest((Candidate(("a0",), finest(2), np.zeros(2, np.int64), 0),), Fraction(1, 3))

both_kinds = pytest.mark.parametrize("request_made", [MEASURE, SELECT], ids=["measure", "select"])


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(place_of(request, tmp_path))


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.slow)])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A place that processes can share."""
    return place_of(request, tmp_path)


def entries_in(location: Location) -> list[bytes]:
    return StoredAccount(open_store(location), DATASET).entries()


# Any sequence of writes, by any number of handles, some of which have not looked for long


class HandlesMachine(AccountMachine):
    are_apart = True

    def open(self, cap: Fraction) -> None:
        self.store = open_store(new_memory())
        self.handles = [open_account(self.store, cap) for _ in range(3)]
        self.turn = 0

    def seen(self) -> AccountState:
        return StoredAccount(self.store, DATASET).state

    def budgets(self) -> list[RunBudget]:
        return StoredAccount(self.store, DATASET).budgets()

    @rule(turn=st.integers(0, 2))
    def take_turns(self, turn: int) -> None:
        self.turn = turn

    @rule(turn=st.integers(0, 2))
    def look(self, turn: int) -> None:
        self.check(self.handles[turn].state, self.handles[turn].budgets())

    def attempt(self, entry: Entry, refusal: type[Exception] | None) -> None:
        before = contents(self.store)
        if refusal is not None:
            with pytest.raises(refusal) as caught:
                write(self.handles[self.turn], entry)
            assert caught.type is refusal
            assert contents(self.store) == before
            return
        write(self.handles[self.turn], entry)
        after, written = contents(self.store), {key_of(entry.number)}
        if isinstance(entry, Charge):
            written = {charge_key(entry.run, entry.step)}
        if isinstance(entry, Close):
            written |= {charge_key(entry.run, len(self.rules.shares[entry.run].spends))}
        assert after.keys() - before.keys() == written
        assert {key: after[key] for key in before} == before

    def teardown(self) -> None:
        if hasattr(self, "store"):
            assert replay(self.store) == self.rules


def write(account: StoredAccount, entry: Entry) -> None:
    match entry:
        case Reservation():
            account.reserve(entry.run, entry.rho, entry.inputs)
        case Charge():
            account.charge(entry.run, entry.step, cost(entry.rho))
        case Close():
            account.close(entry.run, entry.manifest)
        case CapChange():
            account.set_cap(entry.cap)
        case _:
            raise AssertionError


def test_c9_no_sequence_of_writes_by_any_handle_passes_the_cap_or_changes_what_was_written() -> None:
    quickly = settings(deadline=None, max_examples=40, stateful_step_count=25)
    run_state_machine_as_test(HandlesMachine, settings=quickly)


def overtaken(kind: type[RacedStore], *rivals: Callable[[StoredAccount], None]) -> tuple[StoredAccount, Store]:
    """An account in which `r` holds a half, whose next writes are overtaken by other writers, one each."""
    store = open_store(new_memory())
    open_account(store).reserve("r", Fraction(1, 2), DIGEST)
    raced = reopened(kind, store)
    raced.rivals = [partial(rival, StoredAccount(store, DATASET)) for rival in rivals]
    return StoredAccount(raced, DATASET), store


@given(count=st.integers(1, 5))
@settings(deadline=None, max_examples=5)
def test_c9_a_writer_that_others_overtake_takes_a_number_after_theirs(count: int) -> None:
    rivals = [lambda account, run=f"s{number}": account.reserve(run, GRAIN, DIGEST) for number in range(count)]
    account, store = overtaken(RacedStore, *rivals)
    account.reserve("t", GRAIN, DIGEST)
    assert list(replay(store).shares) == ["r", *(f"s{number}" for number in range(count)), "t"]


def test_c9_a_reservation_that_was_overtaken_and_no_longer_fits_is_refused() -> None:
    account, store = overtaken(RacedStore, lambda rival: rival.reserve("s", Fraction(1, 3), DIGEST))
    with pytest.raises(CapExceededError) as caught:
        account.reserve("t", Fraction(1, 3), DIGEST)
    assert (caught.value.requested, caught.value.left) == (Fraction(1, 3), Fraction(1, 6))
    assert list(replay(store).shares) == ["r", "s"]


def test_c9_a_charge_that_was_overtaken_by_one_of_the_same_step_is_refused() -> None:
    account, store = overtaken(RacedStore, lambda rival: rival.charge("r", 0, cost(GRAIN)))
    with pytest.raises(RunTakenError):
        account.charge("r", 0, cost(GRAIN))
    assert replay(store).spent == GRAIN


def test_c9_a_charge_that_was_overtaken_by_the_close_of_its_run_is_refused() -> None:
    account, store = overtaken(RacedStore, lambda rival: rival.close("r", None))
    with pytest.raises(AccountError):
        account.charge("r", 0, cost(GRAIN))
    assert replay(store).spent == 0


def test_c9_a_store_that_overwrites_would_lose_an_entry_and_the_tests_would_tell() -> None:
    account, store = overtaken(OverwritingStore, lambda rival: rival.reserve("s", GRAIN, DIGEST))
    account.reserve("t", GRAIN, DIGEST)
    assert list(replay(store).shares) == ["r", "t"]


def test_c9_a_store_that_overwrites_would_lose_a_charge_and_the_tests_would_tell() -> None:
    account, store = overtaken(OverwritingStore, lambda rival: rival.charge("r", 0, cost(2 * GRAIN)))
    account.charge("r", 0, cost(GRAIN))
    assert replay(store).spent == GRAIN


# A run that is closed was sealed before


def test_c9_a_charge_that_comes_between_the_reading_and_the_seal_is_counted() -> None:
    account, store = overtaken(RacedStore, lambda rival: rival.charge("r", 0, cost(GRAIN)))
    account.close("r", None)
    assert (replay(store).spent, account.state.committed) == (GRAIN, GRAIN)


@pytest.mark.parametrize("lie", ["raises", "down"])
@pytest.mark.parametrize("written", [0, 1])
def test_c9_a_close_that_breaks_off_anywhere_keeps_all_that_is_reserved_and_lets_nothing_be_charged_after_its_seal(
    lie: str, written: int
) -> None:
    store = open_store(new_memory())
    open_account(store).reserve("r", Fraction(1, 2), DIGEST)
    slow = RunAccount(StoredAccount(store, DATASET), "r")
    slow.charge(cost(GRAIN))
    lying = reopened(LyingStore, store)
    lying.lies = ("",) * written + (lie,)
    with pytest.raises(StoreError):
        StoredAccount(lying, DATASET).close("r", None)
    is_sealed, is_closed = bool(written) or lie == "raises", bool(written) and lie == "raises"
    assert StoredAccount(store, DATASET).state.committed == (GRAIN if is_closed else Fraction(1, 2))
    if is_sealed:
        with pytest.raises(AccountError, match="closed"):
            slow.charge(cost(GRAIN))
    if not is_closed:
        StoredAccount(store, DATASET).close("r", None)
    assert (replay(store).committed, replay(store).spent) == (GRAIN, GRAIN)


def test_c9_of_two_who_close_a_run_at_once_one_does_and_both_count_the_same() -> None:
    account, store = overtaken(RacedStore, lambda rival: rival.close("r", None))
    with pytest.raises(AccountError, match="closed"):
        account.close("r", DIGEST)
    assert replay(store).committed == 0
    assert StoredAccount(store, DATASET).state.budgets["r"].manifest is None


def test_c9_an_account_is_not_used_for_another_unit() -> None:
    store = open_store(new_memory())
    StoredAccount(store, DATASET).open(Fraction(1), None, "a row")
    for use in (StoredAccount.check_compatible, lambda account, cap, unit: account.open(cap, None, unit)):
        with pytest.raises(AccountError, match="their costs cannot be added"):
            use(StoredAccount(store, DATASET), Fraction(1), "the person in 'who'")
    assert len(StoredAccount(store, DATASET).entries()) == 1


def test_c9_a_charge_that_was_rewritten_is_found_by_the_one_after_it() -> None:
    store = open_store(new_memory())
    account = open_account(store)
    account.reserve("r", Fraction(1, 2), DIGEST)
    for step in range(3):
        account.charge("r", step, cost(GRAIN))
    key = f"accounts/{DATASET}/charges/r/000001.json"
    charge = from_bytes(store.get(key))
    store.put(key, to_bytes(charge.model_copy(update={"rho": GRAIN / 2})))
    with pytest.raises(AccountError, match="damaged at entry 2 of run r"):
        StoredAccount(store, DATASET).chain("r")


@pytest.mark.parametrize("told", [Fraction(51, 100), Fraction(1)])
def test_c9_a_close_that_tells_more_than_was_reserved_is_refused(told: Fraction) -> None:
    account = open_account(open_store(new_memory()))
    account.reserve("r", Fraction(1, 2), DIGEST)
    spent = Spent(rho=told, charges=1, seal=DIGEST)
    at = datetime(2031, 2, 3, tzinfo=UTC)
    close = Close(
        number=2, previous=account.state.head, nonce="0" * 32, run="r", manifest=None, at=at, spent=spent
    )  # fmt: skip
    with pytest.raises(AccountError, match="no more than it reserved"):
        account.state.check(close)


def test_c9_an_account_that_does_not_know_what_was_charged_is_refused_before_anything_is_spent(
    tmp_path: Path,
) -> None:
    store = open_store(Location(url=str(tmp_path)))
    account = open_account(store)
    account.reserve("r", Fraction(1, 2), DIGEST)
    account.charge("r", 0, cost(GRAIN))
    check_known(StoredAccount(store, DATASET), store, store)
    (tmp_path / key_of(1)).unlink()  # set back to where the run reserved nothing
    with pytest.raises(AccountError, match="does not know 1 of the runs beside it"):
        check_known(StoredAccount(store, DATASET), store, store)


# Runs are not shared


@given(turns=st.lists(st.integers(0, 3), min_size=1, max_size=12))
@settings(deadline=None, max_examples=40)
def test_c9_of_all_who_go_on_with_a_run_one_charges_each_step_and_who_was_late_is_stopped(turns: list[int]) -> None:
    store = open_store(new_memory())
    open_account(store).reserve("r", Fraction(1), DIGEST)
    accounts = [RunAccount(StoredAccount(store, DATASET), "r") for _ in range(4)]
    for turn in turns:
        if turn == turns[0]:
            accounts[turn].charge(cost(GRAIN))
        else:
            with pytest.raises(RunTakenError):
                accounts[turn].charge(cost(GRAIN))
    assert replay(store).shares["r"].spends == [GRAIN] * turns.count(turns[0])


# The charge comes before the noise


def guarded(store: Store, told: Callable[[str], None] | None = None) -> TableCurator:
    """A curator whose run holds enough, on a store that tells of what is created from here on."""
    open_account(store).reserve("r", Fraction(1), DIGEST)
    if told is not None:
        store = reopened(ToldStore, store)
        store.told = told
    return TableCurator(COUNTER, RunAccount(StoredAccount(store, DATASET), "r"))


@both_kinds
def test_c9_the_charge_is_in_the_store_before_the_draw(
    store: Store, request_made: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch_draws(monkeypatch)
    guarded(store, watched.events.append).answer(request_made)
    assert watched.events == [charge_key("r", 0), "draw"]


@both_kinds
def test_c9_the_store_holds_the_charge_of_this_request_at_the_moment_of_the_draw(
    store: Store, request_made: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Entry] = []

    def look(count: int) -> Ints:
        found.append(from_bytes(open_store(store.location).get(charge_key("r", 0))))
        return np.zeros(count, np.int64)

    watch_draws(monkeypatch, Watched(counts=look, choice=lambda count: int(look(count)[0])))
    guarded(store).answer(request_made)
    (entry,) = found
    assert isinstance(entry, Charge)
    assert (entry.run, entry.step, entry.rho, entry.request) == ("r", 0, request_made.rho, request_made.digest())


@both_kinds
@pytest.mark.parametrize(("lie", "charges"), [("down", 0), ("raises", 1)])
def test_c9_a_charge_that_the_store_does_not_confirm_is_never_drawn_for(
    request_made: Request, lie: str, charges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch_draws(monkeypatch)
    store = reopened(LyingStore, open_store(new_memory()))
    curator = guarded(store)
    store.lies = (lie,)
    with pytest.raises(StoreError):
        curator.answer(request_made)
    assert watched.events == []
    assert replay(store).spent == charges * request_made.rho


@both_kinds
def test_c9_a_charge_whose_answer_was_lost_is_drawn_for_once_and_charged_once(
    store: Store, request_made: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch_draws(monkeypatch)
    lying = reopened(LyingStore, store)
    curator = guarded(lying)
    lying.lies = ("exists",)
    curator.answer(request_made)
    assert watched.events == ["draw"]
    assert replay(store).spent == request_made.rho


@both_kinds
def test_c9_who_finds_the_run_taken_does_not_draw(
    store: Store, request_made: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch_draws(monkeypatch)
    curator = guarded(store)
    RunAccount(StoredAccount(store, DATASET), "r").charge(cost(GRAIN))
    with pytest.raises(RunTakenError):
        curator.answer(request_made)
    assert watched.events == []


# Many processes

RUNS = [f"run-{number}" for number in range(8)]
STEPS = 25


def prepared(location: Location, cap: Fraction, each: Fraction) -> None:
    account = open_account(open_store(location), cap)
    for run in RUNS:
        account.reserve(run, each, DIGEST)


def test_c9_many_processes_lose_and_share_no_entry_and_together_reserve_exactly_what_fits(
    shared: Location, tmp_path: Path
) -> None:
    each, asked = Fraction(1, 10), Fraction(1, 15)  # two tenths are left: three of the forty holds that are tried fit
    prepared(shared, Fraction(1), each)
    writer, spends = Writer.of(shared), [each / STEPS] * STEPS
    jobs = [start(spend_and_reserve, writer, run, spends, [asked] * 5, tmp_path / run) for run in RUNS]
    assert join(jobs) == [0] * len(RUNS)
    rules = replay(open_store(shared))
    assert sum(int((tmp_path / run).read_text(encoding="utf-8")) for run in RUNS) == 3
    assert len(entries_in(shared)) == 1 + len(RUNS) + 3
    assert {run: len(rules.shares[run].spends) for run in RUNS} == dict.fromkeys(RUNS, STEPS)
    assert (rules.committed, rules.left, rules.spent) == (1, 0, len(RUNS) * each)


def test_c9_processes_killed_at_any_moment_leave_a_sound_account_with_every_charge_they_reported(
    shared: Location, tmp_path: Path
) -> None:
    prepared(shared, Fraction(1), Fraction(1, 10))
    logs = {run: tmp_path / run for run in RUNS[:4]}
    job = partial(start, spend_until_taken, Writer.of(shared))  # a write of a killed process may arrive after it
    running = {run: job(run, GRAIN, 10_000, log) for run, log in logs.items()}
    wait_until(lambda: all(log.exists() and log.stat().st_size for log in logs.values()))
    chance, killed = secrets.SystemRandom(), 12
    for _ in range(killed):
        time.sleep(chance.uniform(0.05, 0.5))
        run = chance.choice(list(logs))
        assert kill(running[run]) in (-9, 0)
        running[run] = job(run, GRAIN, 10_000, logs[run])
    assert {kill(process) for process in running.values()} <= {-9, 0}
    shares = replay(open_store(shared)).shares
    reported = {run: [int(step) for step in log.read_text(encoding="utf-8").split()] for run, log in logs.items()}
    for run, steps in reported.items():
        assert steps == sorted(set(steps))
        assert set(steps) <= set(range(len(shares[run].spends)))
    lost = sum(len(shares[run].spends) - len(steps) for run, steps in reported.items())
    assert 0 <= lost <= killed + 4


def test_c9_of_processes_that_go_on_with_one_run_each_step_is_charged_by_one(shared: Location, tmp_path: Path) -> None:
    prepared(shared, Fraction(1), Fraction(1, 10))
    logs = [tmp_path / str(number) for number in range(4)]
    jobs = [start(spend_until_taken, Writer.of(shared), RUNS[0], GRAIN, STEPS, log) for log in logs]
    assert join(jobs) == [0] * 4
    told = Counter(step for log in logs for step in log.read_text(encoding="utf-8").split())
    assert set(told.values()) == {1}
    assert len(replay(open_store(shared)).shares[RUNS[0]].spends) == len(told) >= STEPS


# Several machines


def test_c9_machines_that_name_the_same_bucket_differently_keep_one_account(s3: Location, tmp_path: Path) -> None:
    assert s3.endpoint is not None
    other = s3.model_copy(update={"endpoint": s3.endpoint.replace("127.0.0.1", "localhost"), "url": f"{s3.url}/"})
    assert other.endpoint != s3.endpoint
    check_two_machines(s3, other, tmp_path)


def test_c9_paths_to_the_same_folder_keep_one_account(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store")
    check_two_machines(Location(url=str(tmp_path / "store")), Location(url=f"{tmp_path}/link/../link/"), tmp_path)


def check_two_machines(one: Location, two: Location, folder: Path) -> None:
    """Two processes on each, and twelve tries to hold what there is room for once."""
    prepared(one, Fraction(1), Fraction(1, 10))
    rho, asked = Fraction(1, 200), Fraction(1, 7)
    writers = {run: Writer.of((one, two)[number % 2]) for number, run in enumerate(RUNS[:4])}
    jobs = [
        start(spend_and_reserve, writer, run, [rho] * 12, [asked] * 3, folder / run) for run, writer in writers.items()
    ]
    assert join(jobs) == [0] * 4
    assert sum(int((folder / run).read_text(encoding="utf-8")) for run in writers) == 1
    entries = entries_in(one)
    assert entries == entries_in(two)
    assert len(entries) == 1 + len(RUNS) + 1
    assert replay(open_store(one)).spent == replay(open_store(two)).spent == 4 * 12 * rho
