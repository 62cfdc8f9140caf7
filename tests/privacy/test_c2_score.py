"""Claim C2: a row moves every score by at most GRID, exactly, and a person by that for each of its rows."""

from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from privacy.instruments import PLENTY, Exact, drawn_for, guard
from privacy.neighbours import Neighbours, candidates, encoded, neighbours, tower

from ppsyn.arrays import Ints
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import InvariantError, PPSynError
from ppsyn.privacy import curator as gate
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount
from ppsyn.privacy.partition import Partition, finest
from ppsyn.privacy.requests import GRID, MAX_PENALTY, MAX_WEIGHT, Candidate, SelectRequest, to_grid
from ppsyn.privacy.scores import score, sensitivity

RHO = Fraction(1, 50)
THREE = Domain((Attribute("a0", 3),))
PLAIN = Candidate(("a0",), finest(3), np.zeros(3, np.int64), 0)


def largest_move(pair: Neighbours, request: SelectRequest) -> int:
    """How far the scores of neighbours, as handed to the mechanism, are apart at most."""
    before, after = (drawn_for(table, request, pair.max_rows).exact for table in (pair.smaller, pair.larger))
    return max(abs(a - b) for a, b in zip(before, after, strict=True))


def is_within_declared(pair: Neighbours, request: SelectRequest, max_rows: int) -> bool:
    """Whether a curator told of `max_rows` declares enough for these neighbours."""
    return largest_move(pair, request) <= drawn_for(pair.larger, request, max_rows).sensitivity


def ask(candidate: Candidate) -> SelectRequest:
    return SelectRequest((candidate,), RHO)


@given(st.data())
@settings(deadline=None)
def test_c2_a_person_moves_no_score_by_more_than_declared(data: st.DataObject) -> None:
    pair = data.draw(neighbours())
    asked = data.draw(st.lists(candidates(pair.domain), min_size=1, max_size=4))
    assert is_within_declared(pair, SelectRequest(tuple(asked), RHO), pair.max_rows)


@given(st.data())
@settings(deadline=None)
def test_c2_one_row_moves_no_score_by_more_than_the_grid(data: st.DataObject) -> None:
    pair = data.draw(neighbours(max_rows=1))
    candidate = data.draw(candidates(pair.domain))
    assert largest_move(pair, ask(candidate)) <= sensitivity([candidate]) == candidate.weight * GRID


@pytest.mark.parametrize("max_rows", [1, 2, 7])
def test_c2_the_declared_sensitivity_is_attained(max_rows: int) -> None:
    pair = tower(THREE, max_rows)
    assert largest_move(pair, ask(PLAIN)) == drawn_for(pair.larger, ask(PLAIN), max_rows).sensitivity


@pytest.mark.parametrize("weight", [1, 5])
def test_c2_the_sensitivity_of_the_weightiest_candidate_is_declared_for_all(weight: int) -> None:
    request = SelectRequest((PLAIN, replace(PLAIN, weight=weight)), RHO)
    pair = tower(THREE, 1)
    assert drawn_for(pair.larger, request, 1).sensitivity == weight * GRID == largest_move(pair, request)


def test_c2_a_sensitivity_that_forgets_the_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "sensitivity", lambda candidates: GRID)
    assert not is_within_declared(tower(THREE, 1), ask(replace(PLAIN, weight=2)), 1)


@pytest.mark.parametrize("weight", [0, -1, MAX_WEIGHT + 1])
def test_c2_weights_out_of_range_are_refused(weight: int) -> None:
    with pytest.raises(InvariantError):
        replace(PLAIN, weight=weight)


def test_c2_expected_counts_too_large_for_their_weight_are_refused() -> None:
    with pytest.raises(InvariantError):
        replace(PLAIN, expected=np.array([2**50, 0, 0], np.int64), weight=2**12)


EDGES = [0, 1, 2**31, 2**32 - 1, 2**32, 2**60, 2**61 - 1, 2**61, 2**61 + 1, 2**62, 2**63 - 1]
edges = st.sampled_from([*EDGES, *(-edge for edge in EDGES), -(2**63)]) | st.integers(-(2**63), 2**63 - 1)


@given(st.lists(edges, min_size=1, max_size=20), st.integers(1, 9) | st.just(MAX_WEIGHT))
@example([2**60] * 8, 1)  # 2**63, which 64 bits with a sign do not hold
@example([2**60] * 16, 1)  # 2**64, of which 64 bits hold nothing
@example([-(2**63)], 1)  # has no magnitude in 64 bits with a sign
@example([2**61], 1)
def test_c2_expected_counts_are_taken_exactly_where_their_sum_fits(expected: list[int], weight: int) -> None:
    refused = weight * sum(map(abs, expected)) > 2**61
    with pytest.raises(InvariantError, match="too large") if refused else nullcontext():
        Candidate(("a0",), finest(len(expected)), np.array(expected, np.int64), 0, weight)


edges_of_penalties = st.sampled_from([0, 1, MAX_PENALTY])


@given(st.data())
def test_c2_the_largest_scores_are_exact(data: st.DataObject) -> None:
    weight = data.draw(st.sampled_from([1, 3, MAX_WEIGHT]))
    rows = (2**52 - 1) // weight
    first = min(data.draw(st.integers(0, rows - 1)), 2**37 - 2)
    expected = data.draw(st.sampled_from([2**61 // weight, 0])) * data.draw(st.sampled_from([1, -1]))
    candidate = Candidate(("a0",), finest(2), np.array([expected, 0], np.int64), data.draw(edges_of_penalties), weight)
    for counts in ([first, 0], [0, first]):
        before = score(candidate, np.array(counts, np.int64))
        assert (
            before
            == weight * sum(abs(GRID * n - e) for n, e in zip(counts, (expected, 0), strict=True)) - candidate.penalty
        )
        assert -(2**63) <= before < 2**63


@pytest.mark.parametrize("weight", [1, 2, 2**20])
def test_c2_a_table_of_more_rows_than_the_weight_allows_is_refused(weight: int) -> None:
    candidate = replace(PLAIN, weight=weight)
    most = 2**52 // weight
    assert score(candidate, np.array([most - 1, 0, 0], np.int64)) == weight * GRID * (most - 1)
    with pytest.raises(InvariantError, match="nothing was charged"):
        score(candidate, np.array([most, 0, 0], np.int64))


def test_c2_a_table_of_more_rows_than_the_proof_allows_is_refused_and_not_charged() -> None:
    account = MemoryAccount(PLENTY)
    with pytest.raises(InvariantError, match=r"fewer than 2\^37 rows; nothing was charged"):
        TableCurator(Exact(2**37, 0, 0), account).answer(ask(PLAIN))
    assert account.ledger.spent == 0


@pytest.mark.parametrize("wrong", [np.int64(2**20), 1.5, True])
def test_c2_weights_and_penalties_are_integers_that_do_not_wrap(wrong: Any) -> None:  # noqa: ANN401  of a wrong type
    with pytest.raises(InvariantError, match="integers"):
        replace(PLAIN, weight=wrong)
    with pytest.raises(InvariantError, match="integers"):
        replace(PLAIN, penalty=wrong)


@pytest.mark.parametrize("max_rows", [1, 2, 7])
def test_c2_a_curator_told_of_too_few_rows_is_caught(max_rows: int) -> None:
    assert not is_within_declared(tower(THREE, max_rows + 1), ask(PLAIN), max_rows)


@pytest.mark.parametrize("wrong", [1, GRID // 2, GRID - 1])
def test_c2_a_sensitivity_that_is_too_small_is_caught(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "sensitivity", lambda candidates: wrong)
    assert not is_within_declared(tower(THREE, 1), ask(PLAIN), 1)


def test_c2_a_score_that_counts_every_miss_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "score", lambda candidate, counts: 2 * score(candidate, counts))
    assert not is_within_declared(tower(THREE, 1), ask(PLAIN), 1)


@pytest.mark.parametrize("reach", [1, 2**40, 2**50])
def test_c2_scores_are_exact_where_doubles_are_not(reach: int) -> None:
    # A double cannot tell 2**60 from 2**60 + 1; the score of a single unit must.
    expected = np.array([reach * GRID, 1, 0], np.int64)
    candidate = Candidate(("a0",), finest(3), expected, 0)
    assert score(candidate, np.zeros(3, np.int64)) == reach * GRID + 1


@given(st.data())
@settings(deadline=None)
def test_c2_the_penalty_shifts_a_score_and_does_not_see_the_table(data: st.DataObject) -> None:
    pair = data.draw(neighbours())
    candidate = data.draw(candidates(pair.domain))
    free = replace(candidate, penalty=0)
    for table in (pair.smaller, pair.larger):
        priced, plain = (drawn_for(table, ask(asked), 1).exact[0] for asked in (candidate, free))
        assert plain - priced == candidate.penalty


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=9))
@settings(deadline=None)
def test_c2_expected_rows_are_rounded_to_the_nearest_multiple_of_the_grid(rows: list[float]) -> None:
    units = to_grid(np.array(rows))
    assert units.dtype == np.int64
    assert all(abs(Fraction(row) * GRID - int(unit)) <= Fraction(1, 2) for row, unit in zip(rows, units, strict=True))


@pytest.mark.parametrize("rows", [[2.0**60], [float("nan")], [float("inf")], [2.0**51] * 4])
def test_c2_expected_rows_whose_scores_could_overflow_are_refused(rows: list[float]) -> None:
    with pytest.raises(InvariantError):
        to_grid(np.array(rows))


@pytest.mark.parametrize(
    "expected",
    [np.zeros(5, np.int64), np.zeros((4, 1), np.int64), np.zeros(1, np.float64)],
    ids=["of other groups", "of another shape", "not whole"],
)
def test_c2_expected_counts_that_do_not_fit_the_groups_are_refused_and_not_charged(expected: Ints) -> None:
    # One group and five expected counts would be broadcast: a row would move five terms.
    account = MemoryAccount(PLENTY)
    curator = TableCurator(TableCounter(encoded(THREE, [(0,)])), account)
    with pytest.raises(PPSynError):
        curator.answer(ask(Candidate(("a0",), Partition(np.zeros(3, np.int32), 1), expected, 0)))
    assert account.ledger.spent == 0


@pytest.mark.parametrize("penalty", [2**63 + GRID, 2**80])
def test_c2_a_penalty_too_large_for_the_score_is_refused_without_telling_the_score(penalty: int) -> None:
    curator = guard(encoded(THREE, [(0,)]))
    with pytest.raises(PPSynError) as caught:
        curator.answer(ask(Candidate(("a0",), finest(3), np.zeros(3, np.int64), penalty)))
    assert str(penalty - GRID) not in str(caught.value)
