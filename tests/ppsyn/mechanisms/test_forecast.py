"""What is told of a release beforehand is what the loop then does."""

import time
from fractions import Fraction

import numpy as np
import pytest
from support.loops import ScriptedCurator, small_plan, steps

from ppsyn.domain import Attribute, Domain
from ppsyn.mechanisms.forecast import at_budget, forecast
from ppsyn.mechanisms.loop import make_plan
from ppsyn.privacy.requests import MeasureRequest, SelectRequest, noise_scale
from ppsyn.schemas.config import AlgorithmConfig

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


def test_the_share_of_rows_is_what_the_noise_of_an_attribute_moves() -> None:
    found = forecast(small_plan(rho=0.5, mechanism="independent"), 500)
    rng = np.random.Generator(np.random.PCG64(1))
    for one in found.singles:
        noise = rng.normal(0, one.sigma, (20_000, one.groups))
        assert one.noise_share == pytest.approx(np.abs(noise).sum(axis=1).mean() / 2 / 500, rel=0.03)


def test_two_measurements_of_the_same_groups_tell_more_than_one() -> None:
    plan = small_plan(rho=0.5, one_way_fraction=0.2, max_one_way_fraction=0.6, coarse_groups=50)
    found = {one.name: one.sigma for one in forecast(plan, 100).singles}
    asked = [request for state, request in steps(plan, ScriptedCurator(max_rows=1)) if state.stage == "one-way"]
    for name, sigma in found.items():
        rhos = [request.rho for request in asked if request.clique == (name,)]
        assert len(rhos) == 2
        assert sigma == pytest.approx(noise_scale(sum(rhos, Fraction(0)), 1))


def test_more_rows_and_more_budget_make_smaller_shares() -> None:
    plan = small_plan()
    few, many = forecast(plan, 1_000), forecast(plan, 100_000)
    rich = forecast(at_budget(plan, plan.rho * 25), 100_000)
    assert few.noise_share > many.noise_share > rich.noise_share


def test_noise_never_moves_more_than_all_rows() -> None:
    found = forecast(small_plan(rho=1e-9), 1)
    assert max(one.noise_share for one in found.singles) == 1


def test_a_thousand_columns_are_told_of_in_seconds() -> None:
    domain = Domain(tuple(Attribute(f"c{n}", 40 if n % 2 else 5) for n in range(1000)))
    plan = make_plan(domain, Fraction(1, 20), 1, AlgorithmConfig())
    forecast(plan, 50_000)  # what is compiled on first use
    began = time.process_time()
    assert len(forecast(plan, 50_000).singles) == 1000
    assert time.process_time() - began < 10
