"""An account in a store: a folder, a bucket and memory."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from support.accounts import (
    DATASET,
    DIGEST,
    GRAIN,
    UNIT,
    LyingStore,
    Pen,
    charge_key,
    contents,
    cost,
    key_of,
    new_memory,
    open_account,
    opening,
    place_of,
    remove,
    reopened,
    replay,
)

from ppsyn.errors import AccountError, BudgetExceededError, CapExceededError, PPSynError, RunTakenError, StoreError
from ppsyn.privacy import account as module
from ppsyn.privacy.account import RunAccount, StoredAccount, datasets
from ppsyn.privacy.account_state import AccountState, Chain
from ppsyn.schemas.account import Charge, Close, Entry, Reservation, from_bytes, hash_of, to_bytes
from ppsyn.schemas.locations import Location
from ppsyn.storage import Store, open_store

HALF = Fraction(1, 2)


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(place_of(request, tmp_path))


@pytest.fixture
def memory() -> Store:
    return open_store(new_memory())


def another(store: Store) -> StoredAccount:
    return StoredAccount(store, DATASET)


def refused_without_a_trace(store: Store, write: Callable[[], object], error: type[PPSynError]) -> PPSynError:
    before = contents(store)
    with pytest.raises(error) as caught:
        write()
    assert caught.type is error
    assert contents(store) == before
    return caught.value


# Opening


def test_there_is_no_account_before_it_is_opened(store: Store) -> None:
    assert another(store).find() is None
    assert datasets(store) == []
    with pytest.raises(AccountError, match=DATASET) as caught:
        _ = another(store).state
    assert store.location.url in str(caught.value)


def test_an_opened_account_is_there_for_others(store: Store) -> None:
    open_account(store, Fraction(2, 3))
    state = another(store).state
    assert (state.cap, state.left, state.count) == (Fraction(2, 3), Fraction(2, 3), 1)
    assert (state.opening.dataset, state.opening.unit, state.opening.delta) == (DATASET, UNIT, 1e-9)
    assert datasets(store) == [DATASET]


@pytest.mark.parametrize("cap", [Fraction(1), None])
def test_opening_an_account_again_writes_nothing(store: Store, cap: Fraction | None) -> None:
    open_account(store)
    before = contents(store)
    another(store).open(cap, 1e-9, UNIT)
    assert contents(store) == before


def test_an_account_is_not_opened_without_a_cap(store: Store) -> None:
    problem = refused_without_a_trace(store, lambda: another(store).open(None, 1e-9, UNIT), AccountError)
    assert DATASET in str(problem)
    assert "account.cap" in str(problem)


@pytest.mark.parametrize("cap", [Fraction(0), Fraction(-1)])
def test_an_account_is_not_opened_with_a_cap_that_is_not_positive(memory: Store, cap: Fraction) -> None:
    refused_without_a_trace(memory, lambda: another(memory).open(cap, 1e-9, UNIT), AccountError)


def test_another_cap_is_refused_with_both_numbers(store: Store) -> None:
    open_account(store, Fraction(1, 4))
    problem = refused_without_a_trace(store, lambda: another(store).open(Fraction(3, 4), 1e-9, UNIT), AccountError)
    assert "0.25" in str(problem)
    assert "0.75" in str(problem)


def test_the_cap_that_an_account_has_now_is_the_one_that_a_release_may_name(memory: Store) -> None:
    open_account(memory).set_cap(Fraction(2))
    another(memory).open(Fraction(2), 1e-9, UNIT)
    refused_without_a_trace(memory, lambda: another(memory).open(Fraction(1), 1e-9, UNIT), AccountError)


@pytest.mark.parametrize("cap", [Fraction(1), None])
def test_another_unit_is_refused_with_both_names(store: Store, cap: Fraction | None) -> None:
    open_account(store)
    problem = refused_without_a_trace(store, lambda: another(store).open(cap, 1e-9, "the person in 'id'"), AccountError)
    assert UNIT in str(problem)
    assert "the person in 'id'" in str(problem)


def test_of_many_who_open_at_once_one_does_and_the_others_find_it_open(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: open_account(store), range(8)))
    assert list(contents(store)) == [key_of(0)]


def test_of_many_who_open_at_once_with_different_caps_one_does_and_the_others_are_refused(store: Store) -> None:
    def opened(cap: int) -> bool:
        try:
            open_account(store, Fraction(cap))
        except AccountError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(opened, range(1, 9)))
    assert made.count(True) == 1
    assert another(store).state.cap == 1 + made.index(True)


def test_accounts_whose_names_begin_alike_are_apart(store: Store) -> None:
    for name in ("adult", "adult-2", "adult2"):
        open_account(store, dataset=name).reserve("r", HALF, DIGEST)
    assert datasets(store) == ["adult", "adult-2", "adult2"]
    assert another(store).state.count == 2


# Holding, charging, closing, the cap


def test_another_handle_sees_all_that_was_written(store: Store) -> None:
    account, witness = open_account(store), another(store)
    assert witness.state.count == 1
    account.reserve("r", HALF, DIGEST)
    account.charge("r", 0, cost(Fraction(1, 3)))
    account.close("r", None)
    account.set_cap(Fraction(3))
    for state in (account.state, witness.state, another(store).state):
        assert (state.count, state.cap, state.committed, state.spent) == (4, 3, Fraction(1, 3), Fraction(1, 3))
    for handle in (account, witness, another(store)):
        assert handle.chain("r").ledger.spends == (cost(Fraction(1, 3)),)


def test_the_entries_are_the_objects_as_stored_and_follow_each_other(store: Store) -> None:
    account = open_account(store)
    account.reserve("r", HALF, DIGEST)
    account.charge("r", 0, cost(Fraction(1, 3)))
    account.close("r", DIGEST)
    assert account.entries() == [store.get(key_of(number)) for number in range(3)]
    assert account.chain("r").lines[1:] == [store.get(charge_key("r", 0))]
    keys = [*(key_of(number) for number in range(3)), *(charge_key("r", number) for number in range(2))]
    assert list(contents(store)) == keys
    assert replay(store).spent == Fraction(1, 3)


def test_a_reservation_above_what_is_left_is_refused_with_the_numbers(store: Store) -> None:
    account = open_account(store)
    account.reserve("r", HALF, DIGEST)
    reserve = lambda: another(store).reserve("s", HALF + GRAIN, DIGEST)  # noqa: E731
    problem = refused_without_a_trace(store, reserve, CapExceededError)
    assert (problem.requested, problem.left, problem.cap) == (HALF + GRAIN, HALF, 1)
    assert DATASET in str(problem)
    account.reserve("s", HALF, DIGEST)
    assert account.state.left == 0


def test_closing_frees_what_was_not_spent(store: Store) -> None:
    account = open_account(store)
    account.reserve("r", Fraction(1), DIGEST)
    account.charge("r", 0, cost(Fraction(1, 3)))
    account.close("r", None)
    another(store).reserve("s", Fraction(2, 3), DIGEST)
    assert account.state.left == 0


def test_a_charge_above_what_the_run_reserved_is_refused_with_the_numbers(store: Store) -> None:
    account = open_account(store)
    account.reserve("r", HALF, DIGEST)
    problem = refused_without_a_trace(store, lambda: account.charge("r", 0, cost(HALF + GRAIN)), BudgetExceededError)
    assert (problem.requested, problem.left) == (HALF + GRAIN, HALF)


@pytest.mark.parametrize("write", [lambda a: a.charge("r", 0, cost(GRAIN)), lambda a: a.close("r", None)])
def test_a_run_that_another_process_has_closed_cannot_go_on(
    store: Store, write: Callable[[StoredAccount], None]
) -> None:
    account = open_account(store)
    account.reserve("r", HALF, DIGEST)
    another(store).close("r", None)
    problem = refused_without_a_trace(store, lambda: write(account), AccountError)
    assert "run r " in str(problem).lower()


def test_a_cap_below_what_is_spent_or_reserved_is_refused(store: Store) -> None:
    account = open_account(store)
    account.reserve("r", HALF, DIGEST)
    problem = refused_without_a_trace(store, lambda: another(store).set_cap(HALF - GRAIN), AccountError)
    assert "0.5" in str(problem)
    another(store).set_cap(HALF)
    assert (account.state.cap, account.state.left) == (HALF, 0)


def test_a_raised_cap_makes_room(store: Store) -> None:
    account = open_account(store)
    account.reserve("r", Fraction(1), DIGEST)
    another(store).set_cap(Fraction(3, 2))
    account.reserve("s", HALF, DIGEST)
    assert account.state.left == 0


def test_nothing_is_written_to_an_account_that_is_not_there(memory: Store) -> None:
    for name, operation in OPERATIONS.items():
        if name != "open":
            refused_without_a_trace(memory, lambda run=operation: run(another(memory)), AccountError)


# Damage

OPERATIONS: dict[str, Callable[[StoredAccount], object]] = {
    "state": lambda account: account.state,
    "entries": lambda account: account.entries(),
    "open": lambda account: account.open(None, 1e-9, UNIT),
    "reserve": lambda account: account.reserve("new", GRAIN, DIGEST),
    "charge": lambda account: account.charge("r", 2, cost(GRAIN)),
    "close": lambda account: account.close("r", None),
    "set_cap": lambda account: account.set_cap(Fraction(100)),
    "go on with a run": lambda account: RunAccount(account, "r"),
}


def sound(store: Store, dataset: str = DATASET) -> StoredAccount:
    """An account of six entries, in which run `r` has charged two steps, and `s` one before it was closed."""
    account = open_account(store, dataset=dataset)
    account.reserve("r", HALF, DIGEST)
    account.reserve("s", Fraction(1, 4), DIGEST)
    account.charge("r", 0, cost(Fraction(1, 4)))
    account.charge("s", 0, cost(Fraction(1, 8)))
    account.charge("r", 1, cost(Fraction(1, 8)))
    account.close("s", None)
    account.set_cap(Fraction(3, 2))
    account.set_cap(Fraction(2))
    return account


def swap(store: Store) -> None:
    second, third = store.get(key_of(2)), store.get(key_of(3))
    store.put(key_of(2), third)
    store.put(key_of(3), second)


def copy(source: int, target: int, dataset: str = "census") -> Callable[[Store], None]:
    """Put an entry of a dataset's account in ours."""

    def damage(store: Store) -> None:
        other = open_store(new_memory())
        sound(other, dataset)
        store.put(key_of(target), other.get(key_of(source, dataset)))

    return damage


def copy_all(store: Store) -> None:
    other = open_store(new_memory())
    sound(other, "census")
    for number in range(6):
        store.put(key_of(number), other.get(key_of(number, "census")))


def forge(make: Callable[[Pen, AccountState], Entry]) -> Callable[[Store], None]:
    """Write an entry that follows the last, with its digest, and breaks a rule."""

    def damage(store: Store) -> None:
        state = another(store).state
        store.put(key_of(state.count), to_bytes(make(Pen.at(state), state)))

    return damage


def forge_first(entry: Entry) -> Callable[[Store], None]:
    def damage(store: Store) -> None:
        store.delete("accounts")
        store.put(key_of(0), to_bytes(entry))

    return damage


def put(key: str, data: bytes) -> Callable[[Store], None]:
    return lambda store: store.put(key, data)


def again(pen: Pen, state: AccountState) -> Entry:
    return state.opening.model_copy(update={"number": pen.number, "previous": pen.previous})


DAMAGES: dict[str, Callable[[Store], None]] = {
    "an entry is gone": lambda store: remove(store, key_of(3)),
    "the first entry is gone": lambda store: remove(store, key_of(0)),
    "two entries are swapped": swap,
    "an entry is empty": put(key_of(2), b""),
    "the first entry is empty": put(key_of(0), b""),
    "the last entry is cut": lambda store: store.put(key_of(5), store.get(key_of(5))[:-20]),
    "an entry of another dataset stands in the middle": copy(2, 2),
    "an entry of another dataset stands at the end": copy(5, 6),
    "the opening of another dataset stands first": copy(0, 0),
    "an opening of the same dataset stands first": copy(0, 0, DATASET),
    "all entries are of another dataset": copy_all,
    "an entry is there twice": lambda store: store.put(key_of(6), store.get(key_of(5))),
    "a number is left out": lambda store: store.put(key_of(7), store.get(key_of(5))),
    "a file does not belong": put(f"accounts/{DATASET}/notes.txt", b"hello"),
    "a copy of an entry does not belong": put(f"accounts/{DATASET}/000002.json.bak", b"{}"),
    "a folder does not belong": put(f"accounts/{DATASET}/old/000000.json", b"{}"),
    "it passes the cap": forge(lambda pen, _: pen.reserve("x", Fraction(10))),
    "a run spends more than it reserved": forge(lambda pen, _: pen.charge("r", 1, HALF)),
    "a run that reserved nothing spends": forge(lambda pen, _: pen.charge("x", 0, GRAIN)),
    "a closed run spends": forge(lambda pen, _: pen.charge("s", 0, GRAIN)),
    "a run is charged elsewhere than in its chain": forge(lambda pen, _: pen.charge("r", 2, GRAIN)),
    "a run is sealed elsewhere than in its chain": forge(lambda pen, _: pen.seal("r")),
    "a run is closed without what it spent": forge(lambda pen, _: pen.close("r")),
    "a run is closed with more than it reserved": forge(lambda pen, _: pen.close("r", spent=HALF + GRAIN)),
    "a run is closed with less than nothing": forge(lambda pen, _: pen.close("r", spent=-GRAIN)),
    "a run is closed twice": forge(lambda pen, _: pen.close("s", spent=GRAIN)),
    "a run reserves twice": forge(lambda pen, _: pen.reserve("r", GRAIN)),
    "it is opened twice": forge(again),
    "the cap is below what is spent": forge(lambda pen, _: pen.cap(GRAIN)),
    "it begins without a cap": forge_first(opening(Fraction(0))),
    "it begins with a reservation": forge_first(Pen(0, "0" * 64).reserve("r", HALF)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_damaged_account_is_refused_by_every_operation_however_often_it_is_tried(
    memory: Store, damage: Callable[[Store], None], operation: Callable[[StoredAccount], object]
) -> None:
    sound(memory)
    damage(memory)
    account = another(memory)
    for _ in range(3):
        problem = refused_without_a_trace(memory, lambda: operation(account), AccountError)
        assert DATASET in str(problem)


CHARGING: dict[str, Callable[[StoredAccount], object]] = {
    **{name: OPERATIONS[name] for name in ("charge", "close", "go on with a run")},
    "chain": lambda account: account.chain("r"),
    "budgets": lambda account: account.budgets(),
}


def swap_charges(store: Store) -> None:
    first, second = store.get(charge_key("r", 0)), store.get(charge_key("r", 1))
    store.put(charge_key("r", 0), second)
    store.put(charge_key("r", 1), first)


def forge_charge(make: Callable[[Pen], Entry]) -> Callable[[Store], None]:
    """Write an entry that follows the last charge of `r`, with its digest, and breaks a rule."""

    def damage(store: Store) -> None:
        pen = Pen.at(another(store).chain("r"))
        store.put(charge_key("r", pen.number), to_bytes(make(pen)))

    return damage


def copy_charge(run: str, step: int, to: int) -> Callable[[Store], None]:
    return lambda store: store.put(charge_key("r", to), store.get(charge_key(run, step)))


def granted_otherwise(store: Store) -> None:
    """The same charges, of a run that was granted something else."""
    other = open_store(new_memory())
    account = open_account(other)
    account.reserve("r", HALF - GRAIN, DIGEST)
    account.charge("r", 0, cost(Fraction(1, 4)))
    account.charge("r", 1, cost(Fraction(1, 8)))
    for step in range(2):
        store.put(charge_key("r", step), other.get(charge_key("r", step)))


DAMAGED_CHARGES: dict[str, Callable[[Store], None]] = {
    "the first charge is gone": lambda store: remove(store, charge_key("r", 0)),
    "two charges are swapped": swap_charges,
    "a charge is empty": put(charge_key("r", 1), b""),
    "a charge is cut": lambda store: store.put(charge_key("r", 1), store.get(charge_key("r", 1))[:-20]),
    "a charge of another run": copy_charge("s", 0, 2),
    "a charge of another run stands first": copy_charge("s", 0, 0),
    "the seal of another run": copy_charge("s", 1, 2),
    "a charge is there twice": copy_charge("r", 1, 2),
    "a number is left out": copy_charge("r", 1, 3),
    "a file does not belong": put("accounts/adult/charges/r/notes.txt", b"hello"),
    "a folder does not belong": put("accounts/adult/charges/r/old/000000.json", b"{}"),
    "charges of another grant": granted_otherwise,
    "a run spends more than it reserved": forge_charge(lambda pen: pen.charge("r", 2, Fraction(1, 8) + GRAIN)),
    "a run spends nothing": forge_charge(lambda pen: pen.charge("r", 2, Fraction(0))),
    "a step is charged twice": forge_charge(lambda pen: pen.charge("r", 1, GRAIN)),
    "a step is left out": forge_charge(lambda pen: pen.charge("r", 3, GRAIN)),
    "a number is not the step's": forge_charge(lambda pen: pen.charge("r", 2, GRAIN).model_copy(update={"number": 3})),
    "it follows another charge": forge_charge(lambda pen: Pen(2, DIGEST).charge("r", 2, GRAIN)),
    "a charge is for another run": forge_charge(lambda pen: pen.charge("s", 2, GRAIN)),
    "a reservation stands among charges": forge_charge(lambda pen: pen.reserve("r", GRAIN)),
}


@pytest.mark.parametrize("damage", DAMAGED_CHARGES.values(), ids=DAMAGED_CHARGES)
@pytest.mark.parametrize("operation", CHARGING.values(), ids=CHARGING)
def test_damaged_charges_are_refused_by_every_operation_on_them_however_often_it_is_tried(
    memory: Store, damage: Callable[[Store], None], operation: Callable[[StoredAccount], object]
) -> None:
    sound(memory)
    damage(memory)
    account = another(memory)
    for _ in range(3):
        problem = refused_without_a_trace(memory, lambda: operation(account), AccountError)
        assert DATASET in str(problem)


def after_its_seal(store: Store) -> None:
    pen = Pen.at(another(store).chain("s"))
    store.put(charge_key("s", 2), to_bytes(pen.charge("s", 2, GRAIN)))


@pytest.mark.parametrize(
    "damage",
    [
        lambda store: remove(store, charge_key("s", 1)),
        lambda store: remove(store, charge_key("s", 0)),
        lambda store: store.delete("accounts/adult/charges/s"),
        lambda store: store.put(charge_key("s", 1), to_bytes(Pen.at(chain_before_seal(store)).seal("s"))),
        after_its_seal,
    ],
    ids=["its seal is gone", "its charge is gone", "all is gone", "it has another seal", "it goes on after its seal"],
)
def test_charges_that_are_not_those_that_a_run_was_closed_with_are_found(
    memory: Store, damage: Callable[[Store], None]
) -> None:
    sound(memory)
    assert len(another(memory).chain("s").ledger.spends) == 1
    damage(memory)
    for _ in range(2):
        refused_without_a_trace(memory, lambda: another(memory).chain("s"), AccountError)


def chain_before_seal(store: Store) -> Chain:
    sealed_chain = another(store).chain("s")
    chain = Chain(sealed_chain.grant)
    chain.post(sealed_chain.lines[1])
    return chain


def test_what_is_wrong_with_one_run_s_charges_stops_no_other_run(memory: Store) -> None:
    sound(memory)
    memory.put(charge_key("r", 1), b"")
    account = another(memory)
    account.reserve("new", GRAIN, DIGEST)
    account.charge("new", 0, cost(GRAIN))
    account.close("new", None)


OF_KEYS = ("an entry is gone", "an entry is there twice", "a file does not belong", "a folder does not belong")
"""Damages of what a store lists. What entries hold does not depend on where they are."""


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(damage, id=name, marks=[] if name in OF_KEYS else pytest.mark.slow)
        for name, damage in DAMAGES.items()
    ],
)
def test_a_damaged_account_is_refused_in_every_kind_of_store(store: Store, damage: Callable[[Store], None]) -> None:
    sound(store)
    damage(store)
    refused_without_a_trace(store, lambda: another(store).reserve("new", GRAIN, DIGEST), AccountError)


def test_a_changed_byte_is_found_wherever_it_is_and_its_entry_named(memory: Store) -> None:
    sound(memory)
    for number, data in enumerate(another(memory).entries()):
        for place in range(len(data)):
            changed = bytearray(data)
            changed[place] ^= 1 << (place % 8)
            memory.put(key_of(number), bytes(changed))
            with pytest.raises(AccountError, match=f"entry {number}"):
                another(memory).find()
        memory.put(key_of(number), data)
    assert another(memory).state.count == 6


@pytest.mark.parametrize("number", range(6))
def test_any_other_byte_in_the_place_of_a_digit_of_a_number_or_amount_is_found(memory: Store, number: int) -> None:
    sound(memory)
    data = memory.get(key_of(number))
    field = b'"cap":"' if b'"cap":"' in data else b'"rho":"'
    place = data.find(field) + len(field) if field in data else data.find(b'"number":') + len(b'"number":')
    for byte in set(range(256)) - {data[place]}:
        memory.put(key_of(number), data[:place] + bytes([byte]) + data[place + 1 :])
        with pytest.raises(AccountError):
            another(memory).find()


@pytest.mark.parametrize(("number", "found"), [(0, True), (1, True), (2, True), (3, True), (4, True), (5, False)])
def test_an_entry_rewritten_with_its_digest_is_found_by_its_successor_and_the_last_has_none(
    memory: Store, number: int, found: bool
) -> None:
    sound(memory)
    entry = from_bytes(memory.get(key_of(number)))
    memory.put(key_of(number), to_bytes(entry.model_copy(update={"nonce": "forged"})))
    if found:
        refused_without_a_trace(memory, lambda: another(memory).find(), AccountError)
    else:
        assert another(memory).state.count == 6


@pytest.mark.parametrize("gone", [1, 2, 5])
def test_that_the_last_entries_are_gone_is_not_told_by_the_account_alone(memory: Store, gone: int) -> None:
    sound(memory)
    for number in range(6 - gone, 6):
        remove(memory, key_of(number))
    assert another(memory).state.count == 6 - gone


def test_a_process_that_has_seen_the_entries_that_are_gone_leaves_a_gap_that_all_others_find(memory: Store) -> None:
    account = sound(memory)
    remove(memory, key_of(4))
    remove(memory, key_of(5))
    account.reserve("late", GRAIN, DIGEST)
    refused_without_a_trace(memory, lambda: another(memory).find(), AccountError)


def test_a_process_that_has_seen_other_entries_refuses_those_that_took_their_place(memory: Store) -> None:
    account = sound(memory)
    remove(memory, key_of(4))
    remove(memory, key_of(5))
    for cap in (3, 4, 5):
        another(memory).set_cap(Fraction(cap))
    refused_without_a_trace(memory, lambda: account.reserve("late", GRAIN, DIGEST), AccountError)


def test_an_amount_that_is_no_number_is_refused_although_its_digest_fits(memory: Store) -> None:
    sound(memory)
    state = another(memory).state
    for text in ("1/0", "1e9", "nan", "1/-3", "", "0x1"):
        entry = Pen.at(state).reserve("x", GRAIN).model_dump_json().replace(str(GRAIN), text)
        memory.put(key_of(6), sealed(entry))
        refused_without_a_trace(memory, lambda: another(memory).find(), AccountError)


def sealed(body: str) -> bytes:
    """An entry's JSON with the digest that the format asks for."""
    return f'{body[:-1]},"digest":"{hash_of(body.encode())}"}}\n'.encode()


# What stores do


class GappyStore(Store):
    """Lists as a folder may while others write to it: without some of what was there."""

    missing: str

    def keys(self, prefix: str = "") -> list[str]:
        return [key for key in super().keys(prefix) if key != self.missing]

    def level(self, prefix: str = "") -> tuple[list[str], list[str]]:
        keys, folders = super().level(prefix)
        return [key for key in keys if key != self.missing], folders


def test_a_charge_that_a_listing_leaves_out_while_others_write_is_read_all_the_same(memory: Store) -> None:
    sound(memory)
    gappy = reopened(GappyStore, memory)
    gappy.missing = charge_key("r", 0)
    assert len(another(gappy).chain("r").ledger.spends) == 2


@pytest.mark.parametrize("number", [0, 3, 5])
def test_an_entry_that_a_listing_leaves_out_while_others_write_is_read_all_the_same(memory: Store, number: int) -> None:
    sound(memory)
    gappy = reopened(GappyStore, memory)
    gappy.missing = key_of(number)
    assert another(gappy).state.count == 6


def test_what_a_killed_writer_leaves_of_an_unfinished_entry_harms_nobody(tmp_path: Path) -> None:
    store = open_store(Location(url=str(tmp_path)))
    account = sound(store)
    (tmp_path / f"{key_of(6)}#1").write_bytes(b'{"number":6,"prev')
    another(store).reserve("new", GRAIN, DIGEST)
    assert account.state.count == another(store).state.count == 7


def charged(store: Store) -> list[Charge]:
    return [entry for entry in map(from_bytes, another(store).chain("r").lines) if isinstance(entry, Charge)]


@pytest.mark.parametrize("lies", [("exists",), ("busy",), ("busy", "busy", "exists")], ids="-".join)
def test_a_charge_whose_answer_was_lost_is_known_again_and_counted_once(store: Store, lies: tuple[str, ...]) -> None:
    open_account(store).reserve("r", HALF, DIGEST)
    lying = reopened(LyingStore, store)
    account = RunAccount(another(lying), "r")
    lying.lies = lies
    account.charge(cost(GRAIN))
    account.charge(cost(2 * GRAIN))
    assert [(charge.step, charge.rho) for charge in charged(store)] == [(0, GRAIN), (1, 2 * GRAIN)]
    assert account.ledger.spent == 3 * GRAIN


def test_a_reservation_a_close_a_cap_and_an_opening_whose_answers_were_lost_are_written_once(store: Store) -> None:
    lying = reopened(LyingStore, store)
    account = another(lying)
    writes = [lambda: account.open(Fraction(1), 1e-9, UNIT), lambda: account.reserve("r", HALF, DIGEST)]
    writes += [lambda: account.close("r", None), lambda: account.set_cap(Fraction(2))]
    for write in writes:
        lying.lies = ("exists", "exists")
        write()
    kinds = [type(from_bytes(data)).__name__ for data in another(store).entries()]
    assert kinds == ["Opening", "Reservation", "Close", "CapChange"]


@pytest.mark.parametrize(("lie", "count"), [("raises", 1), ("down", 0)])
def test_a_charge_that_breaks_off_stops_the_run_and_is_counted_if_it_was_written(
    store: Store, lie: str, count: int
) -> None:
    open_account(store).reserve("r", HALF, DIGEST)
    lying = reopened(LyingStore, store)
    account = RunAccount(another(lying), "r")
    lying.lies = (lie,)
    with pytest.raises(StoreError, match="reset"):
        account.charge(cost(GRAIN))
    assert len(charged(store)) == len(account.ledger.spends) == count
    assert RunAccount(another(store), "r").ledger.spent == count * GRAIN


def test_a_charge_that_breaks_off_and_was_written_is_not_charged_again_by_the_same_process(store: Store) -> None:
    open_account(store).reserve("r", HALF, DIGEST)
    lying = reopened(LyingStore, store)
    account = RunAccount(another(lying), "r")
    lying.lies = ("raises",)
    with pytest.raises(StoreError):
        account.charge(cost(GRAIN))
    refused_without_a_trace(store, lambda: account.charge(cost(GRAIN)), RunTakenError)


def test_an_account_that_stays_too_busy_is_given_up_and_nothing_is_written(
    memory: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.05)
    sound(memory)
    lying = reopened(LyingStore, memory)
    lying.lies = ("busy",) * 1000
    problem = refused_without_a_trace(memory, lambda: another(lying).reserve("new", GRAIN, DIGEST), AccountError)
    assert DATASET in str(problem)


class IntrudedStore(Store):
    """Has something else in the place of an entry at the moment it is to be created."""

    intruder: bytes

    def create(self, key: str, data: bytes) -> bool:
        self.put(key, self.intruder)
        return super().create(key, data)


@pytest.mark.parametrize("intruder", [b"", b"hello", b"{}"])
def test_what_is_not_an_entry_in_the_place_of_a_new_one_is_damage(memory: Store, intruder: bytes) -> None:
    sound(memory)
    intruded = reopened(IntrudedStore, memory)
    intruded.intruder = intruder
    with pytest.raises(AccountError, match=DATASET):
        another(intruded).reserve("new", GRAIN, DIGEST)
    assert memory.get(key_of(6)) == intruder


# One run


def test_a_reserved_spend_is_in_the_store_when_reserve_returns(store: Store) -> None:
    open_account(store).reserve("r", HALF, DIGEST)
    RunAccount(another(store), "r").charge(cost(GRAIN))
    entry = from_bytes(store.get(charge_key("r", 0)))
    assert isinstance(entry, Charge)
    assert (entry.run, entry.step, entry.rho, entry.request, entry.clique) == ("r", 0, GRAIN, DIGEST, ("a", "b"))


def test_a_run_goes_on_after_the_steps_that_were_charged(store: Store) -> None:
    open_account(store).reserve("r", HALF, DIGEST)
    for rho in (GRAIN, 2 * GRAIN, 3 * GRAIN):
        RunAccount(another(store), "r").charge(cost(rho))
    ledger = RunAccount(another(store), "r").ledger
    assert (ledger.total, ledger.spends) == (HALF, (cost(GRAIN), cost(2 * GRAIN), cost(3 * GRAIN)))


def test_of_two_who_go_on_with_a_run_the_later_is_stopped(store: Store) -> None:
    open_account(store).reserve("r", HALF, DIGEST)
    one, two = RunAccount(another(store), "r"), RunAccount(another(store), "r")
    one.charge(cost(GRAIN))
    refused_without_a_trace(store, lambda: two.charge(cost(GRAIN)), RunTakenError)
    one.charge(cost(GRAIN))
    assert len(charged(store)) == 2


def test_runs_of_one_account_do_not_take_each_others_steps(store: Store) -> None:
    account = open_account(store)
    account.reserve("r", HALF, DIGEST)
    account.reserve("s", HALF, DIGEST)
    one, two = RunAccount(another(store), "r"), RunAccount(another(store), "s")
    for _ in range(3):
        one.charge(cost(GRAIN))
        two.charge(cost(2 * GRAIN))
    assert (one.ledger.spent, two.ledger.spent) == (3 * GRAIN, 6 * GRAIN)


def test_a_run_that_reserved_nothing_has_no_account(memory: Store) -> None:
    sound(memory)
    refused_without_a_trace(memory, lambda: RunAccount(another(memory), "unknown"), AccountError)


def test_times_are_whole_seconds_of_a_clock_that_others_understand(memory: Store) -> None:
    sound(memory)
    told = [entry.at for entry in map(from_bytes, another(memory).entries()) if isinstance(entry, Reservation | Close)]
    assert all(at.tzinfo is not None and at.microsecond == 0 for at in told)


# Many entries


def test_the_last_entry_is_the_one_with_the_largest_number_not_the_last_by_name() -> None:
    numbers = [0, 9, 99_998, 999_999, 1_000_000, 1_000_001, 12_345_678]
    keys = sorted(key_of(number) for number in numbers)
    assert keys[-1] != key_of(12_345_678)
    for count in range(1, len(numbers)):
        assert module._last(sorted(map(key_of, numbers[:count]))) == numbers[count - 1]
    assert module._last([]) == -1


class LongStore(Store):
    """Holds an account of so many entries that all but the first and the latest are made when they are read.

    The entries between are caps, which take turns; their hashes are made once.
    """

    entries: list[bytes]

    def level(self, prefix: str = "") -> tuple[list[str], list[str]]:
        keys, folders = super().level(prefix)
        return sorted({*keys, *map(key_of, range(len(self.entries)))}), folders

    def get(self, key: str) -> bytes:
        stem = key.rsplit("/", 1)[-1].removesuffix(".json")
        if key.count("/") == 2 and int(stem) < len(self.entries):
            return self.entries[int(stem)]
        return super().get(key)


def long_account(store: Store, count: int) -> LongStore:
    """An account of that many entries."""
    made = reopened(LongStore, store)
    made.entries = [to_bytes(opening(Fraction(1)))]
    for number in range(1, count):
        cap = {"number": number, "previous": hash_of(made.entries[-1]), "nonce": "n", "kind": "cap"}
        body = json.dumps({**cap, "cap": str(1 + number % 2), "at": "2031-02-03T04:05:06Z"}, separators=(",", ":"))
        made.entries.append(sealed(body))
    return made


@pytest.mark.slow
def test_an_account_works_past_its_millionth_entry(memory: Store) -> None:
    store = long_account(memory, 999_998)
    account = StoredAccount(store, DATASET)
    account.reserve("r", HALF, DIGEST)
    account.reserve("s", HALF, DIGEST)
    account.charge("r", 0, cost(Fraction(1, 3)))
    account.close("r", None)
    account.reserve("t", Fraction(1, 3), DIGEST)
    last = [999_998, 999_999, 1_000_000, 1_000_001]
    assert [key for key in contents(memory) if key.count("/") == 2] == sorted(map(key_of, last))
    account = StoredAccount(store, DATASET)
    state = account.state
    assert (state.count, list(state.budgets), state.spent) == (1_000_002, ["r", "s", "t"], Fraction(1, 3))
    with pytest.raises(CapExceededError):
        account.reserve("u", Fraction(1), DIGEST)


# Accounts as they were kept once


def legacy(store: Store) -> StoredAccount:
    """An account of format 1: charges between the other entries, of a run that is closed and of one that is open."""
    first = opening(Fraction(1)).model_copy(update={"format": "ppsyn-account-1"})
    store.create(key_of(0), to_bytes(first))
    steps = (
        lambda pen: pen.reserve("old", HALF),
        lambda pen: pen.reserve("open", Fraction(1, 4)),
        lambda pen: pen.charge("old", 0, Fraction(1, 8)),
        lambda pen: pen.charge("open", 0, Fraction(1, 16)),
        lambda pen: pen.charge("old", 1, Fraction(1, 8)),
        lambda pen: pen.close("old"),
    )
    for make in steps:
        pen = Pen.at(another(store).state)
        entry = make(pen)
        fields = entry.model_dump_json(exclude={"is_chained", "spent"})  # which no such entry has
        store.create(key_of(pen.number), sealed(fields))
    return another(store)


def test_an_account_of_the_old_format_counts_as_it_did_and_goes_on_in_the_new_one(store: Store) -> None:
    account = legacy(store)
    assert (account.state.committed, account.state.left) == (HALF, HALF)
    assert [(budget.run, budget.spent, budget.charges) for budget in account.budgets()] == [
        ("old", Fraction(1, 4), 2),
        ("open", Fraction(1, 16), 1),
    ]
    account.reserve("new", HALF, DIGEST)
    account.charge("new", 0, cost(GRAIN))
    with pytest.raises(CapExceededError):
        account.reserve("more", GRAIN, DIGEST)
    account.close("new", DIGEST)
    account.close("open", None)
    for found in (account, another(store)):
        assert found.state.committed == found.state.spent == Fraction(5, 16) + GRAIN
        assert found.state.latest == "new"


@pytest.mark.parametrize("operation", ["charge", "chain", "go on"])
def test_a_run_that_was_begun_in_the_old_format_is_refused_with_what_to_do(store: Store, operation: str) -> None:
    legacy(store)
    write = {
        "charge": lambda: another(store).charge("open", 1, cost(GRAIN)),
        "chain": lambda: another(store).chain("open"),
        "go on": lambda: RunAccount(another(store), "open"),
    }[operation]
    problem = refused_without_a_trace(store, write, AccountError)
    assert "ppsyn abandon" in str(problem)
