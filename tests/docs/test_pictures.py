"""What the pictures say is true."""

import math
import re
from itertools import pairwise

import pytest
from charts import Axis, Curve, chart
from pictures import CAP, DELTA, EPSILONS, PICTURES, RESULTS, belief, errors, guess_by_epsilon, guess_by_rho, releases
from scipy.stats import norm

from ppsyn.privacy.budget import epsilon_from, rho_from


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_guess_under_rho_is_bounded_by_what_a_gaussian_shows_and_by_epsilon(epsilon: float) -> None:
    # A Gaussian of this rho lets the best test be right with probability norm.cdf(mu / 2), mu = sqrt(2 rho).
    shown = float(norm.cdf(math.sqrt(2 * rho_from(epsilon, DELTA)) / 2))
    assert shown <= guess_by_rho(epsilon) <= guess_by_epsilon(epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_odds_grow_by_the_factor_that_epsilon_says(epsilon: float) -> None:
    after = belief(0.1, epsilon)
    assert after / (1 - after) == pytest.approx(math.exp(epsilon) / 9)
    assert belief(0.5, epsilon) == pytest.approx(guess_by_epsilon(epsilon))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_so_many_releases_fit_under_the_cap_and_no_more(epsilon: float) -> None:
    count, each = releases(epsilon), rho_from(epsilon, DELTA)
    assert epsilon_from(count * each, DELTA) <= CAP * (1 + 1e-9)
    assert (count + 1) * each > rho_from(CAP, DELTA)


def test_the_errors_are_those_that_the_page_of_benchmarks_tells() -> None:
    page = (RESULTS.parents[1] / "benchmark.md").read_text().split("### With a cap of 1 MB")[1].split("###")[0]
    rows = re.findall(r"^\| ([A-Z0-9]+) ([0-9.]+) \| ([0-9.]+) ", page, re.MULTILINE)
    told = {(name.lower(), float(epsilon)): float(error) for name, epsilon, error in rows}
    shown = {(name, epsilon): error for name, by in errors().items() for epsilon, error in by.items()}
    assert len(told) == 18
    assert shown == pytest.approx(told, abs=5.1e-5)


@pytest.mark.parametrize("name", sorted(set(PICTURES) - {"table"}))
def test_a_picture_is_one_line_of_markup_that_tells_what_it_shows(name: str) -> None:
    text = PICTURES[name]()
    assert "\n" not in text
    assert "<title" in text
    assert "<desc" in text


def test_labels_of_curves_that_end_together_do_not_meet() -> None:
    axes = Axis("x", [(1.0, "1"), (10.0, "10")], is_log=True), Axis("y", [(0.0, "0"), (1.0, "1")])
    text = chart("x", ("t", "d"), axes, [Curve(f"c{at}", [(1.0, 0.0), (10.0, 0.5)]) for at in range(3)], "caption")
    heights = [float(part.split('y="')[1].split('"')[0]) for part in text.split("<text ") if ">c" in part]
    assert [later - earlier for earlier, later in pairwise(heights)] == [18.0, 18.0]
