import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppsyn.benchmark.results import ERRORS, Result
from ppsyn.benchmark.summary import WARNING, as_text, summarize

values = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=6)


def results_of(mechanism: str, errors: list[float], epsilon: float = 1.0) -> list[Result]:
    return [Result("toy", mechanism, epsilon, 3, {"workload_error": error}, 2.0) for error in errors]


@given(values, values)
def test_the_ratio_is_that_of_the_means_and_aim_is_at_one(ours: list[float], theirs: list[float]) -> None:
    first, second = summarize([*results_of("ppsyn", ours), *results_of("aim", theirs)])
    assert (first.mechanism, second.mechanism) == ("ppsyn", "aim")
    assert first.ratio == pytest.approx(statistics.fmean(ours) / statistics.fmean(theirs))
    assert second.ratio == pytest.approx(1)


@given(values)
def test_spread_and_standard_error_are_those_of_the_runs(errors: list[float]) -> None:
    (cell,) = summarize(results_of("ppsyn", errors))
    assert cell.runs == len(errors)
    assert cell.mean == pytest.approx(statistics.fmean(errors))
    if len(errors) == 1:
        assert (cell.spread, cell.standard_error) == (None, 0)
    else:
        assert cell.spread == pytest.approx(statistics.stdev(errors))
        assert cell.standard_error == pytest.approx(statistics.stdev(errors) / len(errors) ** 0.5)


def test_there_is_no_ratio_without_aim_at_the_same_setting_or_to_nought() -> None:
    cells = summarize([*results_of("ppsyn", [0.1]), *results_of("aim", [0.2], epsilon=2.0)])
    assert [cell.ratio for cell in cells] == [None, 1.0]
    assert summarize([*results_of("ppsyn", [0.1]), *results_of("aim", [0.0])])[0].ratio is None


def test_every_metric_that_was_measured_has_its_cells() -> None:
    result = Result("toy", "ppsyn", 1.0, 3, dict.fromkeys(ERRORS, 0.5), None)
    assert [cell.metric for cell in summarize([result])] == list(ERRORS)
    assert summarize([Result("toy", "ppsyn", 1.0, 3, {}, 1.0)]) == []


def test_the_text_has_a_table_for_each_setting_and_a_warning() -> None:
    cells = summarize([*results_of("ppsyn", [0.1, 0.3]), *results_of("aim", [0.4]), *results_of("ppsyn", [0.2], 2.0)])
    text = as_text(cells)
    assert "toy, epsilon 1, workload of 3-way marginals" in text
    assert "toy, epsilon 2, workload of 3-way marginals" in text
    (line,) = [line for line in text.splitlines() if "ppsyn" in line and "+-" in line]
    assert line.split() == ["workload", "error", "ppsyn", "0.2", "+-", "0.14", "2", "0.500", "2.0"]
    assert " ".join(text.split("\n\n")[-1].split()) == WARNING


def test_a_cell_as_json_holds_plain_values() -> None:
    (cell,) = summarize(results_of("ppsyn", [0.1]))
    assert cell.as_json()["spread"] is None
    assert cell.as_json()["mean"] == 0.1


def test_seconds_a_round_are_told_of_runs_that_have_rounds() -> None:
    runs = [Result("toy", "ppsyn", 1.0, 3, {"workload_error": 0.1}, seconds, rounds) for seconds, rounds in
            ((6.0, 3.0), (8.0, 2.0), (5.0, 0.0), (7.0, None))]  # fmt: skip
    (cell,) = summarize(runs)
    assert (cell.seconds, cell.round_seconds) == (6.5, 3.0)
    assert as_text([cell]).splitlines()[2].endswith("6.5      3.00")
    assert summarize(results_of("mst", [0.1]))[0].round_seconds is None
