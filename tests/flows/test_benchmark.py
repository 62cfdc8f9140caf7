"""Whole benchmarks of small tables, in this process, against a real server."""

import json
import multiprocessing
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from support.benchmark_tables import OTHER, QUICK, toy_settings, write_toys

from ppsyn.benchmark.summary import WARNING
from ppsyn.errors import ConfigError, ModelTooLargeError
from ppsyn.flows.benchmark import benchmark
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit

pytestmark = pytest.mark.usefixtures("prefect_api")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toys(tmp_path_factory.mktemp("toys"))


def ppsyn(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["benchmark", *map(str, arguments)])


def command(data_dir: Path, out: Path, *more: object) -> list[object]:
    return ["--data-dir", data_dir, "--datasets", "toy", "--mechanisms", f"{QUICK},{OTHER}", "--epsilons", "0.5,2",
            "--seeds", "0-1", "--out", out, *more]  # fmt: skip


def contents(out: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in (out / "runs").glob("*/row.parquet")}


def test_a_benchmark_has_a_row_a_run_a_table_and_plots(data_dir: Path, tmp_path: Path) -> None:
    done = ppsyn(*command(data_dir, tmp_path))
    assert done.exit_code == 0, done.output
    frame = pd.read_parquet(tmp_path / "runs.parquet")
    assert len(frame) == 2 * 2 * 2
    assert frame.groupby(["mechanism", "epsilon"])["seed"].agg(set).map(lambda seeds: seeds == {0, 1}).all()
    assert frame["workload_error"].between(0, 1).all()
    assert "toy, epsilon 0.5, workload of 3-way marginals" in done.stdout
    assert WARNING.split(maxsplit=1)[0] in done.stdout
    assert done.stderr.count("8 of 8: ") == 1
    assert {path.suffix for path in (tmp_path / "plots").iterdir()} == {".png", ".svg"}


def test_runs_that_are_done_are_not_repeated_and_new_ones_are_added(data_dir: Path, tmp_path: Path) -> None:
    settings = toy_settings(data_dir, tmp_path)
    benchmark(settings)
    before = contents(tmp_path)
    lost = sorted(before)[0]
    (tmp_path / "runs" / lost / "row.parquet").unlink()
    assert benchmark(settings.model_copy(update={"epsilons": (1.0, 2.0)})) == str(tmp_path / "runs.parquet")
    after = contents(tmp_path)
    assert len(after) == 4
    assert {name for name in before if before[name] != after[name]} == {lost}  # noise never comes twice


@pytest.mark.slow
def test_a_second_command_runs_nothing_and_says_the_same(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ppsyn(*command(data_dir, tmp_path, "--json"))
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # which would be told, were it needed
    again = ppsyn(*command(data_dir, tmp_path, "--json"))
    assert (again.exit_code, again.stderr) == (0, "")
    assert again.stdout == first.stdout
    found = json.loads(first.stdout)
    assert found["warning"] == WARNING
    assert {cell["runs"] for cell in found["cells"]} == {2}


def test_a_run_that_fails_does_not_stop_the_others(data_dir: Path, tmp_path: Path) -> None:
    settings = toy_settings(data_dir, tmp_path, datasets=("wide", "toy"), model_mb=0.005)
    with pytest.raises(ModelTooLargeError):
        benchmark(settings)
    assert pd.read_parquet(tmp_path / "runs.parquet")["dataset"].tolist() == ["toy", "toy"]


def test_a_failure_is_told_after_what_was_found(data_dir: Path, tmp_path: Path) -> None:
    done = ppsyn(*command(data_dir, tmp_path, "--datasets", "wide,toy", "--model-mb", "0.005", "--seeds", "0"))
    assert done.exit_code == Exit.MISTAKE
    assert "toy, epsilon 0.5" in done.stdout
    assert done.stderr.strip().splitlines()[-1].startswith("The one-way model needs")


@pytest.mark.slow
def test_two_processes_find_as_much_as_one_and_tell_failures_as_well(data_dir: Path, tmp_path: Path) -> None:
    settings = toy_settings(data_dir, tmp_path, datasets=("wide", "toy"), model_mb=0.005)
    with pytest.raises(ConfigError, match="The one-way model needs"):
        benchmark(settings, jobs=2)
    assert pd.read_parquet(tmp_path / "runs.parquet")["dataset"].tolist() == ["toy", "toy"]
    assert multiprocessing.active_children() == []


def test_other_tools_stand_beside_ours_and_give_the_ratio(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "peers.csv").write_text(
        "dataset,mechanism,epsilon,seed,workload_error\ntoy,aim,0.5,0,0.5\ntoy,aim,2,0,0.25\n", encoding="utf-8"
    )
    done = ppsyn(*command(data_dir, tmp_path / "out", "--peers", tmp_path / "peers.csv", "--json"))
    cells = [cell for cell in json.loads(done.stdout)["cells"] if cell["metric"] == "workload_error"]
    assert {cell["mechanism"] for cell in cells} == {QUICK, OTHER, "aim"}
    assert all(
        cell["ratio"] == pytest.approx(cell["mean"] / (0.5 if cell["epsilon"] == 0.5 else 0.25)) for cell in cells
    )
    assert "aim" not in set(pd.read_parquet(tmp_path / "out" / "runs.parquet")["mechanism"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--datasets", "none"], "There is no table 'none'"),
        (["--mechanisms", "nobody"], "nobody"),
        (["--epsilons", "low"], "--epsilons='low'"),
        (["--seeds", ""], "--seeds=''"),
        (["--metrics", "beauty"], "--metrics='beauty'"),
        (["--degree", "9"], "degrees.0"),
        (["--model-mb", "-1"], "model_mb"),
        (["--data-dir", "/nowhere"], "Expected a folder at /nowhere, got none."),
        (["--peers", "/nowhere.csv"], "/nowhere.csv"),
        (["--jobs", "0"], "--jobs"),
        (["extra"], "No such command"),
    ],
)
def test_a_mistake_is_told_in_a_sentence_before_anything_runs(
    data_dir: Path, tmp_path: Path, arguments: list[str], told: str
) -> None:
    done = ppsyn(*command(data_dir, tmp_path / "out"), *arguments)
    assert done.exit_code == Exit.MISTAKE
    assert told in done.stderr
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)
    assert not (tmp_path / "out").exists()


def test_prefect_is_told_which_runs_there_are_and_not_what_they_found(
    data_dir: Path, tmp_path: Path, prefect_api: str
) -> None:
    benchmark(toy_settings(data_dir, tmp_path, seeds=(0,)))
    row = pd.read_parquet(tmp_path / "runs.parquet").iloc[0]
    with SyncPrefectClient(prefect_api) as client:
        own = FlowFilter(name=FlowFilterName(any_=["benchmark"]))
        (newest, *_) = client.read_flow_runs(flow_filter=own, limit=1, sort="START_TIME_DESC")
        found = newest.model_dump_json() + "".join(
            run.model_dump_json() for run in client.read_task_runs() if run.flow_run_id == newest.id
        )
        logs = "".join(log.message for log in client.read_logs() if log.flow_run_id == newest.id)
    assert QUICK in found
    for value in (row["workload_error"], row["range_3_error"], row["table"]):
        assert str(value) not in found + logs


@pytest.mark.slow
def test_a_benchmark_that_is_killed_goes_on(data_dir: Path, tmp_path: Path) -> None:
    script = [str(Path(sys.executable).parent / "ppsyn"), "benchmark"]
    script += [str(part) for part in command(data_dir, tmp_path, "--seeds", "0-19")]
    with subprocess.Popen(script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        give_up = time.monotonic() + 120
        while len(contents(tmp_path)) < 3 and time.monotonic() < give_up:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    before = contents(tmp_path)
    assert 3 <= len(before) < 80
    done = subprocess.run(script, capture_output=True, text=True, check=True, timeout=300)
    assert f" of {80 - len(before)}: " in done.stderr
    after = contents(tmp_path)
    assert len(after) == 80
    assert before.items() <= after.items()
