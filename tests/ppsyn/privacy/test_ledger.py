from fractions import Fraction

import pytest

from ppsyn.errors import BudgetExceededError
from ppsyn.privacy.ledger import Ledger, MemoryAccount, Spend

THIRD = Spend("measure", Fraction(1, 3), "digest", ("a",))


def test_a_ledger_keeps_its_spends_in_order_and_adds_them_exactly() -> None:
    other = Spend("select", Fraction(1, 7), "other")
    ledger = Ledger(Fraction(1)).debit(THIRD).debit(other)
    assert ledger.spends == (THIRD, other)
    assert (ledger.spent, ledger.left) == (Fraction(10, 21), Fraction(11, 21))


def test_a_debit_leaves_the_ledger_it_was_made_from_alone() -> None:
    ledger = Ledger(Fraction(1))
    ledger.debit(THIRD)
    assert ledger.spends == ()


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(-1, 3), Fraction(2, 3) + Fraction(1, 10**30)])
def test_a_refusal_says_what_was_asked_and_what_is_left(rho: Fraction) -> None:
    ledger = Ledger(Fraction(1)).debit(THIRD)
    with pytest.raises(BudgetExceededError) as caught:
        ledger.debit(Spend("select", rho, ""))
    assert (caught.value.requested, caught.value.left) == (rho, Fraction(2, 3))


def test_what_is_left_may_be_spent_to_the_last_grain() -> None:
    ledger = Ledger(Fraction(1)).debit(THIRD)
    assert ledger.debit(Spend("select", ledger.left, "")).left == 0


def test_an_account_charges_for_good_and_nothing_when_it_refuses() -> None:
    account = MemoryAccount(Fraction(1, 2))
    account.charge(THIRD)
    with pytest.raises(BudgetExceededError):
        account.charge(THIRD)
    assert account.ledger.spends == (THIRD,)
