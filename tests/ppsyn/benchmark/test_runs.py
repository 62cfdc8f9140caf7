import json
from pathlib import Path

import grimp
import pytest
from support.benchmark_tables import QUICK, toy_settings, write_toys

import ppsyn
from ppsyn.benchmark.contenders import NAMES, contender
from ppsyn.benchmark.results import write_row
from ppsyn.benchmark.runs import code_digest, finished_rows, measure, measuring_sources, missing_runs
from ppsyn.benchmark.tables import open_table, random_workload, write_table
from ppsyn.errors import ConfigError
from ppsyn.schemas.benchmark import METRICS, BenchmarkRun


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toys(tmp_path_factory.mktemp("toys"))


def one_run(data_dir: Path, **changes: object) -> BenchmarkRun:
    (run,) = toy_settings(data_dir, data_dir, seeds=(3,), **changes).runs(code_digest())
    return run


def test_a_run_measures_what_it_was_asked_to(data_dir: Path) -> None:
    row = measure(one_run(data_dir))
    assert (row.dataset, row.mechanism, row.epsilon, row.seed) == ("toy", QUICK, 1.0, 3)
    for error in (row.workload_error, row.one_way_error, row.two_way_error, row.three_way_error):
        assert error is not None
        assert 0 < error < 0.5
    assert row.range_3_error is not None
    assert 0 < row.range_3_error < 0.1
    assert row.range_5_error is None  # of four attributes
    assert row.classification_error is None
    assert row.seconds is not None
    assert row.rounds is not None
    assert 0 < row.rounds <= 4
    assert row.is_private


def test_a_run_measures_nothing_that_it_was_not_asked_to(data_dir: Path) -> None:
    row = measure(one_run(data_dir, metrics=("workload",)))
    assert row.workload_error is not None
    assert (row.one_way_error, row.range_3_error, row.classification_error) == (None, None, None)


def test_a_known_table_is_classified(data_dir: Path) -> None:
    row = measure(one_run(data_dir, datasets=("br2000",), metrics=("classification",), epsilons=(20.0,)))
    rates = json.loads(row.classification_errors)
    assert set(rates) == {"attribute 5", "attribute 7", "attribute 13"}
    assert row.classification_error == pytest.approx(sum(rates.values()) / 3)
    assert 0 < row.classification_error < 0.45
    assert row.workload_error is None


def test_a_table_without_targets_is_not_classified(data_dir: Path) -> None:
    row = measure(one_run(data_dir, metrics=("classification",)))
    assert (row.classification_error, row.classification_errors, row.seconds) == (None, "{}", None)


def test_at_a_large_epsilon_the_error_is_small(data_dir: Path) -> None:
    row = measure(one_run(data_dir, mechanisms=("ppsyn:rounds=8",), epsilons=(20.0,)))
    assert row.workload_error is not None
    assert row.workload_error < 0.06


@pytest.mark.slow
def test_the_printed_paper_is_marked_as_not_private(data_dir: Path) -> None:
    row = measure(one_run(data_dir, mechanisms=("printed-not-private",)))
    assert not row.is_private


def test_runs_that_are_done_are_not_missing_until_the_table_changes(data_dir: Path, tmp_path: Path) -> None:
    write_table(tmp_path, "toy", open_table(str(data_dir), "toy"))
    settings = toy_settings(tmp_path, tmp_path / "out", metrics=METRICS[:1])
    first, second = missing_runs(settings)
    write_row(tmp_path / "out", first, measure(first))
    assert missing_runs(settings) == [second]
    changed = settings.model_copy(update={"model_mb": 2.0})
    assert len(missing_runs(changed)) == 2
    write_table(tmp_path, "toy", open_table(str(data_dir), "wide"))
    open_table.cache_clear()
    assert len(missing_runs(settings)) == 2


def test_a_run_is_missing_until_its_row_is_written(data_dir: Path, tmp_path: Path) -> None:
    settings = toy_settings(data_dir, tmp_path)
    assert finished_rows(settings) == []
    run, *others = missing_runs(settings)
    row = measure(run)
    write_row(tmp_path, run, row)
    assert finished_rows(settings) == [row]
    assert missing_runs(settings) == others


def test_every_module_that_measures_a_run_is_part_of_its_digest() -> None:
    graph = grimp.build_graph("ppsyn", cache_dir=None)
    needed = {"ppsyn.benchmark.runs", *graph.find_upstream_modules("ppsyn.benchmark.runs")}
    measuring = {name for name in needed if name.split(".")[1] in ("benchmark", "evaluation")}
    hashed = {_module(path) for path in measuring_sources()}
    assert "ppsyn.evaluation.metrics" in measuring
    assert measuring <= hashed


def _module(path: Path) -> str:
    parts = path.relative_to(Path(ppsyn.__path__[0]).resolve().parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_mechanism_can_be_had_by_its_name(data_dir: Path) -> None:
    domain = open_table(str(data_dir), "toy").domain
    assert random_workload(domain)
    assert all(contender(name) for name in NAMES)
    with pytest.raises(ConfigError, match=", ".join(NAMES)):
        contender("nobody")
