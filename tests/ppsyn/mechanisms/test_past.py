from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.loops import SMALL, ScriptedCurator, small_plan

from ppsyn.mechanisms.base import Plan
from ppsyn.mechanisms.loop import make_plan, run, start
from ppsyn.mechanisms.past import Past, confronted, learned, with_answers
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition, finest
from ppsyn.privacy.residuals import exact_residuals
from ppsyn.schemas.config import AlgorithmConfig, WorkloadConfig
from ppsyn.serialization import pack_past, unpack_past

GRID = Partition(np.array([0, 0, 1, 1, 2, 2, 3, 3], np.int32), 4, (2, 2))
SIGMA = 10.0


def told(shares: Sequence[float], seed: int, rows: int = 10_000, sigma: float = SIGMA, name: str = "d") -> Measurement:
    """A noisy answer about a table whose attribute has these shares."""
    rng = np.random.default_rng(seed)
    counts = np.array(shares) * rows + rng.normal(0, sigma, len(shares))
    return Measurement((name,), finest(len(shares)), np.rint(counts).astype(np.int64), sigma)


def months(*shares: Sequence[float], name: str = "d") -> list[list[Measurement]]:
    return [[told(each, month, name=name)] for month, each in enumerate(shares)]


EVEN, TURNED = (0.1, 0.2, 0.3, 0.4), (0.4, 0.3, 0.2, 0.1)


def past_of_months(*shares: Sequence[float]) -> Past:
    past = learned(months(*shares))
    assert past is not None
    return past


def test_nothing_is_learned_from_no_release() -> None:
    assert learned([]) is None


def test_answers_to_the_same_question_become_one_of_less_variance() -> None:
    (belief,) = past_of_months(*[EVEN] * 9).beliefs
    assert belief.variance < SIGMA**2 / 2
    assert np.abs(belief.counts - np.array(EVEN) * 10_000).max() < 2 * SIGMA


def test_a_hundred_releases_tell_no_more_numbers_than_one() -> None:
    assert len(past_of_months(*[EVEN] * 100).beliefs) == len(past_of_months(EVEN).beliefs)


def test_of_many_questions_about_a_marginal_few_are_kept() -> None:
    partitions = [Partition(np.array([0] * at + [1] * (24 - at), np.int32), 2) for at in range(1, 24)]
    releases = [[Measurement(("b",), groups, np.array([50, 60]), SIGMA)] for groups in partitions]
    past = learned(releases)
    assert past is not None
    assert len(past.beliefs) == 5


def test_what_changed_counts_for_less_and_what_did_not_for_as_much() -> None:
    same, turned = (confronted(past_of_months(*[EVEN] * 6), [told(now, 99)]).beliefs[0] for now in (EVEN, TURNED))
    assert same.variance < SIGMA**2
    assert turned.variance > (0.2 * 10_000) ** 2 / 2


def test_a_jump_does_not_make_the_answers_after_it_age() -> None:
    (after,) = past_of_months(*[EVEN] * 6, *[TURNED] * 6).beliefs
    assert np.abs(after.counts - np.array(TURNED) * 10_000).max() < 2 * SIGMA
    assert after.variance < SIGMA**2 / 2


def test_a_marginal_ages_with_those_it_contains_and_not_with_others() -> None:
    pair = Measurement(("c", "d"), finest(8), np.full(8, 1250), SIGMA)
    other = Measurement(("a", "c"), finest(6), np.full(6, 1666), SIGMA)
    calm = [told((0.3, 0.3, 0.4), 3, name="a"), told((0.5, 0.5), 4, name="c"), told((1 / 24,) * 24, 5, name="b")]
    past = learned([[told(EVEN, 1), pair, other, *calm]])
    assert past is not None
    aged = {belief.clique: belief.variance for belief in confronted(past, [told(TURNED, 2), *calm]).beliefs}
    assert aged["c", "d"] > 100 * SIGMA**2
    assert aged["a", "c"] < aged["c", "d"] / 10


def test_a_table_that_grows_is_no_change_of_its_shares() -> None:
    past = past_of_months(*[EVEN] * 4)
    (belief,) = confronted(past, [told(EVEN, 9, rows=20_000)]).beliefs
    assert belief.counts.sum() == pytest.approx(20_000, rel=0.01)
    assert belief.variance < 8 * SIGMA**2


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.floats(1.0, 100.0))
def test_the_past_never_tells_more_than_all_its_answers(seeds: list[int], sigma: float) -> None:
    past = learned([[told(EVEN, seed, sigma=sigma)] for seed in seeds])
    assert past is not None
    scaled = (1 - 8 * 2 * sigma / 10_000) ** 2  # to numbers of rows that are told with noise, eight deviations of it
    assert all(belief.variance >= sigma**2 / len(seeds) * scaled for belief in past.beliefs)


def test_residuals_of_a_grid_are_merged_as_counts_are() -> None:
    counts = np.array([40, 10, 10, 40])
    answer = Measurement(("c", "d"), GRID, exact_residuals(counts, (2, 2)), 10.0 * 1024 * 4)
    past = learned([[told(EVEN, 0), answer]] * 4)
    assert past is not None
    belief = next(b for b in past.beliefs if b.partition.axes)
    again = belief.measurement()
    assert belief.variance < answer.scale**2
    assert np.abs(again.target - answer.target).max() < 1e-3


def small_past(releases: int = 2) -> Past:
    found: Past | None = None
    for seed in range(releases):
        plan = small_plan() if found is None else with_past(found)
        found = with_answers(found, run(ScriptedCurator(seed), start(plan)).measurements)
    assert found is not None
    return found


def with_past(past: Past, **settings: object) -> Plan:
    config = AlgorithmConfig.model_validate({"rounds": 8, "workload": WorkloadConfig(degree=2), **settings})
    return make_plan(SMALL, Fraction(1, 20), 1, config, past=past)


def test_the_file_of_the_past_comes_back_bit_for_bit() -> None:
    data = pack_past(small_past())
    assert pack_past(unpack_past(data, SMALL)) == data


def test_a_run_spends_its_budget_to_the_last_fraction_whatever_it_learned() -> None:
    curator = ScriptedCurator(7)
    plan = with_past(small_past())
    assert run(curator, start(plan)).stage == "done"
    assert curator.spent == plan.rho


def test_a_run_that_lost_all_its_answers_knows_the_past() -> None:
    past = small_past()
    state = run(ScriptedCurator(3, lost=frozenset(range(10_000))), start(with_past(past)))
    assert state.stage == "done"
    assert state.model.total == pytest.approx(past.total, rel=0.5)


@pytest.mark.parametrize("mechanism", ["aim", "mst", "mwem", "independent"])
def test_every_mechanism_learns(mechanism: str) -> None:
    config = AlgorithmConfig.model_validate({"mechanism": mechanism, "workload": WorkloadConfig(degree=2)})
    plan, curator = make_plan(SMALL, Fraction(1, 20), 1, config, past=small_past(1)), ScriptedCurator(5)
    state = run(curator, start(plan))
    assert (state.stage, curator.spent) == ("done", plan.rho)
    assert len(state.evidence) > len(state.told)
