from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppsyn.benchmark import series as benchmark
from ppsyn.benchmark.options import series_of
from ppsyn.benchmark.series import CHANGES, Month, Series, measure, summarize
from ppsyn.benchmark.tables import write_table
from ppsyn.data.encoding import EncodedTable
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import ConfigError

OPTIONS = {
    "datasets": "small",
    "changes": "same",
    "mechanisms": "ppsyn",
    "seeds": "0",
    "releases": 3,
    "epsilon": 4.0,
    "model_mb": 0.1,
}


def small_table() -> EncodedTable:
    domain = Domain((Attribute("a", 6), Attribute("b", 5), Attribute("c", 3)))
    rng = np.random.default_rng(0)
    a = rng.integers(0, 6, 500).astype(np.int32)
    columns = {"a": a, "b": (a * 3 // 4).astype(np.int32), "c": rng.integers(0, 3, 500).astype(np.int32)}
    return EncodedTable(domain, columns)


@pytest.fixture
def data_dir(tmp_path: Path) -> str:
    write_table(tmp_path / "data", "small", small_table())
    return str(tmp_path / "data")


def months(*ratios: float) -> list[Month]:
    return [Month(0.1 * ratio, 0.1, 0.05 if ratio == ratios[-1] else None, 2.0, 3.0) for ratio in ratios]


SERIES = Series("small", "same", "ppsyn", 0, 3, 1.0, 1.0)


def test_a_series_is_measured_once(data_dir: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (asked,) = series_of(**OPTIONS)
    found = measure(asked, data_dir, tmp_path / "out")
    assert len(found) == 3
    assert [month.at_once is None for month in found] == [True, True, False]
    assert found[0].connected == found[0].alone
    monkeypatch.setattr(benchmark, "make_plan", None)
    assert measure(asked, data_dir, tmp_path / "out") == found


def test_ratios_are_means_over_seeds() -> None:
    (found,) = summarize({SERIES: months(1.0, 0.8), replace(SERIES, seed=1): months(1.0, 0.6)})
    assert found.last[0] == pytest.approx(0.7)
    assert found.at_once[0] == pytest.approx(1.4)
    assert (found.worst, found.seeds, found.slower) == (1.0, 2, 1.0)


@pytest.mark.parametrize("change", CHANGES)
def test_tables_change_as_their_name_says(change: str) -> None:
    table, order = small_table(), np.arange(500)
    first, last = (CHANGES[change](table, order, month, 12).columns["a"] for month in (0, 11))
    assert (first.shape == last.shape and (first == last).all()) == (change == "same")


@pytest.mark.parametrize(
    ("option", "value"), [("changes", "none"), ("mechanisms", "best"), ("seeds", "x"), ("epsilon", -1.0)]
)
def test_what_cannot_be_done_is_refused(option: str, value: object) -> None:
    with pytest.raises(ConfigError):
        series_of(**{**OPTIONS, option: value})
