from fractions import Fraction

import pytest

from ppsyn.privacy.accountant import accounted_epsilon
from ppsyn.privacy.budget import epsilon_from
from ppsyn.privacy.ledger import Ledger, Spend


def ledger(*costs: Fraction) -> Ledger:
    return Ledger(Fraction(10), tuple(Spend("select", rho, "") for rho in costs))


@pytest.mark.parametrize("rho", [Fraction(1, 10**5), Fraction(1, 100), Fraction(1), Fraction(10)])
def test_the_other_accountant_is_never_more_generous_and_close(rho: Fraction) -> None:
    ours = epsilon_from(rho, 1e-9)
    assert ours * (1 - 1e-6) <= accounted_epsilon(ledger(rho), 1e-9) <= ours * 1.001


def test_every_spend_counts() -> None:
    spends = [Fraction(1, 100), Fraction(1, 30), Fraction(1, 7)]
    whole = accounted_epsilon(ledger(sum(spends, Fraction(0))), 1e-9)
    assert accounted_epsilon(ledger(*spends), 1e-9) == pytest.approx(whole, rel=1e-9)


def test_the_total_does_not_count_only_what_was_spent() -> None:
    assert accounted_epsilon(ledger(Fraction(1, 100)), 1e-9) < 1
