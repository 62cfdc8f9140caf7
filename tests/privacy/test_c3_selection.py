"""Claim C3: a selection is the exponential mechanism at the scale its budget buys."""

import ast
import inspect
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeGuard

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy.instruments import PLENTY, guard, sample_by_hand
from privacy.neighbours import encoded
from scipy import special
from support.statistical import (
    ALPHA,
    CHOICE_DRAWS,
    FEW_CHOICES,
    MANY_CHOICES,
    NIGHTLY_CHOICES,
    RIVALS,
    exponential_probabilities,
    frequencies_p_value,
    lead_p_value,
    tipping_gap,
)

from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import InvariantError
from ppsyn.privacy import curator as gate
from ppsyn.privacy import curator as pace
from ppsyn.privacy import noise as mechanisms
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount, Spend
from ppsyn.privacy.partition import finest
from ppsyn.privacy.requests import (
    GRID,
    Candidate,
    CompareRequest,
    Figure,
    MeasureRequest,
    Selected,
    SelectRequest,
    noise_scale,
)
from ppsyn.quality import run as quality
from ppsyn.runs import run as runs

RHO = Fraction(1, 50)
SCALE = 5.0 * GRID  # GRID / sqrt(2 rho)
EMPTY = encoded(Domain((Attribute("a0", 1),)), [])


def choose(heights: list[int], times: int) -> list[int]:
    """The mechanism's choices among candidates of these scores."""
    return [mechanisms.draw_noisy_max(heights, RHO, GRID) for _ in range(times)]


def choose_by_curator(heights: list[int], max_rows: int) -> list[int]:
    """The curator's choices among candidates of these scores."""
    asked = tuple(Candidate(("a0",), finest(1), np.array([height], np.int64), 0) for height in heights)
    answers = [guard(EMPTY, max_rows).answer(SelectRequest(asked, RHO)) for _ in range(FEW_CHOICES)]
    return [answer.index for answer in answers if isinstance(answer, Selected)]


def leader(scale: float) -> list[int]:
    """Scores of one candidate that should be chosen half of the time, and of its rivals."""
    return [tipping_gap(scale), *[0] * RIVALS]


def test_c3_selection_has_the_scale_that_the_budget_buys() -> None:
    # 7,000 draws; catches 5% of the scale.
    assert lead_p_value(choose(leader(SCALE), MANY_CHOICES), SCALE) > ALPHA


@pytest.mark.nightly
def test_c3_selection_has_the_scale_that_the_budget_buys_to_one_percent() -> None:
    assert lead_p_value(choose(leader(SCALE), NIGHTLY_CHOICES), SCALE) > ALPHA


def wrong_scale_is_seen(error: float, draws: int, patch: pytest.MonkeyPatch) -> bool:
    patch.setattr(mechanisms, "noise_scale", lambda rho, sensitivity: error * noise_scale(rho, sensitivity))
    patch.setattr(mechanisms, "_check_cost", lambda cost, rho: None)
    return lead_p_value(choose(leader(SCALE), draws), SCALE) <= ALPHA


@pytest.mark.parametrize("error", [0.8, 1.25])
def test_c3_selection_of_the_wrong_scale_is_caught(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong_scale_is_seen(error, CHOICE_DRAWS, monkeypatch)


@pytest.mark.nightly
@pytest.mark.parametrize("error", [0.99, 1.01])
def test_c3_selection_whose_scale_is_one_percent_off_is_caught(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong_scale_is_seen(error, NIGHTLY_CHOICES, monkeypatch)


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=9), st.data(), st.fractions(Fraction(1, 10**4), 9))
@settings(deadline=None)
def test_c3_what_opendp_draws_among_all_scores_is_the_answer(
    scores: list[int], data: st.DataObject, rho: Fraction
) -> None:
    chosen, sensitivity = data.draw(st.integers(0, len(scores) - 1)), data.draw(st.integers(1, 99)) * GRID
    with pytest.MonkeyPatch.context() as patch:
        made = sample_by_hand(patch, "make_noisy_max", lambda _: chosen)
        assert mechanisms.draw_noisy_max(scores, rho, sensitivity) == chosen
    (sampler,) = made
    assert sampler.scale == noise_scale(rho, sensitivity)
    assert (sampler.given, sampler.priced) == ([scores], [sensitivity])


@pytest.mark.parametrize("max_rows", [1, 3])
def test_c3_the_curator_scales_selection_by_the_rows_of_a_person(max_rows: int) -> None:
    # 200 draws; catches a scale that is wrong by half, so a bound on rows that is not passed on.
    claimed = SCALE * max_rows
    assert lead_p_value(choose_by_curator(leader(claimed), max_rows), claimed) > ALPHA


@pytest.mark.parametrize("wrong", [GRID // 2, 2 * GRID])
def test_c3_a_curator_of_the_wrong_sensitivity_is_caught(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "sensitivity", lambda candidates: wrong)
    assert lead_p_value(choose_by_curator(leader(SCALE), 1), SCALE) <= ALPHA


@pytest.mark.parametrize("draws", [CHOICE_DRAWS, pytest.param(NIGHTLY_CHOICES, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "heights",
    [
        [0, GRID * 5, GRID * 5, GRID * 10],
        [GRID * 20, *[0] * 30],
        [2**60, 2**60 + GRID * 5, 2**60 - GRID * 5],
        [-(2**60), GRID * 15 - 2**60, -(2**60), GRID * 10 - 2**60],
        [GRID * 5 * step for step in range(5)],
    ],
    ids=["two alike", "many far behind", "large", "large and negative", "stairs"],
)
def test_c3_candidates_are_drawn_in_proportion_to_the_exponential_of_their_scores(
    heights: list[int], draws: int
) -> None:
    # 1,000 draws of each; catches half or double the scale, a wrong sign or a candidate that is left out.
    seen = np.bincount(choose(heights, draws), minlength=len(heights))
    assert frequencies_p_value(seen, exponential_probabilities(heights, SCALE)) > ALPHA


def test_c3_equal_candidates_are_drawn_evenly_wherever_they_stand() -> None:
    # 1,000 draws; catches a candidate favoured by one half for its place.
    assert frequencies_p_value(np.bincount(choose([7, 7, 7], CHOICE_DRAWS), minlength=3), [1, 1, 1]) > ALPHA


@given(
    scores=st.lists(st.integers(-20, 20), min_size=2, max_size=6),
    data=st.data(),
    rho=st.sampled_from([0.001, 0.02, 0.5, 3.0]),
    order=st.sampled_from([1.01, 1.5, 2.0, 8.0, 64.0]),
)
@settings(deadline=None)
def test_c3_the_divergence_of_neighbours_stays_under_the_charge(
    scores: list[int], data: st.DataObject, rho: float, order: float
) -> None:
    moves = data.draw(st.lists(st.floats(-1, 1), min_size=len(scores), max_size=len(scores)))
    scale = noise_scale(Fraction(rho), 1)
    left = exponential_probabilities(scores, scale)
    right = exponential_probabilities(np.array(scores) + moves, scale)
    terms = order * np.log(left) + (1 - order) * np.log(right)
    divergence = float(special.logsumexp(terms)) / (order - 1)
    assert divergence <= order * rho + 1e-9


def test_c3_a_selection_that_costs_more_than_was_charged_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanisms, "noise_scale", lambda rho, sensitivity: 0.999999 * noise_scale(rho, sensitivity))
    with pytest.raises(InvariantError, match="nothing was drawn"):
        mechanisms.draw_noisy_max([1, 2], RHO, GRID)


def test_c3_there_is_nothing_to_draw_from_no_candidates() -> None:
    with pytest.raises(InvariantError):
        mechanisms.draw_noisy_max([], RHO, GRID)


@given(numbers=st.integers(1, 10**6), beats=st.integers(1, 50), part=st.floats(0.01, 0.99))
def test_c3_an_answer_comes_on_the_first_beat_after_its_draw(numbers: int, beats: int, part: float) -> None:
    clock = Clock((beats - part) * pace.beat(numbers))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pace, "time", clock)
        pace.wait(0.0, numbers)
    assert clock.now == pytest.approx(beats * pace.beat(numbers), abs=1e-9)


@dataclass
class Clock:
    """A clock that only sleep moves, and not always as far as it was asked to."""

    now: float

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds if seconds < 1e-4 else 0.75 * seconds


class TimedAccount(MemoryAccount):
    """An account that knows when it was charged, as a store does."""

    charged_at = 0.0

    def charge(self, spend: Spend) -> None:
        super().charge(spend)
        self.charged_at = time.monotonic()


def seconds_of_draws(heights: list[int], times: int) -> list[float]:
    """How long after its charge each answer came."""
    asked = tuple(Candidate(("a0",), finest(1), np.array([height], np.int64), 0) for height in heights)
    found: list[float] = []
    for _ in range(times):
        account = TimedAccount(PLENTY)
        curator = TableCurator(TableCounter(EMPTY), account, is_watched=True)
        curator.answer(SelectRequest(asked, RHO))
        found.append(time.monotonic() - account.charged_at)
    return found


@pytest.mark.parametrize("is_alike", [True, False], ids=["all alike", "one leads"])
def test_c3_whoever_sees_when_answers_come_sees_the_same_beat_whatever_the_scores(is_alike: bool) -> None:
    # Unpaced, 2,000 candidates take 1 ms where all are alike and 5 ms on average where one leads; a beat is 42 ms.
    heights = [0] * 2000 if is_alike else [2**50, *[0] * 1999]
    seen = seconds_of_draws(heights, 5)
    assert min(seen) >= pace.beat(2000)


@pytest.mark.parametrize("kind", ["measure", "select", "compare"])
def test_c3_every_answer_of_a_watched_curator_waits_for_its_beat(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[int] = []
    monkeypatch.setattr(gate, "wait", lambda began, numbers: waited.append(numbers))
    candidates = (Candidate(("a0",), finest(1), np.zeros(1, np.int64), 0),) * 3
    asked = {
        "measure": MeasureRequest(("a0",), finest(1), RHO),
        "select": SelectRequest(candidates, RHO),
        "compare": CompareRequest(candidates, (Figure("mean", (0,)), Figure("worst", (1,))), RHO),
    }[kind]
    TableCurator(TableCounter(EMPTY), MemoryAccount(PLENTY), is_watched=True).answer(asked)
    assert waited == [{"measure": 1, "select": 3, "compare": 2}[kind]]


def test_c3_the_curators_of_runs_and_of_quality_figures_are_watched() -> None:
    # What a store or Prefect shows is paced; a process by itself has nobody who looks.
    for module in (runs, quality):
        calls = [call for call in ast.walk(ast.parse(inspect.getsource(module))) if is_a_curator(call)]
        assert len(calls) == 1
        assert [ast.literal_eval(keyword.value) for keyword in calls[0].keywords if keyword.arg == "is_watched"] == [
            True
        ]


def is_a_curator(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "TableCurator"
