"""Claim C9: no reservation passes a limit of the account's policy, whatever the order, the races and the clocks."""

import json
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from support.accounts import (
    DATASET,
    DIGEST,
    GRAIN,
    UNIT,
    LyingStore,
    RacedStore,
    Writer,
    contents,
    cost,
    join,
    kill,
    new_memory,
    open_account,
    place_of,
    reopened,
    start,
    wait_until,
)
from support.policies import (
    MONTHLY,
    Clock,
    PolicyRules,
    has_room_under,
    monthly,
    policy,
    read_again,
    reserve_and_close,
    reserve_at_once,
)

from ppsyn.errors import AccountError, PolicyError, StoreError
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.account_state import AccountState
from ppsyn.privacy.policy import contradictions, limits, month_of
from ppsyn.schemas.account import PolicyChange, Reservation, from_bytes, to_bytes
from ppsyn.schemas.locations import Location
from ppsyn.schemas.policy import Policy
from ppsyn.storage import Store, open_store

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
PARTS = {"open": {"cap": Fraction(4), "allowance": Fraction(2, 3)}, "press": {"allowance": THIRD}}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch, datetime(2031, 1, 15, tzinfo=UTC))


@pytest.fixture
def store() -> Store:
    return open_store(new_memory())


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.slow)])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    return place_of(request, tmp_path)


def governed(store: Store, found: Policy = MONTHLY) -> StoredAccount:
    account = open_account(store, Fraction(10))
    account.set_policy(found)
    return account


def refused(store: Store, write: Callable[[], object], told: str | None, error: type[Exception] = PolicyError) -> None:
    before = contents(store)
    with pytest.raises(error, match=told):
        write()
    assert contents(store) == before


# Any order, by any handle, whatever the clock says

POLICIES = (
    policy(),
    monthly(),
    monthly(period="quarter", unused="carries over"),
    monthly(HALF, period="year"),
    monthly(unused="carries over", smallest=GRAIN, largest=Fraction(3, 2)),
    monthly(purposes=PARTS),
    monthly(unused="carries over", purposes=PARTS),
    policy(Fraction(3), purposes={"open": {"cap": Fraction(2)}, "press": {"cap": Fraction(1)}}),
)


class GovernedMachine(RuleBasedStateMachine):
    """Entries of every kind, by several handles, against the rules read a second time."""

    clock: Clock

    @initialize()
    def begin(self) -> None:
        self.clock.tell(2031, 1, 15)
        self.store = open_store(new_memory())
        self.handles = [open_account(self.store, Fraction(10)) for _ in range(2)]
        self.rules, self.count = PolicyRules(Fraction(10), "2031-01"), 0

    def written(self) -> None:
        entry = from_bytes(StoredAccount(self.store, DATASET).entries()[-1])
        self.rules.take(entry)

    @rule(days=st.sampled_from([0, 1, 17, 40, 100, 400, -20, -200]))
    def time_jumps(self, days: int) -> None:
        self.clock.at += timedelta(days=days)

    @rule(turn=st.integers(0, 1), found=st.sampled_from(POLICIES))
    def lay_down(self, turn: int, found: Policy) -> None:
        committed = sum((run.counted for run in self.rules.runs.values()), Fraction(0))
        if committed > found.cap:
            refused(self.store, lambda: self.handles[turn].set_policy(found), "at least rho", AccountError)
        else:
            self.handles[turn].set_policy(found)
            self.written()

    @rule(
        turn=st.integers(0, 1),
        purpose=st.sampled_from([None, "open", "press", "other"]),
        which=st.integers(0, 3),
        grain=st.sampled_from([Fraction(0), Fraction(0), GRAIN, -GRAIN]),
        factor=st.sampled_from([Fraction(1), HALF, THIRD]),
    )
    def reserve(self, turn: int, purpose: str | None, which: int, grain: Fraction, factor: Fraction) -> None:
        state = StoredAccount(self.store, DATASET).state
        now = state.month_at(self.clock.at)
        lefts = [state.left, *(limit.left for limit in state.limits(now) if limit.purpose in (None, purpose))]
        rho = lefts[which % len(lefts)] * factor + grain
        run, self.count = f"r{self.count}", self.count + 1
        reserve = partial(self.handles[turn].reserve, run, rho, DIGEST, purpose=purpose)
        if self.rules.fits(rho, purpose, max(self.rules.month, month_of(self.clock.at))):
            reserve()
            self.written()
        else:
            refused(self.store, reserve, None, AccountError)

    @rule(turn=st.integers(0, 1), factor=st.sampled_from([Fraction(0), HALF, Fraction(1)]))
    def spend_and_close(self, turn: int, factor: Fraction) -> None:
        account = self.handles[turn]
        found = [budget for budget in account.state.budgets.values() if budget.is_open]
        if found:
            if factor:
                account.charge(found[0].run, 0, cost(found[0].total * factor))
            account.close(found[0].run, None)
            self.written()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            rules = read_again(self.store)
            assert (rules.cap, rules.runs) == (self.rules.cap, self.rules.runs)


def test_c9_no_sequence_of_entries_and_no_clock_passes_a_limit_of_the_policy(clock: Clock) -> None:
    GovernedMachine.clock = clock
    run_state_machine_as_test(
        GovernedMachine, settings=settings(deadline=None, max_examples=40, stateful_step_count=25)
    )


# Neighbours of a boundary

BERLIN = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("period", "begins"),
    [
        ("month", datetime(2031, 2, 1, tzinfo=UTC)),
        ("month", datetime(2032, 3, 1, tzinfo=UTC)),
        ("month", datetime(2031, 2, 1, 1, tzinfo=BERLIN)),
        ("quarter", datetime(2031, 4, 1, tzinfo=UTC)),
        ("quarter", datetime(2032, 1, 1, tzinfo=UTC)),
        ("year", datetime(2032, 1, 1, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("unused", ["lapses", "carries over"])
def test_c9_an_allowance_ends_with_the_last_second_of_its_period_in_utc(
    store: Store, clock: Clock, period: str, begins: datetime, unused: str
) -> None:
    clock.at = begins - timedelta(seconds=1)
    account = governed(store, monthly(period=period, unused=unused))
    account.reserve("a", Fraction(2, 3), DIGEST)
    refused(store, lambda: account.reserve("b", THIRD + GRAIN, DIGEST), "the allowance for")
    account.reserve("b", Fraction(1, 4), DIGEST)
    clock.at = begins
    carried = Fraction(1, 12) if unused == "carries over" else Fraction(0)
    refused(store, lambda: account.reserve("c", 1 + carried + GRAIN, DIGEST), "the allowance for")
    account.reserve("c", 1 + carried, DIGEST)
    refused(store, lambda: account.reserve("d", GRAIN, DIGEST), f"wait for the next {period}")
    read_again(store)


def test_c9_what_a_run_did_not_spend_returns_to_the_period_in_which_it_reserved(store: Store, clock: Clock) -> None:
    account = governed(store)
    account.reserve("a", Fraction(1), DIGEST)
    account.charge("a", 0, cost(THIRD))
    clock.tell(2031, 2, 1)
    account.reserve("b", Fraction(1), DIGEST)
    account.close("a", None)
    refused(store, lambda: account.reserve("c", GRAIN, DIGEST), "2031-02")
    account.close("b", None)
    account.reserve("c", Fraction(1), DIGEST)
    read_again(store)


# Clocks


def test_c9_a_clock_that_goes_back_has_no_allowance_of_a_period_that_is_over(store: Store, clock: Clock) -> None:
    clock.tell(2031, 2, 1)
    account = governed(store)
    account.reserve("a", Fraction(1), DIGEST)
    clock.tell(2031, 1, 31)
    refused(store, lambda: StoredAccount(store, DATASET).reserve("b", GRAIN, DIGEST), "2031-02")
    clock.tell(2030, 12, 31)
    account.set_policy(monthly(Fraction(2)))
    account.reserve("b", Fraction(1), DIGEST)
    refused(store, lambda: account.reserve("c", GRAIN, DIGEST), "2031-02")
    assert account.state.since == "2031-02"


def test_c9_a_clock_that_jumps_ahead_has_at_most_the_cap_and_leaves_the_account_in_that_period(
    store: Store, clock: Clock
) -> None:
    account = governed(store, monthly(unused="carries over"))
    clock.tell(2099, 1, 1)
    account.reserve("a", Fraction(10), DIGEST)
    clock.tell(2031, 1, 16)
    refused(store, lambda: account.reserve("b", GRAIN, DIGEST), "budget exceeded", AccountError)
    account.close("a", None)
    assert account.state.month == "2099-01"
    read_again(store)


@pytest.mark.parametrize("month", [None, "2030-12", "2031-02"])
def test_c9_an_entry_that_tells_another_month_than_its_own_is_refused(
    store: Store, clock: Clock, month: str | None
) -> None:
    state = governed(store).state
    forged = Reservation(
        number=2, previous=state.head, nonce="0", run="r", rho=GRAIN, inputs=DIGEST, at=clock.at, is_chained=True,
        month=month,
    )  # fmt: skip
    with pytest.raises(AccountError, match="to count in 2031-01"):
        state.check(forged)
    if month is not None:
        change = PolicyChange(number=2, previous=state.head, nonce="0", policy=MONTHLY, month=month, at=clock.at)
        with pytest.raises(AccountError, match="to count in 2031-01"):
            state.check(change)


# What a policy changes, and what it does not


def test_c9_the_same_policy_again_gives_no_second_allowance_and_another_one_counts_what_was_spent(
    store: Store, clock: Clock
) -> None:
    account = governed(store)
    account.reserve("a", Fraction(1), DIGEST)
    account.set_policy(MONTHLY)
    refused(store, lambda: account.reserve("b", GRAIN, DIGEST), "2031-01")
    account.set_policy(monthly(Fraction(3, 2), period="quarter"))
    account.reserve("b", HALF, DIGEST)
    refused(store, lambda: account.reserve("c", GRAIN, DIGEST), "2031-Q1")
    clock.tell(2031, 2, 1)
    account.set_policy(monthly(unused="carries over"))
    account.reserve("c", Fraction(1), DIGEST)
    refused(store, lambda: account.reserve("d", GRAIN, DIGEST), "2031-02")


def test_c9_what_was_spent_before_there_was_a_policy_counts_in_its_period(store: Store, clock: Clock) -> None:
    account = open_account(store, Fraction(10))
    account.reserve("a", Fraction(2, 3), DIGEST)
    account.set_policy(MONTHLY)
    refused(store, lambda: account.reserve("b", THIRD + GRAIN, DIGEST), "2031-01")
    account.reserve("b", THIRD, DIGEST)
    assert account.state.cap == 10


def test_c9_the_parts_of_purposes_are_kept_apart(store: Store, clock: Clock) -> None:
    account = governed(store, monthly(purposes=PARTS))
    reserve = partial(account.reserve, inputs=DIGEST)
    refused(store, lambda: reserve("a", GRAIN), "one of open, press; got none")
    refused(store, lambda: reserve("a", GRAIN, purpose="other"), "one of open, press; got 'other'")
    reserve("a", THIRD, purpose="press")
    refused(store, lambda: reserve("b", GRAIN, purpose="press"), "of purpose 'press' for 2031-01")
    reserve("b", Fraction(2, 3), purpose="open")
    refused(store, lambda: reserve("c", GRAIN, purpose="open"), "allowance")
    read_again(store)


def test_c9_figures_about_a_release_count_for_its_purpose(store: Store, clock: Clock) -> None:
    account = governed(store, monthly(purposes=PARTS, smallest=Fraction(1, 6)))
    account.reserve("a", Fraction(1, 4), DIGEST, purpose="press")
    account.reserve("q", GRAIN, DIGEST, quality_of="a")
    assert account.state.budgets["q"].purpose == "press"
    refused(store, lambda: account.reserve("p", Fraction(1, 12), DIGEST, quality_of="a"), "of purpose 'press'")
    account.reserve("p", Fraction(1, 12) - GRAIN, DIGEST, quality_of="a")
    refused(store, lambda: account.reserve("o", GRAIN, DIGEST, quality_of="nobody"), "release nobody", AccountError)
    state = account.state
    forged = Reservation(
        number=state.count, previous=state.head, nonce="0", run="x", rho=GRAIN, inputs=DIGEST, quality_of="a",
        at=clock.at, is_chained=True, month="2031-01", purpose="open",
    )  # fmt: skip
    with pytest.raises(AccountError, match="for the purpose of release a"):
        state.check(forged)


@pytest.mark.parametrize("rho", [Fraction(1, 4), Fraction(1, 2)])
def test_c9_a_release_is_neither_smaller_nor_larger_than_the_policy_says(
    store: Store, clock: Clock, rho: Fraction
) -> None:
    account = governed(store, policy(smallest=Fraction(1, 4), largest=HALF))
    account.reserve("a", rho, DIGEST)
    refused(store, lambda: account.reserve("b", Fraction(1, 4) - GRAIN, DIGEST), "of at least rho 0.25")
    refused(store, lambda: account.reserve("b", HALF + GRAIN, DIGEST), "of at most rho 0.5")


def test_c9_the_cap_of_a_policy_is_changed_by_a_policy_alone_and_not_below_what_is_committed(
    store: Store, clock: Clock
) -> None:
    account = governed(store)
    account.reserve("a", Fraction(1), DIGEST)
    refused(store, lambda: account.set_cap(Fraction(11)), "ppsyn policy set")
    refused(store, lambda: account.set_policy(policy(1 - GRAIN)), "at least rho 1", AccountError)
    account.set_policy(policy(Fraction(1)))
    assert (account.state.cap, account.state.left) == (1, 0)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (policy(Fraction(0)), "cap to be positive"),
        (policy(smallest=HALF, largest=THIRD), "smallest to be at most largest"),
        (policy(largest=Fraction(11)), "largest to be at most the cap"),
        (monthly(Fraction(11)), "allowance.budget to be at most the cap"),
        (monthly(largest=Fraction(2)), "largest to be at most the allowance"),
        (policy(purposes={"a": {"allowance": HALF}}), "Expected an allowance, of which purposes.a"),
        (policy(purposes={"a": {"cap": Fraction(6)}, "b": {"cap": Fraction(5)}}), "no more than the cap"),
        (monthly(purposes={"a": {"allowance": HALF}, "b": {"allowance": 1 - THIRD}}), "no more than the allowance"),
        (monthly(smallest=HALF, purposes={"a": {"allowance": THIRD}}), "purpose 'a' to have room"),
    ],
)
def test_c9_a_policy_that_contradicts_itself_is_refused_in_a_sentence(
    store: Store, clock: Clock, found: Policy, told: str
) -> None:
    account = open_account(store, Fraction(10))
    refused(store, lambda: account.set_policy(found), told, AccountError)
    assert [problem for problem in contradictions(found) if told in problem]


@pytest.mark.parametrize("found", POLICIES)
def test_c9_a_policy_that_can_be_kept_to_has_no_contradiction(found: Policy) -> None:
    assert list(contradictions(found)) == []


# Accounts without a policy are what they were


def test_c9_an_account_without_a_policy_keeps_its_bytes(store: Store, clock: Clock) -> None:
    account = open_account(store)
    account.reserve("r", HALF, DIGEST)
    for data in account.entries():
        entry = from_bytes(data)
        assert to_bytes(entry) == data
    opened, held = account.entries()
    assert list(json.loads(opened)) == [
        "number", "previous", "nonce", "kind", "format", "dataset", "cap", "delta", "unit", "at", "digest",
    ]  # fmt: skip
    assert list(json.loads(held)) == [
        "number", "previous", "nonce", "kind", "run", "rho", "inputs", "quality_of", "at", "is_chained", "digest",
    ]  # fmt: skip
    forged = from_bytes(held)
    assert isinstance(forged, Reservation)
    with pytest.raises(AccountError, match="no month"):
        StoredAccount(store, DATASET).state.check(
            forged.model_copy(update={"number": 2, "previous": account.state.head, "run": "s", "month": "2031-01"})
        )


# Races, and stores that lie


def test_c9_a_reservation_that_was_overtaken_by_a_policy_is_judged_by_it(store: Store, clock: Clock) -> None:
    open_account(store, Fraction(10))
    raced = reopened(RacedStore, store)
    raced.rivals = [lambda: StoredAccount(store, DATASET).set_policy(MONTHLY)]
    with pytest.raises(PolicyError, match="2031-01"):
        StoredAccount(raced, DATASET).reserve("r", 1 + GRAIN, DIGEST)
    raced.rivals = [
        lambda: StoredAccount(store, DATASET).set_policy(monthly(Fraction(2))),
        lambda: StoredAccount(store, DATASET).reserve("s", Fraction(1), DIGEST),
    ]
    StoredAccount(raced, DATASET).reserve("r", Fraction(1), DIGEST)
    assert set(read_again(store).runs) == {"r", "s"}


def test_c9_a_reservation_that_is_overtaken_by_another_month_counts_in_it(store: Store, clock: Clock) -> None:
    account = governed(store)
    raced = reopened(RacedStore, store)

    def overtake() -> None:
        clock.tell(2031, 2, 1)
        account.reserve("s", Fraction(1), DIGEST)
        clock.tell(2031, 1, 31)

    raced.rivals = [overtake]
    with pytest.raises(PolicyError, match="2031-02"):
        StoredAccount(raced, DATASET).reserve("r", GRAIN, DIGEST)


@pytest.mark.parametrize("write", ["policy", "reservation"])
@pytest.mark.parametrize("lie", ["exists", "raises", "busy", "down"])
def test_c9_a_write_that_breaks_off_leaves_a_sound_account(store: Store, clock: Clock, write: str, lie: str) -> None:
    governed(store)
    lying = reopened(LyingStore, store)
    lying.lies = (lie,)
    account = StoredAccount(lying, DATASET)
    make = (
        partial(account.set_policy, monthly(HALF))
        if write == "policy"
        else partial(account.reserve, "r", Fraction(1), DIGEST)
    )
    if lie in ("raises", "down"):
        with pytest.raises(StoreError):
            make()
    else:
        make()
    rules = read_again(store)
    is_written = lie != "down"
    if write == "policy":
        assert (rules.policy == monthly(HALF)) == is_written
    else:
        assert (list(rules.runs) == ["r"]) == is_written


def test_c9_of_a_hundred_who_ask_at_once_as_many_are_had_as_the_allowance_has_room_for(
    shared: Location, tmp_path: Path
) -> None:
    processes, each = (10, 10) if shared.is_s3 else (4, 5)
    StoredAccount(open_store(shared), DATASET).open(Fraction(10), None, UNIT)
    StoredAccount(open_store(shared), DATASET).set_policy(monthly(period="year", unused="carries over"))
    rho, logs = Fraction(1, 7), [tmp_path / f"{number}" for number in range(processes)]
    jobs = [
        start(reserve_at_once, Writer.of(shared), [f"p{number}-{run}" for run in range(each)], rho, None, log)
        for number, log in enumerate(logs)
    ]
    assert join(jobs, 300) == [0] * processes
    told = sum(int(log.read_text(encoding="utf-8")) for log in logs)
    rules = read_again(open_store(shared))
    assert told == len(rules.runs) == 7
    assert StoredAccount(open_store(shared), DATASET).state.count == 2 + 7


def test_c9_processes_killed_at_any_moment_leave_an_account_that_kept_to_its_policy(
    shared: Location, tmp_path: Path
) -> None:
    StoredAccount(open_store(shared), DATASET).open(Fraction(10), None, UNIT)
    found = monthly(period="year", unused="carries over")
    StoredAccount(open_store(shared), DATASET).set_policy(found)
    logs = {f"p{number}": tmp_path / f"p{number}" for number in range(3)}
    job = partial(start, reserve_and_close, Writer.of(shared))
    again = found.model_dump_json()
    running = {name: job(name, HALF, again, log) for name, log in logs.items()}
    wait_until(lambda: all(log.exists() and log.stat().st_size for log in logs.values()))
    chance = secrets.SystemRandom()
    for _ in range(6):
        time.sleep(chance.uniform(0.05, 0.3))
        name = chance.choice(list(logs))
        assert kill(running[name]) in (-9, 0)
        running[name] = job(name, HALF, again, logs[name])
    assert {kill(process) for process in running.values()} <= {-9, 0}
    rules = read_again(open_store(shared))
    for log in logs.values():
        assert set(log.read_text(encoding="utf-8").split()) <= set(rules.runs)
    account = StoredAccount(open_store(shared), DATASET)
    for run in [run for run, held in rules.runs.items() if held.counted]:
        account.close(run, None)
    assert has_room_under(account, "last", Fraction(1))


def test_c9_limits_are_sums_of_fractions_and_never_of_floats(clock: Clock, store: Store) -> None:
    account = governed(store, monthly(GRAIN * 3))
    for run in "abc":
        account.reserve(run, GRAIN, DIGEST)
    refused(store, lambda: account.reserve("d", GRAIN / 2, DIGEST), "2031-01")
    state: AccountState = account.state
    (limit,) = limits(MONTHLY, state.since, state.month, state.budgets.values())
    assert limit.left == 1 - 3 * GRAIN
