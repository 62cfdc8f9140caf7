from pathlib import Path
from xml.etree import ElementTree

import pytest

from ppsyn.benchmark.plots import chart_of, draw_all, sweep_of
from ppsyn.benchmark.results import Result
from ppsyn.benchmark.summary import Cell, summarize


def cells_of(*points: tuple[str, float, int, list[float]], metric: str = "workload_error") -> list[Cell]:
    return summarize(
        Result("toy", mechanism, epsilon, degree, {metric: error}, None)
        for mechanism, epsilon, degree, errors in points
        for error in errors
    )


TWO = (("ppsyn", 0.1, 3, [0.1, 0.3]), ("ppsyn", 1.0, 3, [0.1]), ("aim", 1.0, 3, [0.2]), ("aim", 0.1, 3, [0.4]))


def test_lines_go_over_epsilon_one_a_mechanism_with_standard_errors() -> None:
    chart = chart_of(cells_of(*TWO))
    assert (chart.across, chart.up) == ("epsilon", "workload error")
    ours, theirs = chart.lines
    assert (ours.label, ours.places, theirs.places) == ("ppsyn", (0.1, 1.0), (0.1, 1.0))
    assert ours.means == pytest.approx((0.2, 0.1))
    assert ours.errors == pytest.approx((0.1, 0.0))


def test_a_setting_that_is_swept_is_the_axis_and_others_are_level() -> None:
    points = [(f"ppsyn:eta={eta}", 0.1, 3, [eta]) for eta in (0.3, 1.0, 0.5)]
    chart = chart_of(cells_of(*points, ("aim", 0.1, 3, [0.2])))
    assert chart.across == "eta"
    assert [(line.label, line.places, line.means) for line in chart.lines] == [
        ("ppsyn, epsilon 0.1", (0.3, 0.5, 1.0), (0.3, 0.5, 1.0)),
        ("aim, epsilon 0.1", (0.3, 1.0), (0.2, 0.2)),
    ]


def test_a_degree_that_is_swept_is_the_axis() -> None:
    chart = chart_of(cells_of(*[("ppsyn", 0.1, degree, [0.1 * degree]) for degree in (2, 3, 4)]))
    assert chart.lines[0].places == (2, 3, 4)
    assert chart.ticks == {2: "2", 3: "3", 4: "4"}


def test_mechanisms_alone_stand_side_by_side() -> None:
    chart = chart_of(cells_of(("ppsyn", 1.0, 3, [0.1]), ("aim", 1.0, 3, [0.2])))
    assert chart.ticks == {0: "ppsyn", 1: "aim"}


def test_degrees_and_epsilons_at_once_are_lines_of_their_own() -> None:
    chart = chart_of(cells_of(*[("ppsyn", epsilon, degree, [0.1]) for epsilon in (0.1, 1.0) for degree in (2, 3)]))
    assert [line.label for line in chart.lines] == ["ppsyn, 2-way", "ppsyn, 3-way"]


@pytest.mark.parametrize(
    ("mechanisms", "setting"),
    [
        (["ppsyn:eta=0.1", "ppsyn:eta=0.2"], ""),
        (["ppsyn:partition=cells", "ppsyn:partition=balanced", "ppsyn"], ""),
        (["ppsyn:eta=0.1", "ppsyn:eta=0.2", "ppsyn:eta=0.3"], "eta"),
        (["ppsyn", "aim", "mst"], ""),
        ([], ""),
    ],
)
def test_three_numbers_of_a_setting_make_a_sweep(mechanisms: list[str], setting: str) -> None:
    assert sweep_of(mechanisms)[0] == setting


def test_other_settings_stay_with_the_base_of_a_sweep() -> None:
    names = [f"ppsyn:rounds=5+eta={eta}+partition=cells" for eta in ("0.1", "0.2", "0.3")]
    setting, values = sweep_of([*names, "aim:rounds=5"])
    assert setting == "eta"
    assert values[names[0]] == ("ppsyn:rounds=5+partition=cells", 0.1)


@pytest.mark.parametrize("metric", ["workload_error", "range_3_error"])
def test_a_figure_is_drawn_twice_and_the_same_each_time(tmp_path: Path, metric: str) -> None:
    cells = cells_of(*TWO, metric=metric)
    first, again = draw_all(cells, tmp_path / "a"), draw_all(cells, tmp_path / "b")
    assert [path.name for path in first] == [f"toy-{metric}.png", f"toy-{metric}.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert first[0].read_bytes().startswith(b"\x89PNG")
    assert ElementTree.fromstring(first[1].read_text(encoding="utf-8")).tag.endswith("svg")


def test_figures_of_nothing_of_many_lines_and_of_noughts_can_be_drawn(tmp_path: Path) -> None:
    assert draw_all([], tmp_path) == []
    many = [(f"m{number}", epsilon, 3, [0.0]) for number in range(12) for epsilon in (0.1, 1.0)]
    assert len(draw_all(cells_of(*many, metric="range_3_error"), tmp_path)) == 2
