from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from support.benchmark_tables import toy_settings

from ppsyn.benchmark.results import ERRORS, Row, merge, read_peers, read_row, results, write_row
from ppsyn.errors import ConfigError
from ppsyn.schemas.benchmark import BenchmarkRun

ROW = Row(
    dataset="toy",
    mechanism="ppsyn",
    epsilon=1.0,
    seed=0,
    workload_error=0.1,
    range_3_error=0.2,
    range_5_error=None,
    classification_error=None,
    one_way_error=0.3,
    two_way_error=0.4,
    three_way_error=0.5,
    seconds=1.5,
    rounds=7.0,
    model_size_mb=0.2,
    is_private=True,
    degree=3,
    workload_seed=0,
    model_mb=1.0,
    delta=1e-9,
    metrics="workload,ways,ranges",
    classification_errors="{}",
    table="t1",
    code="c1",
)


def runs(tmp_path: Path) -> list[BenchmarkRun]:
    return list(toy_settings(tmp_path, tmp_path).runs("c1"))


def test_a_row_comes_back_for_its_run_and_its_table_alone(tmp_path: Path) -> None:
    first, second = runs(tmp_path)
    assert read_row(tmp_path, first, "t1") is None
    write_row(tmp_path, first, ROW)
    assert read_row(tmp_path, first, "t1") == ROW
    assert read_row(tmp_path, first, "t2") is None
    assert read_row(tmp_path, second, "t1") is None


def test_a_file_that_is_no_row_counts_as_none(tmp_path: Path) -> None:
    first, _ = runs(tmp_path)
    write_row(tmp_path, first, ROW)
    (path,) = (tmp_path / "runs").glob("*/row.parquet")
    for damage in (b"", b"nonsense", path.read_bytes()[:-9]):
        path.write_bytes(damage)
        assert read_row(tmp_path, first, "t1") is None
        assert len(pd.read_parquet(merge(tmp_path))) == 0


def test_rows_are_put_together_in_order_with_columns_named_as_promised(tmp_path: Path) -> None:
    first, second = runs(tmp_path)
    write_row(tmp_path, first, replace(ROW, mechanism="b"))
    write_row(tmp_path, second, replace(ROW, mechanism="a"))
    frame = pd.read_parquet(merge(tmp_path))
    assert frame["mechanism"].tolist() == ["a", "b"]
    assert frame.columns.tolist() == [field.name for field in fields(Row)]
    assert frame.columns.tolist()[:5] == ["dataset", "mechanism", "epsilon", "seed", "workload_error"]
    assert frame["range_5_error"].isna().all()
    assert pq.read_schema(tmp_path / "runs.parquet").field("seed").type == "int64"


def test_nothing_but_whole_files_is_left_behind(tmp_path: Path) -> None:
    write_row(tmp_path, runs(tmp_path)[0], ROW)
    merge(tmp_path)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"row.parquet", "runs.parquet"}


def test_what_was_not_measured_is_not_shown() -> None:
    (result,) = results([ROW])
    assert set(result.errors) == set(ERRORS) - {"range_5_error", "classification_error"}


def peers(tmp_path: Path, text: str) -> Path:
    (tmp_path / "peers.csv").write_text(text, encoding="utf-8")
    return tmp_path / "peers.csv"


def test_other_tools_tell_what_they_know(tmp_path: Path) -> None:
    text = "dataset,mechanism,epsilon,seed,workload_error,seconds\ntoy,privmrf,0.1,0,0.2,60\n1,privmrf,1,1,,\n"
    first, second = read_peers(peers(tmp_path, text), ["ppsyn"], 3)
    assert (first.dataset, first.epsilon, first.degree, first.seconds) == ("toy", 0.1, 3, 60)
    assert first.errors == {"workload_error": 0.2}
    assert (second.dataset, second.errors, second.seconds) == ("1", {}, None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "readable file"),
        ("dataset,mechanism,epsilon,workload_error\n", "column 'seed'"),
        ("dataset,mechanism,epsilon,seed\n", "column of errors"),
        ("dataset,mechanism,epsilon,seed,workload_error\ntoy,x,0.1,0,much\n", "line 2: Expected workload_error='much'"),
        ("dataset,mechanism,epsilon,seed,workload_error\ntoy,x,0.1,0,-1\n", "workload_error=-1"),
        ("dataset,mechanism,epsilon,seed,workload_error\ntoy,x,,0,1\n", "epsilon=nan"),
        ("dataset,mechanism,epsilon,seed,workload_error\ntoy,,1,0,1\n", "a dataset and a mechanism"),
        ("dataset,mechanism,epsilon,seed,workload_error\ntoy,ppsyn,1,0,1\n", "another name than 'ppsyn'"),
    ],
)
def test_a_file_that_holds_no_results_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_peers(peers(tmp_path, text), ["ppsyn"], 3)
    assert told in str(error.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="FileNotFoundError"):
        read_peers(tmp_path / "none.csv", ["ppsyn"], 3)
