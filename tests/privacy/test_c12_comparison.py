"""Claim C12: figures of how far marginals are from what is expected of them cost what they are charged."""

from fractions import Fraction
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy.instruments import PLENTY, WatchedAccount, drawn_for, guard, watch_draws
from privacy.neighbours import Neighbours, candidates, encoded, l2_squared, neighbours, tower
from privacy.releases import SCHEMA, private_frame
from support.statistical import ALPHA, NIGHTLY_DRAWS, SCALE_DRAWS, mean_p_value, scale_p_value

from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import BudgetExceededError, InvariantError
from ppsyn.privacy import curator as gate
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.accountant import accounted_epsilon
from ppsyn.privacy.budget import epsilon_from
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount
from ppsyn.privacy.partition import finest
from ppsyn.privacy.requests import GRID, Candidate, CompareRequest, Figure, Measured
from ppsyn.privacy.scores import aggregate, joint_sensitivity
from ppsyn.quality import run as quality_run
from ppsyn.quality.questions import compare_request, figures_of, rows_of, rows_request, scaled_to, shares_of
from ppsyn.runs.preflight import unit_of
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.locations import Location
from ppsyn.schemas.quality import MarginalSet, QualityRecord
from ppsyn.schemas.release import CsvSource
from ppsyn.schemas.run import RunRef
from ppsyn.storage import open_store

RHO = Fraction(1, 50)
THREE = Domain((Attribute("a0", 3),))
PLAIN = Candidate(("a0",), finest(3), np.zeros(3, np.int64), 0)

figures = st.builds(Figure, st.sampled_from(["mean", "worst"]), st.lists(st.integers(0, 3), min_size=1).map(tuple))


def ask(*statistics: str, candidate: Candidate = PLAIN) -> CompareRequest:
    return CompareRequest((candidate,), tuple(Figure(statistic, (0,)) for statistic in statistics), RHO)


def squared_move(pair: Neighbours, request: CompareRequest) -> int:
    """The squared L2 distance between the figures that neighbours hand to the mechanism."""
    before, after = (drawn_for(table, request, pair.max_rows).exact for table in (pair.smaller, pair.larger))
    return l2_squared(np.array(before), np.array(after))


def is_within_declared(pair: Neighbours, request: CompareRequest, max_rows: int) -> bool:
    return squared_move(pair, request) <= drawn_for(pair.larger, request, max_rows).sensitivity ** 2


@given(st.data())
@settings(deadline=None)
def test_c12_a_person_moves_the_figures_by_no_more_than_declared(data: st.DataObject) -> None:
    pair = data.draw(neighbours())
    asked = tuple(data.draw(st.lists(candidates(pair.domain), min_size=4, max_size=4)))
    request = CompareRequest(asked, tuple(data.draw(st.lists(figures, min_size=1, max_size=6))), RHO)
    assert is_within_declared(pair, request, pair.max_rows)


@given(st.lists(st.integers(-(2**62), 2**62), min_size=4, max_size=4), st.integers(1, 2**40), st.data())
def test_c12_a_figure_moves_no_further_than_the_scores_it_is_made_of(
    scores: list[int], most: int, data: st.DataObject
) -> None:
    moved = [score + data.draw(st.integers(-most, most) | st.sampled_from([-most, most])) for score in scores]
    figure = data.draw(figures)
    assert abs(aggregate(figure, scores) - aggregate(figure, moved)) <= most


@pytest.mark.parametrize("large", [2**53 + 1, 2**62 - 1, -(2**60) - 1])
def test_c12_figures_are_exact_where_doubles_are_not_and_a_mean_is_rounded_down(large: int) -> None:
    for statistic in ("mean", "worst"):
        assert aggregate(Figure(statistic, (0,)), [large]) == large
    assert aggregate(Figure("mean", (0, 1)), [large, large + 1]) == large


@given(st.integers(1, 2**40), st.integers(1, 10_000))
def test_c12_the_norm_of_several_figures_is_rounded_up_and_by_less_than_one(move: int, count: int) -> None:
    assert (joint_sensitivity(move, count) - 1) ** 2 < count * move**2 <= joint_sensitivity(move, count) ** 2


@pytest.mark.parametrize("max_rows", [1, 2, 7])
@pytest.mark.parametrize("statistics", [("mean",), ("worst",), ("mean", "worst", "mean", "worst")])
def test_c12_the_declared_sensitivity_is_attained(max_rows: int, statistics: tuple[str, ...]) -> None:
    pair, request = tower(THREE, max_rows), ask(*statistics)
    assert squared_move(pair, request) == drawn_for(pair.larger, request, max_rows).sensitivity ** 2


def test_c12_a_mean_of_many_is_as_cheap_as_one_and_figures_add_up_in_squares() -> None:
    pair, many = tower(THREE, 1), (PLAIN,) * 50
    mean = CompareRequest(many, (Figure("mean", tuple(range(50))),), RHO)
    each = CompareRequest(many, tuple(Figure("mean", (at,)) for at in range(50)), RHO)
    assert drawn_for(pair.larger, mean, 1).sensitivity == GRID
    assert drawn_for(pair.larger, each, 1).sensitivity == joint_sensitivity(GRID, 50) > 7 * GRID


@pytest.mark.parametrize("max_rows", [1, 2, 7])
def test_c12_a_curator_told_of_too_few_rows_is_caught(max_rows: int) -> None:
    assert not is_within_declared(tower(THREE, max_rows + 1), ask("mean"), max_rows)


def test_c12_a_sensitivity_that_forgets_how_many_figures_there_are_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "joint_sensitivity", lambda move, figures: move)
    assert not is_within_declared(tower(THREE, 1), ask("mean", "worst"), 1)


def test_c12_a_sum_in_the_place_of_the_mean_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "aggregate", lambda figure, scores: sum(scores[member] for member in figure.members))
    request = CompareRequest((PLAIN, PLAIN), (Figure("mean", (0, 1)),), RHO)
    assert not is_within_declared(tower(THREE, 1), request, 1)


@pytest.mark.parametrize("max_rows", [1, 3])
def test_c12_noise_has_the_scale_that_the_budget_buys(max_rows: int) -> None:
    # 50,000 figures in one answer; catches 3% of the scale.
    check_noise(SCALE_DRAWS, max_rows)


@pytest.mark.nightly
def test_c12_noise_has_the_scale_that_the_budget_buys_to_one_percent() -> None:
    check_noise(NIGHTLY_DRAWS, 2)


def check_noise(count: int, max_rows: int) -> None:
    answer = guard(encoded(THREE, [(0,), (2,)]), max_rows).answer(ask(*["mean"] * count))
    assert isinstance(answer, Measured)
    claimed = joint_sensitivity(max_rows * GRID, count) * 5.0
    draws = answer.noisy_counts - 2 * GRID
    assert answer.sigma == pytest.approx(claimed, rel=1e-9)
    assert scale_p_value(draws, claimed) > ALPHA
    assert mean_p_value(draws, claimed) > ALPHA


@pytest.mark.parametrize("max_rows", [1, 3])
def test_c12_what_quality_measures_is_bounded_and_scaled_by_the_rows_of_a_person(
    max_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, location = watch_draws(monkeypatch), Location(url=f"memory://{uuid4().hex}")
    frame = private_frame(12).assign(who=["a"] * 7 + ["b"] * 4 + ["c"])
    open_store(location).put("table.csv", frame.to_csv(index=False).encode())
    person, sets = PersonUnit(column="who", max_rows=max_rows), (MarginalSet(name="ages", marginals=(("age",),)),)
    record = QualityRecord(
        run="q", dataset="toy", release="r", manifest="0" * 64, rho=RHO, delta=None, person=person, sets=sets
    )
    StoredAccount(open_store(location), "toy").open(RHO, None, unit_of(person))
    ref = RunRef(run="q", dataset="toy", root=location, private=location, releases=location)
    quality_run.measure(ref, record, CsvSource(kind="csv", path=location), SCHEMA, {("age",): np.ones(6, np.int64)})
    rows, figure = watched.draws
    assert rows.exact == (1 + 2 * max_rows,)
    assert (rows.sensitivity, figure.sensitivity) == (max_rows, max_rows * GRID)
    assert rows.rho + figure.rho == RHO


def test_c12_it_is_charged_before_it_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch_draws(monkeypatch)
    account = WatchedAccount(watched.events)
    TableCurator(TableCounter(encoded(THREE, [(0,)])), account).answer(ask("mean", "worst"))
    assert watched.events == ["charge", "draw"]
    (spend,) = account.ledger.spends
    assert (spend.kind, spend.rho, spend.digest) == ("compare", RHO, ask("mean", "worst").digest())


def test_c12_what_the_account_does_not_have_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch_draws(monkeypatch)
    curator = TableCurator(TableCounter(encoded(THREE, [(0,)])), MemoryAccount(RHO / 2))
    with pytest.raises(BudgetExceededError):
        curator.answer(ask("mean"))
    assert watched.events == []


@pytest.mark.parametrize(
    "wrong", [(), (Figure("mean", ()),), (Figure("worst", (1,)),), (Figure("mean", (-1,)),), (Figure("mean", (0, 9)),)]
)
def test_c12_figures_of_nothing_or_of_what_is_not_there_are_refused(wrong: tuple[Figure, ...]) -> None:
    with pytest.raises(InvariantError):
        CompareRequest((PLAIN,), wrong, RHO)


def test_c12_every_part_of_a_question_is_in_its_digest() -> None:
    other = Candidate(("a0",), finest(3), np.array([0, 1, 0]), 0)
    asked = [
        ask("mean"),
        ask("worst"),
        ask("mean", "mean"),
        ask("mean", candidate=other),
        CompareRequest((PLAIN,), (Figure("mean", (0,)),), RHO / 2),
    ]
    assert len({request.digest() for request in asked}) == len(asked)


def test_c12_another_accountant_certifies_what_a_run_of_figures_costs() -> None:
    account, sets = MemoryAccount(RHO), (MarginalSet(name="single attributes", marginals=(("a0",),)),)
    curator = TableCurator(TableCounter(encoded(THREE, [(0,), (1,)])), account)
    first, second = shares_of(RHO, sets)
    rows = rows_of(measured(curator.answer(rows_request(THREE, first))))
    curator.answer(compare_request(sets, {("a0",): np.array([1, 1, 0])}, scaled_to(rows), second))
    assert account.ledger.left == 0
    assert accounted_epsilon(account.ledger, 1e-6) == pytest.approx(epsilon_from(RHO, 1e-6), rel=1e-3)


def measured(answer: object) -> Measured:
    assert isinstance(answer, Measured)
    return answer


def distance(left: np.ndarray, right: np.ndarray) -> float:
    return float(np.abs(left / left.sum() - right / right.sum()).sum() / 2)


counts = st.lists(st.integers(0, 400), min_size=3, max_size=3).filter(any).map(np.array)


@given(st.lists(st.tuples(counts, counts), min_size=1, max_size=3), st.integers(-300, 300), st.integers(-9999, 9999))
@settings(deadline=None)
def test_c12_a_figure_is_off_by_no_more_than_its_noise_that_of_the_rows_and_rounding(
    tables: list[tuple[np.ndarray, np.ndarray]], rows_noise: int, noise: int
) -> None:
    # All marginals of a table have as many rows; here the last cell makes up for what is missing.
    total = max(int(private.sum()) for private, _ in tables)
    private = [np.array([*table[:2], table[2] + total - table.sum()]) for table, _ in tables]
    cliques = [(f"a{at}",) for at in range(len(tables))]
    synthetic = dict(zip(cliques, (made for _, made in tables), strict=True))
    sets = (MarginalSet(name="all", marginals=tuple(cliques)),)
    rows = rows_of(Measured(np.array([total + rows_noise]), 0.0))
    request = compare_request(sets, synthetic, scaled_to(rows), RHO)
    scores = [
        int(np.abs(GRID * table - c.expected).sum()) for table, c in zip(private, request.candidates, strict=True)
    ]
    exact = np.array([aggregate(figure, scores) for figure in request.figures])
    found = figures_of(sets, synthetic, rows, Measured(exact + noise, 0.0))
    truths = [distance(table, made) for table, made in zip(private, synthetic.values(), strict=True)]
    most = (abs(noise) / GRID + abs(total - scaled_to(rows)) + 3 / GRID) / (2 * scaled_to(rows))
    for figure, truth in zip(found, (np.mean(truths), max(truths)), strict=False):
        assert abs(figure.distance - truth) <= most + 1e-9


def test_c12_the_bars_hold_the_truth_at_least_as_often_as_they_say() -> None:
    # 4,000 runs; bars that held 93% of the truths would be found in all but 1 of 10^5 runs.
    rng = np.random.Generator(np.random.PCG64(12))
    private, synthetic = np.array([500, 300, 200]), np.array([480, 330, 190])
    clique, sets, missed = ("a0",), (MarginalSet(name="a0", marginals=(("a0",),)),), 0
    for _ in range(4000):
        rows = rows_of(Measured(np.array([1000 + round(rng.normal(0, 20))]), 20.0))
        request = compare_request(sets, {clique: synthetic}, scaled_to(rows), RHO)
        exact = int(np.abs(GRID * private - request.candidates[0].expected).sum())
        noisy = Measured(np.array([exact + round(rng.normal(0, 20 * GRID))]), 20.0 * GRID)
        (figure,) = figures_of(sets, {clique: synthetic}, rows, noisy)
        missed += not figure.lower <= distance(private, synthetic) <= figure.upper
    assert missed <= 200


def test_c12_shares_of_the_budget_are_all_of_it() -> None:
    one, six = (
        (MarginalSet(name="a", marginals=(("a0",),)),),
        (MarginalSet(name="b", marginals=(("a0",), ("a1",))),) * 3,
    )
    for sets, least in ((one, Fraction(49, 100)), (six, Fraction(28, 100))):
        first, second = shares_of(PLENTY, sets)
        assert first + second == PLENTY
        assert least < first / PLENTY < least + Fraction(2, 100)
