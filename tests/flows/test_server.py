"""What a Prefect server knows of a release after the real command: everything, and nothing but what is released."""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterId,
    LogFilter,
    LogFilterFlowRunId,
)
from prefect.client.schemas.objects import Artifact, FlowRun, Log, TaskRun
from support.servers import PrefectServer
from support.small_release import DATASET, write_release

from ppsyn.releases.audit import audit
from ppsyn.releases.reader import open_release, read_manifest
from ppsyn.schemas.locations import Location
from ppsyn.schemas.manifest import Manifest
from ppsyn.storage import open_store
from ppsyn.synthesis import Synthesis

PPSYN = str(Path(sys.executable).parent / "ppsyn")
STEPS = ["check inputs", "open account", "restore", "ingest", "count marginals", "one-way"]
ENDING = ["generate", "validate", "write artifacts", "publish"]
ROUND = ["select", "measure", "fit", "checkpoint"]


@dataclass(frozen=True)
class Seen:
    """A release that the command has made, and all that the server has of it."""

    run: str
    folder: Path
    home: Path
    flow_run: FlowRun
    task_runs: list[TaskRun]
    artifacts: dict[str, Artifact]
    logs: list[Log]

    @property
    def release(self) -> Synthesis:
        return open_release(open_store(Location(url=str(self.folder))))

    @property
    def manifest(self) -> Manifest:
        return read_manifest(open_store(Location(url=str(self.folder))))[0]

    def artifact(self, name: str) -> Artifact:
        return self.artifacts[f"{DATASET}-{name}"]

    def table(self, name: str) -> list[dict[str, Any]]:
        data = self.artifact(name).data
        assert isinstance(data, str)
        return json.loads(data)


@pytest.fixture(scope="module")
def seen(prefect: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Generator[Seen]:
    folder = tmp_path_factory.mktemp("release")
    home = folder / "prefect"
    file = write_release(folder)
    environment = {**os.environ, "PREFECT_API_URL": prefect.api_url, "PREFECT_HOME": str(home)}
    done = subprocess.run(
        [PPSYN, "release", str(file), "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    with SyncPrefectClient(prefect.api_url) as client:
        yield _look(client, told["run"], Path(told["release"]), home)


def _look(client: SyncPrefectClient, run: str, folder: Path, home: Path) -> Seen:
    """Ask the server once it knows how all tasks ended; what they tell arrives a little later than they end."""
    (flow_run,) = [found for found in client.read_flow_runs() if found.name == f"{DATASET} {run}"]
    give_up = time.monotonic() + 60
    while True:
        task_runs = _task_runs(client, flow_run.id)
        names = {task_run.name for task_run in task_runs if task_run.state and task_run.state.is_final()}
        if f"{DATASET} {run} publish" in names or time.monotonic() > give_up:
            break
        time.sleep(0.2)
    mine = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run.id]))
    artifacts = {artifact.key or "": artifact for artifact in client.read_artifacts(artifact_filter=mine)}
    logs = client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[flow_run.id])), limit=200)
    return Seen(run, folder, home, flow_run, task_runs, artifacts, logs)


def _task_runs(client: SyncPrefectClient, flow_run: UUID) -> list[TaskRun]:
    return client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run])), limit=200)


def expected_names(seen: Seen) -> list[str]:
    rounds = [f"round {number} {step}" for number in range(1, len(seen.release.rounds) + 1) for step in ROUND]
    return [f"{DATASET} {seen.run} {step}" for step in (*STEPS, *rounds, *ENDING)]


def test_the_release_is_there_and_audits(seen: Seen) -> None:
    assert [finding for finding in audit(open_store(Location(url=str(seen.folder)))) if finding.problem] == []


def test_the_flow_run_is_completed_and_its_name_tells_dataset_and_run(seen: Seen) -> None:
    assert seen.flow_run.state is not None
    assert seen.flow_run.state.name == "Completed"
    assert seen.flow_run.name == f"{DATASET} {seen.run}"
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{8}", seen.run)


def test_the_flow_run_was_told_names_and_no_values(seen: Seen) -> None:
    assert set(seen.flow_run.parameters) == {"file", "settings", "resume", "new"}
    assert seen.flow_run.parameters["file"].endswith("release.yaml")


def test_every_task_run_is_stored_once_under_a_name_that_tells_dataset_run_and_round(seen: Seen) -> None:
    assert len(seen.release.rounds) >= 2
    assert Counter(task_run.name for task_run in seen.task_runs) == Counter(expected_names(seen))


def test_every_task_run_is_completed_in_order(seen: Seen) -> None:
    assert {task_run.state.name for task_run in seen.task_runs if task_run.state} == {"Completed"}
    by_start = sorted(seen.task_runs, key=lambda task_run: task_run.start_time or task_run.created)
    assert [task_run.name for task_run in by_start] == expected_names(seen)


def test_no_task_run_has_inputs_or_a_persisted_result(seen: Seen) -> None:
    for task_run in seen.task_runs:
        assert task_run.state is not None
        assert task_run.state.data is None
        assert task_run.cache_key is None
        assert task_run.run_count == 1


def test_prefect_wrote_no_result_files(seen: Seen) -> None:
    assert [path for path in (seen.home / "storage").rglob("*") if path.is_file()] == []
    assert {path.name for path in seen.home.iterdir()} <= {"memo_store.toml", "profiles.toml", "storage"}


def test_there_are_six_artifacts_under_the_names_of_the_dataset(seen: Seen) -> None:
    names = {"progress", "rounds", "budget", "validation", "release", "report"}
    assert set(seen.artifacts) == {f"{DATASET}-{name}" for name in names}


def test_an_artifact_tells_its_run(seen: Seen) -> None:
    told = {name: f"{seen.artifact(name).description} {seen.artifact(name).data}" for name in ("rounds", "validation")}
    assert [name for name, text in told.items() if seen.run not in text] == []


def test_the_report_is_a_link_away(seen: Seen) -> None:
    link = re.fullmatch(rf"\[Report of run {seen.run}\]\(file://(/\S+)\)", str(seen.artifact("report").data))
    assert link is not None
    assert Path(link[1]) == seen.folder / "report.html"
    assert Path(link[1]).is_file()


def test_the_run_is_named_by_when_it_starts(seen: Seen) -> None:
    assert seen.flow_run.start_time is not None
    assert seen.run == f"{seen.flow_run.start_time:%Y%m%d-%H%M%S}-{seen.flow_run.id.hex[-8:]}"


def test_the_progress_bar_ends_at_a_hundred(seen: Seen) -> None:
    assert seen.artifact("progress").type == "progress"
    assert seen.artifact("progress").data == 100.0


def test_the_progress_bar_tells_the_last_round_beside_it(seen: Seen) -> None:
    rounds = seen.release.rounds
    last = f"round {len(rounds)}: {' x '.join(rounds[-1].clique)} in {rounds[-1].groups} groups, noise "
    told = seen.artifact("progress").description or ""
    assert told.startswith(f"{DATASET}, run {seen.run}: {last}")
    assert told.endswith("100% of the budget spent")


def test_the_table_of_rounds_has_a_row_a_round(seen: Seen) -> None:
    rounds = seen.release.rounds
    assert [row["round"] for row in seen.table("rounds")] == list(range(1, len(rounds) + 1))
    assert [row["marginal"] for row in seen.table("rounds")] == [" x ".join(done.clique) for done in rounds]
    assert [row["groups"] for row in seen.table("rounds")] == [done.groups for done in rounds]


def test_the_table_of_the_budget_has_a_row_a_release(seen: Seen) -> None:
    (row,) = seen.table("budget")
    rho = float(seen.manifest.guarantee.rho)
    assert row == {"run": seen.run, "reserved (rho)": 0, "spent (rho)": rho, "state": "published"}
    assert re.fullmatch(rf"{DATASET}: rho \S+ left of \S+", seen.artifact("budget").description or "")


def test_the_table_of_checks_is_what_was_published(seen: Seen) -> None:
    published = json.loads((seen.folder / "validation.json").read_bytes())
    assert seen.table("validation") == published["results"]
    assert all(row["success"] for row in seen.table("validation"))


def test_the_release_is_told_in_markdown(seen: Seen) -> None:
    text = seen.artifact("release").data
    guarantee = seen.manifest.guarantee
    assert seen.artifact("release").type == "markdown"
    assert isinstance(text, str)
    assert text.splitlines()[0] == f"## {DATASET}: run {seen.run}"
    assert f"published at `{seen.folder}`" in text
    assert f"epsilon {guarantee.epsilon:.4g} at delta {guarantee.delta:g}" in text
    assert f"{len(seen.release.rounds)} rounds, {len(seen.release.measurements)} measurements" in text


def test_the_log_has_a_line_a_round(seen: Seen) -> None:
    lines = [log.message for log in sorted(seen.logs, key=lambda log: log.timestamp) if log.name == "prefect.flow_runs"]
    told = [line for line in lines if line.startswith("round ")]
    assert len(told) == len(seen.release.rounds)
    for number, (line, done) in enumerate(zip(told, seen.release.rounds, strict=True), 1):
        assert line.startswith(f"round {number}: {' x '.join(done.clique)} in {done.groups} groups, ")
    assert told[-1].endswith("100% of the budget spent")
