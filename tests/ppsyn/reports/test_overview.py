"""How long accounts last, what needs somebody, and the page that shows it."""

import json
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.overviews import NOW, WEEK, crowded, dataset, run
from support.reports import HOSTILE, Reader

from ppsyn.reports.overview import Audit, Overview, Planned, render, told_interval


def overview(*datasets: object) -> Overview:
    return Overview("out", NOW, datasets, (), (), is_audited=False)  # pyright: ignore[reportArgumentType]


def test_an_account_lasts_as_long_as_the_pace_of_its_releases_so_far() -> None:
    outlook = dataset().outlook
    assert outlook is not None
    assert (outlook.releases, outlook.every, outlook.is_short) == (16, WEEK, False)
    assert outlook.until == NOW + 16 * WEEK
    assert outlook.sentence == (
        "16 more releases of rho 0.01 fit; at one every 7 days, the account runs out on 2031-06-21."
    )


def test_what_is_planned_goes_before_what_was() -> None:
    planned = tuple(Planned("adult", "x", NOW + k * timedelta(hours=1), Fraction(1, 20)) for k in (1, 2, 3))
    outlook = dataset(planned=planned).outlook
    assert outlook is not None
    assert (outlook.releases, outlook.every, outlook.is_short) == (3, timedelta(hours=1), True)
    assert outlook.until == NOW + timedelta(hours=4)


@given(
    cost=st.fractions(Fraction(1, 10**6), 1, max_denominator=10**6),
    left=st.fractions(0, 1, max_denominator=10**6),
)
def test_so_many_releases_fit_and_not_one_more(cost: Fraction, left: Fraction) -> None:
    found = dataset(cap=Fraction(1), spent=1 - left, planned=(Planned("adult", "x", None, cost),)).outlook
    assert found is not None
    assert found.releases * cost <= left < (found.releases + 1) * cost


def test_an_account_that_lasts_for_ever_has_no_date() -> None:
    outlook = dataset(cap=Fraction(10**9)).outlook
    assert outlook is not None
    assert outlook.until is None


@pytest.mark.parametrize("runs", [(), (run(1, NOW, state="abandoned"),), (run(1, NOW, kind="quality"),)])
def test_nothing_is_said_of_an_account_that_nothing_was_released_from(runs: object) -> None:
    assert dataset(runs=runs).outlook is None


def test_plans_for_one_moment_are_no_pace() -> None:
    planned = (Planned("adult", "x", NOW, Fraction(1, 20)),) * 2
    outlook = dataset(runs=(), planned=planned).outlook
    assert outlook is not None
    assert (outlook.releases, outlook.every, outlook.until) == (3, None, None)


def test_one_release_is_no_pace() -> None:
    outlook = dataset(runs=(run(1, NOW),)).outlook
    assert outlook is not None
    assert (outlook.every, outlook.until) == (None, None)


@pytest.mark.parametrize(
    ("every", "told"),
    [
        (timedelta(days=1), "day"),
        (timedelta(hours=30), "1.25 days"),
        (timedelta(days=7), "7 days"),
        (timedelta(minutes=61), "hour"),
        (timedelta(seconds=90), "1.5 minutes"),
    ],
)
def test_a_time_between_releases_is_told_as_a_person_would(every: timedelta, told: str) -> None:
    assert told_interval(every) == told


def test_a_waiting_run_a_red_audit_and_a_nearly_empty_account_need_somebody() -> None:
    planned = (Planned("adult", "x", None, Fraction(1, 10)),)
    runs = (run(1, NOW, audit=Audit(("rows: not these.",))), run(2, NOW, state="waiting"))
    told = [one.problem for one in overview(dataset(runs=runs, planned=planned)).all_troubles]
    assert len(told) == 3
    assert "rows: not these." in told[0]
    assert "no process works on it" in told[1]
    assert "nearly empty: 1 more release of rho 0.1 fits" in told[2]


def test_nothing_needs_somebody_where_all_is_well() -> None:
    assert overview(dataset(runs=(run(1, NOW), run(2, NOW, state="working")))).all_troubles == ()


def test_json_holds_all_of_it() -> None:
    found = json.loads(json.dumps(crowded().as_json()))
    adult = found["datasets"][0]
    assert {one["state"] for one in adult["runs"]} == {"published", "abandoned", "waiting", "working"}
    assert Fraction(adult["left"]["rho"]) == Fraction(3, 100)
    assert adult["outlook"]["releases"] == 1
    assert [one["ok"] for one in (each["audit"] for each in adult["runs"]) if one] == [True, False]
    assert len(found["attention"]) == 4


def test_the_page_shows_every_dataset_run_and_plan_and_names_are_text() -> None:
    page = Reader(render(crowded()))
    text = " ".join(" ".join(page.texts).split())
    assert page.named("script", "img", "b", "link") == []
    for dataset_shown in crowded().datasets:
        assert " ".join(dataset_shown.name.split()) in text
        assert all(one.run in text for one in dataset_shown.runs)
    assert HOSTILE[1] in text
    assert "deployment release-adult-prod" in text
    assert "16 more releases of rho 0.01 fit" in text


def test_a_page_of_nothing_says_so() -> None:
    text = " ".join(Reader(render(overview())).texts)
    assert "There is no account here" in text
    assert "Nothing does." in text
