"""The task of a benchmark, without Prefect."""

from pathlib import Path
from typing import NoReturn

import pytest
from support.benchmark_tables import toy_settings, write_toys

from ppsyn.benchmark.runs import missing_runs
from ppsyn.errors import InvariantError, ModelTooLargeError
from ppsyn.schemas.benchmark import BenchmarkRun
from ppsyn.schemas.locations import Location
from ppsyn.schemas.run import RunRef
from ppsyn.tasks import benchmark

CANARY = "canary7f3a91"


def ref_of(run: BenchmarkRun, out: Path) -> RunRef:
    location = Location(url=str(out))
    return RunRef(run=run.name, dataset=run.dataset, root=location, private=location, releases=location)


def test_a_run_leaves_its_row(tmp_path: Path) -> None:
    settings = toy_settings(write_toys(tmp_path), tmp_path / "out")
    first, second = missing_runs(settings)
    benchmark.measure.fn(ref_of(first, tmp_path / "out"), first)
    assert missing_runs(settings) == [second]


def test_our_own_errors_pass(tmp_path: Path) -> None:
    run, _ = missing_runs(toy_settings(write_toys(tmp_path), tmp_path / "out", model_mb=1e-6))
    with pytest.raises(ModelTooLargeError):
        benchmark.measure.fn(ref_of(run, tmp_path / "out"), run)


def test_of_any_other_error_the_type_is_told_and_the_rest_kept_with_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: BenchmarkRun) -> NoReturn:
        raise ValueError(CANARY)

    run, _ = missing_runs(toy_settings(write_toys(tmp_path), tmp_path / "out"))
    monkeypatch.setattr(benchmark, "row_of", fail)
    with pytest.raises(InvariantError) as error:
        benchmark.measure.fn(ref_of(run, tmp_path / "out"), run)
    assert CANARY not in str(error.value)
    assert CANARY in (tmp_path / "out" / "runs" / run.name / "private" / "failure.txt").read_text(encoding="utf-8")
