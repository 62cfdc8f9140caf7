"""What is told of a release beforehand is what the loop then does, and what was measured."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from loops import ScriptedCurator, small_plan, steps

from ppsyn.benchmark.tables import random_workload
from ppsyn.domain import Attribute, Domain
from ppsyn.dp.budget import rho_from
from ppsyn.forecast import at_budget, forecast
from ppsyn.requests import MeasureRequest, SelectRequest, noise_scale
from ppsyn.synthesizer import make_plan
from schemas.config import AlgorithmConfig, WorkloadConfig

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "model-1mb.parquet"
MECHANISMS = ("ppsyn", "aim", "mst", "mwem", "independent")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_budget_is_split_as_a_run_splits_it(mechanism: str, sensitivity: int) -> None:
    plan = small_plan(mechanism=mechanism, sensitivity=sensitivity)
    found = forecast(plan, 200)
    asked = list(steps(plan, ScriptedCurator(max_rows=sensitivity)))
    one_way = [request for state, request in asked if state.stage == "one-way"]
    assert sum(stage.rho for stage in found.stages) == sum((request.rho for request in one_way), Fraction(0))
    assert sum(stage.measurements for stage in found.stages) == len(one_way)
    rounds = [request for state, request in asked if state.stage != "one-way"]
    if found.rounds is None:
        assert rounds == []
        return
    assert sum(stage.rho for stage in found.stages) + found.rounds.rho == plan.rho
    select, measure = rounds[:2]
    assert isinstance(select, SelectRequest)
    assert isinstance(measure, MeasureRequest)
    assert float(select.rho) == pytest.approx(float(found.rounds.select_rho))
    assert noise_scale(measure.rho, sensitivity) == pytest.approx(found.rounds.sigma)
    assert sum(isinstance(request, SelectRequest) for request in rounds) <= found.rounds.planned + 1


def test_the_error_of_an_attribute_is_what_its_noise_makes_of_it() -> None:
    found = forecast(small_plan(rho=0.5, mechanism="independent"), 500)
    rng = np.random.Generator(np.random.PCG64(1))
    for one in found.singles:
        noise = rng.normal(0, one.sigma, (20_000, one.groups))
        assert one.error == pytest.approx(np.abs(noise).sum(axis=1).mean() / 2 / 500, rel=0.03)


def test_two_measurements_of_the_same_groups_tell_more_than_one() -> None:
    plan = small_plan(rho=0.5, initial=0.2, most_initial=0.6, coarse_groups=50)
    found = {one.name: one.sigma for one in forecast(plan, 100).singles}
    asked = [request for state, request in steps(plan, ScriptedCurator(max_rows=1)) if state.stage == "one-way"]
    for name, sigma in found.items():
        rhos = [request.rho for request in asked if request.clique == (name,)]
        assert len(rhos) == 2
        assert sigma == pytest.approx(noise_scale(sum(rhos, Fraction(0)), 1))


def test_more_rows_and_more_budget_make_smaller_errors() -> None:
    plan = small_plan()
    few, many = forecast(plan, 1_000), forecast(plan, 100_000)
    rich = forecast(at_budget(plan, plan.rho * 25), 100_000)
    assert few.one_way_error > many.one_way_error > rich.one_way_error
    assert few.workload_error > many.workload_error > rich.workload_error
    # Not exactly so: the fewer the rows, the more of the budget single attributes get.
    assert many.workload_error == pytest.approx(few.workload_error / 10, rel=0.2)


def test_only_what_was_measured_is_guessed() -> None:
    assert [forecast(small_plan(mechanism=name), 1000).workload_error is None for name in MECHANISMS] == [
        False, True, True, True, True,
    ]  # fmt: skip


def test_an_error_is_never_more_than_all_rows() -> None:
    found = forecast(small_plan(rho=1e-9), 1)
    assert max(one.error for one in found.singles) <= 1
    assert found.workload_error == 1


def test_time_grows_with_the_model_and_with_the_steps_of_a_fit() -> None:
    seconds = [
        forecast(small_plan(**settings), 1000).seconds for settings in ({}, {"model_mb": 20}, {"iterations": 400})
    ]
    assert all(least < most for least, most in seconds)
    assert seconds[1][1] > seconds[0][1] < seconds[2][1]
    assert forecast(small_plan(mechanism="independent"), 1000).seconds == (0.0, 1.0)


TABLES = {
    "adult": (48_842, (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)),
    "br2000": (38_000, (2, 7, 21, 10, 16, 2, 2, 2, 2, 4, 16, 2, 16, 2)),
}
"""Rows and sizes of the tables that were measured."""


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("table", TABLES)
def test_the_errors_are_near_those_that_were_measured(table: str, epsilon: float) -> None:
    """Whoever changes the mechanism and measures it again has to see whether docs/plan.md still holds."""
    rows, sizes = TABLES[table]
    domain = Domain(tuple(Attribute(str(number), size) for number, size in enumerate(sizes)))
    config = AlgorithmConfig(model_mb=1.0, workload=WorkloadConfig(cliques=random_workload(domain)))
    found = forecast(make_plan(domain, rho_from(epsilon, 1e-9), 1, config), rows)
    runs = pd.read_parquet(RESULTS)
    measured = runs[(runs.dataset == table) & (runs.mechanism == "ppsyn") & (runs.epsilon == epsilon)]
    assert len(measured) >= 3
    assert found.workload_error is not None
    assert 1 / 1.6 <= measured.workload_error.mean() / found.workload_error <= 1.6
    assert 0.3 <= measured.one_way_error.mean() / found.one_way_error <= 1
    assert found.seconds[0] / 3 <= measured.seconds.median() <= 3 * found.seconds[1]
