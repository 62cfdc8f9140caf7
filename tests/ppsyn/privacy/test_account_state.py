"""The rules of an account, on entries alone."""

from fractions import Fraction

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from support.accounts import DATASET, DIGEST, GRAIN, AccountMachine, Pen, opening

from ppsyn.errors import AccountError, BudgetExceededError, CapExceededError
from ppsyn.privacy.account_state import AccountState, begin_state
from ppsyn.schemas.account import FIRST, Entry, from_bytes, hash_of, to_bytes


def facts(state: AccountState) -> tuple[object, ...]:
    return state.cap, state.committed, state.spent, state.head, state.count, dict(state.budgets)


def written(cap: Fraction = Fraction(1), reserved: Fraction | None = None) -> AccountState:
    state = begin_state(to_bytes(opening(cap)))
    if reserved is not None:
        state.post(to_bytes(Pen.at(state).reserve("r", reserved)))
    return state


def refuse(state: AccountState, entry: Entry, refusal: type[Exception]) -> pytest.ExceptionInfo[Exception]:
    before = facts(state)
    with pytest.raises(refusal) as checked:
        state.check(entry)
    with pytest.raises(refusal) as posted:
        state.post(to_bytes(entry))
    assert checked.type is posted.type is refusal
    assert facts(state) == before
    return posted


class BookMachine(AccountMachine):
    def open(self, cap: Fraction) -> None:
        self.state = begin_state(to_bytes(opening(cap)))

    def seen(self) -> AccountState:
        return self.state

    def attempt(self, entry: Entry, refusal: type[Exception] | None) -> None:
        if refusal is not None:
            refuse(self.state, entry, refusal)
            return
        before = facts(self.state)
        self.state.check(entry)
        assert facts(self.state) == before
        data = to_bytes(entry)
        assert self.state.post(data) == entry
        assert (self.state.head, self.state.count) == (hash_of(data), entry.number + 1)

    @rule(away=st.sampled_from([-1, 1, 2]))
    def misnumber(self, away: int) -> None:
        pen = Pen(max(0, self.state.count + away), self.state.head)
        refuse(self.state, pen.reserve("late", GRAIN), AccountError)

    @rule(previous=st.sampled_from([FIRST, DIGEST]))
    def follow_another_entry(self, previous: str) -> None:
        refuse(self.state, Pen(self.state.count, previous).cap(self.state.cap), AccountError)

    @rule()
    def open_again(self) -> None:
        pen = Pen.at(self.state)
        again = opening(self.state.cap).model_copy(update={"number": pen.number, "previous": pen.previous})
        refuse(self.state, again, AccountError)


def test_a_book_keeps_the_rules_over_any_sequence_of_entries_and_a_refused_one_changes_nothing() -> None:
    run_state_machine_as_test(BookMachine, settings=settings(deadline=None, max_examples=60, stateful_step_count=40))


def test_a_book_that_took_what_is_refused_would_be_found_out() -> None:
    class Lenient(BookMachine):
        def attempt(self, entry: Entry, refusal: type[Exception] | None) -> None:
            if refusal is CapExceededError:
                self.state.committed += entry.rho
            else:
                super().attempt(entry, refusal)

    quickly = settings(deadline=None, max_examples=60, database=None, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Lenient, settings=quickly)


@given(parts=st.integers(1, 200))
@settings(deadline=None, max_examples=20)
def test_equal_parts_of_the_cap_fit_exactly_and_not_a_grain_more(parts: int) -> None:
    state = written()
    for part in range(parts):
        state.post(to_bytes(Pen.at(state).reserve(f"r{part}", Fraction(1, parts))))
    assert state.left == 0
    caught = refuse(state, Pen.at(state).reserve("more", GRAIN), CapExceededError)
    assert (caught.value.requested, caught.value.left, caught.value.cap) == (GRAIN, 0, 1)


@given(parts=st.integers(1, 100))
@settings(deadline=None, max_examples=20)
def test_a_run_may_spend_all_that_it_reserved_and_not_a_grain_more(parts: int) -> None:
    state = written(reserved=Fraction(1, 3))
    for step in range(parts):
        state.post(to_bytes(Pen.at(state).charge("r", step, Fraction(1, 3 * parts))))
    caught = refuse(state, Pen.at(state).charge("r", parts, GRAIN), BudgetExceededError)
    assert (caught.value.requested, caught.value.left) == (GRAIN, 0)
    assert state.spent == state.committed == Fraction(1, 3)


def test_closing_counts_what_was_spent_and_frees_the_rest() -> None:
    state = written(reserved=Fraction(1))
    state.post(to_bytes(Pen.at(state).charge("r", 0, Fraction(1, 7))))
    assert state.left == 0
    state.post(to_bytes(Pen.at(state).close("r")))
    assert (state.committed, state.left) == (Fraction(1, 7), Fraction(6, 7))


def test_a_part_tells_what_the_entries_said() -> None:
    state = written(reserved=Fraction(1, 2))
    state.post(to_bytes(Pen.at(state).charge("r", 0, Fraction(1, 7))))
    state.post(to_bytes(Pen.at(state).close("r", manifest="ab" * 32)))
    budget = state.budgets["r"]
    assert (budget.run, budget.grant.inputs, budget.manifest, budget.is_open) == ("r", DIGEST, "ab" * 32, False)
    assert (budget.spent, budget.charges, budget.seal) == (Fraction(1, 7), 1, None)


def test_a_part_whose_charges_are_elsewhere_tells_what_its_close_said() -> None:
    state = written()
    state.post(to_bytes(Pen.at(state).reserve("r", Fraction(1, 2), is_chained=True)))
    assert (state.budgets["r"].grant.dataset, state.budgets["r"].cap) == (DATASET, 1)
    state.post(to_bytes(Pen.at(state).cap(Fraction(2))))
    state.post(to_bytes(Pen.at(state).close("r", spent=Fraction(1, 7))))
    budget = state.budgets["r"]
    assert (budget.spent, budget.charges, budget.seal, budget.cap) == (Fraction(1, 7), 1, DIGEST, 1)
    assert (state.committed, state.spent) == (Fraction(1, 7), Fraction(1, 7))


def test_a_refusal_names_the_dataset_or_the_run() -> None:
    state = written(reserved=Fraction(1))
    assert DATASET in str(refuse(state, Pen(7, state.head).close("r"), AccountError).value)
    for entry in (Pen.at(state).reserve("r", GRAIN), Pen.at(state).charge("r", 5, GRAIN)):
        assert "run r " in str(refuse(state, entry, AccountError).value)


@pytest.mark.parametrize("cap", [Fraction(0), Fraction(-1, 3)])
def test_an_account_is_not_opened_without_a_positive_cap(cap: Fraction) -> None:
    with pytest.raises(AccountError):
        begin_state(to_bytes(opening(cap)))


@pytest.mark.parametrize("change", [{"number": 1}, {"previous": DIGEST}])
def test_an_account_begins_with_entry_zero_and_nothing_before_it(change: dict[str, object]) -> None:
    with pytest.raises(AccountError):
        begin_state(to_bytes(opening(Fraction(1)).model_copy(update=change)))


def test_an_account_begins_with_its_opening() -> None:
    with pytest.raises(AccountError):
        begin_state(to_bytes(Pen(0, FIRST).reserve("r", Fraction(1))))


amounts = st.fractions(min_value=GRAIN) | st.integers(1, 2**96).map(lambda grains: Fraction(grains, 2**96))


@given(run=st.text(), rho=amounts)
@settings(deadline=None)
def test_an_entry_comes_back_from_its_bytes_as_it_was_written(run: str, rho: Fraction) -> None:
    pen = Pen(3, DIGEST)
    for entry in (opening(rho), pen.reserve(run, rho), pen.charge(run, 2, rho), pen.close(run, None), pen.cap(rho)):
        assert from_bytes(to_bytes(entry)) == entry


@given(data=st.binary(max_size=400))
@settings(deadline=None)
def test_what_is_not_an_entry_is_refused_and_changes_nothing(data: bytes) -> None:
    state = written()
    before = facts(state)
    with pytest.raises(AccountError, match="entry 1"):
        state.post(data)
    assert facts(state) == before
