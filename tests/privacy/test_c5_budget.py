"""Claim C5: spends are exact, checked before the draw, and never sum to more than the total."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy.instruments import Watched, WatchedAccount, watch_draws
from privacy.neighbours import domains, encoded
from support.loops import ScriptedCurator, steps

from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import BudgetExceededError
from ppsyn.mechanisms.loop import make_plan
from ppsyn.mechanisms.ppsyn import PPSyn, PPSynParameters
from ppsyn.privacy import curator as gate
from ppsyn.privacy.budget import divide, round_down
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import Ledger, MemoryAccount, Spend
from ppsyn.privacy.partition import finest
from ppsyn.privacy.requests import Candidate, MeasureRequest, Request, SelectRequest
from ppsyn.schemas.config import AlgorithmConfig

TWO = Domain((Attribute("a0", 2),))
COUNTER = TableCounter(encoded(TWO, [(0,), (1,), (1,)]))
MEASURE = MeasureRequest(("a0",), finest(2), Fraction(1, 3))
SELECT = SelectRequest((Candidate(("a0",), finest(2), np.zeros(2, np.int64), 0),), Fraction(1, 3))

both_kinds = pytest.mark.parametrize("request_made", [MEASURE, SELECT], ids=["measure", "select"])
costs = st.fractions(min_value=-1, max_value=2, max_denominator=10**12)


@given(total=st.fractions(min_value=0, max_value=3), asked=st.lists(costs, max_size=30))
@settings(deadline=None)
def test_c5_no_sequence_of_spends_passes_the_total(total: Fraction, asked: list[Fraction]) -> None:
    account, accepted = MemoryAccount(total), Fraction(0)
    for rho in asked:
        before = account.ledger
        try:
            account.charge(Spend("select", rho, ""))
        except BudgetExceededError:
            assert rho <= 0 or accepted + rho > total
            assert account.ledger is before
        else:
            assert rho > 0
            accepted += rho
        assert account.ledger.spent == accepted <= total


@pytest.mark.parametrize("parts", [3, 7, 97])
def test_c5_equal_parts_of_the_total_fit_exactly_and_nothing_more_does(parts: int) -> None:
    ledger = Ledger(Fraction(1))
    for _ in range(parts):
        ledger = ledger.debit(Spend("measure", Fraction(1, parts), ""))
    assert ledger.left == 0
    with pytest.raises(BudgetExceededError):
        ledger.debit(Spend("measure", Fraction(1, 2**300), ""))


@given(st.fractions(Fraction(1, 10**9), 10), st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=9))
def test_c5_parts_of_a_budget_never_sum_to_more_than_it(rho: Fraction, weights: list[float]) -> None:
    parts = divide(rho, weights)
    assert round_down(rho) <= rho
    assert rho - Fraction(len(parts), 2**96) <= sum(parts, Fraction(0)) <= rho


@both_kinds
def test_c5_the_spend_is_written_before_the_draw(request_made: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch_draws(monkeypatch)
    account = WatchedAccount(watched.events)
    TableCurator(COUNTER, account).answer(request_made)
    assert watched.events == ["charge", "draw"]
    assert [spend.rho for spend in account.ledger.spends] == [watched.draws[0].rho] == [request_made.rho]


@both_kinds
def test_c5_what_the_budget_does_not_cover_is_never_drawn(
    request_made: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch_draws(monkeypatch)
    account = WatchedAccount(watched.events, total=Fraction(1, 4))
    with pytest.raises(BudgetExceededError) as caught:
        TableCurator(COUNTER, account).answer(request_made)
    assert watched.events == ["charge"]
    assert (caught.value.requested, caught.value.left) == (Fraction(1, 3), Fraction(1, 4))


@both_kinds
@pytest.mark.parametrize("refusal", [OSError("disk full"), KeyboardInterrupt()])
def test_c5_an_account_that_cannot_write_means_no_draw(
    request_made: Request, refusal: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch_draws(monkeypatch)
    with pytest.raises(type(refusal)):
        TableCurator(COUNTER, WatchedAccount(watched.events, refusal=refusal)).answer(request_made)
    assert watched.events == ["charge"]


@both_kinds
def test_c5_a_draw_that_fails_stays_charged(request_made: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no entropy")

    monkeypatch.setattr(gate, "add_discrete_gaussian", fail)
    monkeypatch.setattr(gate, "draw_noisy_max", fail)
    account = MemoryAccount(Fraction(1))
    with pytest.raises(OSError, match="no entropy"):
        TableCurator(COUNTER, account).answer(request_made)
    assert account.ledger.spent == request_made.rho


@both_kinds
def test_c5_a_curator_that_draws_first_is_caught(request_made: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hasty(TableCurator):
        def answer(self, request: Request) -> None:
            watched.measure(np.zeros(1, np.int64), request.rho, 1)
            super().answer(request)

    watched = watch_draws(monkeypatch, Watched())
    Hasty(COUNTER, WatchedAccount(watched.events)).answer(request_made)
    assert watched.events != ["charge", "draw"]


@both_kinds
def test_c5_the_ledger_names_the_question_it_paid_for(request_made: Request) -> None:
    account = MemoryAccount(Fraction(1))
    TableCurator(COUNTER, account).answer(request_made)
    (spend,) = account.ledger.spends
    assert spend.digest == request_made.digest()


shares = st.floats(0.01, 0.99)
configs = st.builds(AlgorithmConfig, rounds=st.integers(1, 8), max_fit_steps=st.just(1))
parameters = st.builds(
    PPSynParameters,
    one_way_fraction=shares,
    coarse_fraction=shares,
    select_budget_fraction=shares,
    anneal_threshold=st.floats(0.1, 10),
)


@given(domains, configs, parameters, st.fractions(Fraction(1, 10**6), 10), st.sets(st.integers(0, 40), max_size=4))
@settings(deadline=None, max_examples=40)
def test_c5_the_loop_spends_the_whole_budget_and_never_more_whatever_is_lost(
    domain: Domain, config: AlgorithmConfig, parameters: PPSynParameters, rho: Fraction, lost: set[int]
) -> None:
    curator = ScriptedCurator(lost=frozenset(lost))
    for state, request in steps(make_plan(domain, rho, 1, config, PPSyn(parameters)), curator):
        assert state.spent == curator.spent
        assert 0 < request.rho <= rho - curator.spent
    assert curator.spent == rho


@pytest.mark.parametrize("attributes", [1, 2, 12])
def test_c5_one_way_marginals_never_overspend_when_attributes_outnumber_rounds(attributes: int) -> None:
    domain = Domain(tuple(Attribute(f"a{place}", 2 + place % 3) for place in range(attributes)))
    config, parameters = (
        AlgorithmConfig(rounds=1, max_fit_steps=1),
        PPSynParameters(one_way_fraction=0.9, coarse_groups=3),
    )
    plan = make_plan(domain, Fraction(1, 7), 1, config, PPSyn(parameters))
    curator = ScriptedCurator()
    one_way = [request.rho for state, request in steps(plan, curator) if state.one_way]
    assert len(one_way) == attributes + sum(attribute.size > 3 for attribute in domain.attributes)
    assert sum(one_way, Fraction(0)) <= Fraction(0.99) * Fraction(1, 7)
    assert curator.spent == plan.rho
