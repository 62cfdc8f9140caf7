"""The rules of an account, on entries alone."""

from fractions import Fraction

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from support.accounts import DATASET, DIGEST, GRAIN, AccountMachine, Pen, opening

from ppsyn.errors import AccountError, BudgetExceededError, CapExceededError
from ppsyn.privacy.account_state import Book, open_book
from ppsyn.schemas.account import FIRST, Entry, from_bytes, hash_of, to_bytes


def facts(book: Book) -> tuple[object, ...]:
    return book.cap, book.committed, book.spent, book.head, book.count, dict(book.parts)


def written(cap: Fraction = Fraction(1), holds: Fraction | None = None) -> Book:
    book = open_book(to_bytes(opening(cap)))
    if holds is not None:
        book.post(to_bytes(Pen.at(book).hold("r", holds)))
    return book


def refuse(book: Book, entry: Entry, refusal: type[Exception]) -> pytest.ExceptionInfo[Exception]:
    before = facts(book)
    with pytest.raises(refusal) as checked:
        book.check(entry)
    with pytest.raises(refusal) as posted:
        book.post(to_bytes(entry))
    assert checked.type is posted.type is refusal
    assert facts(book) == before
    return posted


class BookMachine(AccountMachine):
    def open(self, cap: Fraction) -> None:
        self.book = open_book(to_bytes(opening(cap)))

    def seen(self) -> Book:
        return self.book

    def attempt(self, entry: Entry, refusal: type[Exception] | None) -> None:
        if refusal is not None:
            refuse(self.book, entry, refusal)
            return
        before = facts(self.book)
        self.book.check(entry)
        assert facts(self.book) == before
        data = to_bytes(entry)
        assert self.book.post(data) == entry
        assert (self.book.head, self.book.count) == (hash_of(data), entry.number + 1)

    @rule(away=st.sampled_from([-1, 1, 2]))
    def misnumber(self, away: int) -> None:
        pen = Pen(max(0, self.book.count + away), self.book.head)
        refuse(self.book, pen.hold("late", GRAIN), AccountError)

    @rule(previous=st.sampled_from([FIRST, DIGEST]))
    def follow_another_entry(self, previous: str) -> None:
        refuse(self.book, Pen(self.book.count, previous).cap(self.book.cap), AccountError)

    @rule()
    def open_again(self) -> None:
        pen = Pen.at(self.book)
        again = opening(self.book.cap).model_copy(update={"number": pen.number, "previous": pen.previous})
        refuse(self.book, again, AccountError)


def test_a_book_keeps_the_rules_over_any_sequence_of_entries_and_a_refused_one_changes_nothing() -> None:
    run_state_machine_as_test(BookMachine, settings=settings(deadline=None, max_examples=60, stateful_step_count=40))


def test_a_book_that_took_what_is_refused_would_be_found_out() -> None:
    class Lenient(BookMachine):
        def attempt(self, entry: Entry, refusal: type[Exception] | None) -> None:
            if refusal is CapExceededError:
                self.book.committed += entry.rho
            else:
                super().attempt(entry, refusal)

    quickly = settings(deadline=None, max_examples=60, database=None, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Lenient, settings=quickly)


@given(parts=st.integers(1, 200))
@settings(deadline=None, max_examples=20)
def test_equal_parts_of_the_cap_fit_exactly_and_not_a_grain_more(parts: int) -> None:
    book = written()
    for part in range(parts):
        book.post(to_bytes(Pen.at(book).hold(f"r{part}", Fraction(1, parts))))
    assert book.left == 0
    caught = refuse(book, Pen.at(book).hold("more", GRAIN), CapExceededError)
    assert (caught.value.asked, caught.value.left, caught.value.cap) == (GRAIN, 0, 1)


@given(parts=st.integers(1, 100))
@settings(deadline=None, max_examples=20)
def test_a_run_may_spend_all_that_it_holds_and_not_a_grain_more(parts: int) -> None:
    book = written(holds=Fraction(1, 3))
    for step in range(parts):
        book.post(to_bytes(Pen.at(book).charge("r", step, Fraction(1, 3 * parts))))
    caught = refuse(book, Pen.at(book).charge("r", parts, GRAIN), BudgetExceededError)
    assert (caught.value.asked, caught.value.left) == (GRAIN, 0)
    assert book.spent == book.committed == Fraction(1, 3)


def test_closing_counts_what_was_spent_and_frees_the_rest() -> None:
    book = written(holds=Fraction(1))
    book.post(to_bytes(Pen.at(book).charge("r", 0, Fraction(1, 7))))
    assert book.left == 0
    book.post(to_bytes(Pen.at(book).close("r")))
    assert (book.committed, book.left) == (Fraction(1, 7), Fraction(6, 7))


def test_a_part_tells_what_the_entries_said() -> None:
    book = written(holds=Fraction(1, 2))
    book.post(to_bytes(Pen.at(book).charge("r", 0, Fraction(1, 7))))
    book.post(to_bytes(Pen.at(book).close("r", manifest="ab" * 32)))
    part = book.parts["r"]
    assert (part.run, part.grant.inputs, part.manifest, part.is_open) == ("r", DIGEST, "ab" * 32, False)
    assert (part.spent, part.charges, part.seal) == (Fraction(1, 7), 1, None)


def test_a_part_whose_charges_are_elsewhere_tells_what_its_close_said() -> None:
    book = written()
    book.post(to_bytes(Pen.at(book).hold("r", Fraction(1, 2), is_chained=True)))
    assert (book.parts["r"].grant.dataset, book.parts["r"].cap) == (DATASET, 1)
    book.post(to_bytes(Pen.at(book).cap(Fraction(2))))
    book.post(to_bytes(Pen.at(book).close("r", spent=Fraction(1, 7))))
    part = book.parts["r"]
    assert (part.spent, part.charges, part.seal, part.cap) == (Fraction(1, 7), 1, DIGEST, 1)
    assert (book.committed, book.spent) == (Fraction(1, 7), Fraction(1, 7))


def test_a_refusal_names_the_dataset_or_the_run() -> None:
    book = written(holds=Fraction(1))
    assert DATASET in str(refuse(book, Pen(7, book.head).close("r"), AccountError).value)
    for entry in (Pen.at(book).hold("r", GRAIN), Pen.at(book).charge("r", 5, GRAIN)):
        assert "run r " in str(refuse(book, entry, AccountError).value)


@pytest.mark.parametrize("cap", [Fraction(0), Fraction(-1, 3)])
def test_an_account_is_not_opened_without_a_positive_cap(cap: Fraction) -> None:
    with pytest.raises(AccountError):
        open_book(to_bytes(opening(cap)))


@pytest.mark.parametrize("change", [{"number": 1}, {"previous": DIGEST}])
def test_an_account_begins_with_entry_zero_and_nothing_before_it(change: dict[str, object]) -> None:
    with pytest.raises(AccountError):
        open_book(to_bytes(opening(Fraction(1)).model_copy(update=change)))


def test_an_account_begins_with_its_opening() -> None:
    with pytest.raises(AccountError):
        open_book(to_bytes(Pen(0, FIRST).hold("r", Fraction(1))))


amounts = st.fractions(min_value=GRAIN) | st.integers(1, 2**96).map(lambda grains: Fraction(grains, 2**96))


@given(run=st.text(), rho=amounts)
@settings(deadline=None)
def test_an_entry_comes_back_from_its_bytes_as_it_was_written(run: str, rho: Fraction) -> None:
    pen = Pen(3, DIGEST)
    for entry in (opening(rho), pen.hold(run, rho), pen.charge(run, 2, rho), pen.close(run, None), pen.cap(rho)):
        assert from_bytes(to_bytes(entry)) == entry


@given(data=st.binary(max_size=400))
@settings(deadline=None)
def test_what_is_not_an_entry_is_refused_and_changes_nothing(data: bytes) -> None:
    book = written()
    before = facts(book)
    with pytest.raises(AccountError, match="entry 1"):
        book.post(data)
    assert facts(book) == before
