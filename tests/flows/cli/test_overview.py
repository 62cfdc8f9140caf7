"""The command: what it prints, what it writes, and its exit codes."""

import json
import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.published import OPEN, RUN, Published, copied, shared_release

from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture(autouse=True)
def _without_prefect(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    monkeypatch.setenv("COLUMNS", "300")  # a sentence stays on one line


@pytest.fixture
def store(release: Published, tmp_path: Path) -> Path:
    return copied(Path(release.ref.root.url), tmp_path / "store")


def overview(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["overview", *map(str, arguments)])


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_shows_accounts_and_what_needs_somebody_and_changes_nothing(store: Path) -> None:
    before = files(store)
    done = overview("--store", store)
    assert done.exit_code == 0, done.output
    assert "10 more releases of rho 0.08815 fit." in done.stdout
    assert f"Run {OPEN} holds rho 0.006642 and no process works on it." in done.stdout
    assert "not checked" in done.stdout
    assert files(store) == before


def test_a_schedule_learns_by_the_exit_code_that_something_needs_somebody(store: Path) -> None:
    done = overview("--store", store, "--check")
    assert done.exit_code == Exit.ATTENTION
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"people: Run {OPEN} holds rho 0.006642 and no process works on it. `ppsyn release FILE")
    ended = CliRunner().invoke(main, ["abandon", OPEN, "--yes", "--store", str(store)])
    assert ended.exit_code == 0, ended.output
    done = overview("--store", store, "--check")
    assert (done.exit_code, done.stdout) == (0, "")


def test_audits_are_green_or_red(store: Path) -> None:
    done = overview("--store", store, "--audit", "--json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["datasets"]
    assert {one["run"]: one["audit"] for one in found["runs"]}[RUN] == {"ok": True, "problems": []}
    table = store / "releases" / "people" / RUN / "synthetic.parquet"
    table.write_bytes(table.read_bytes() + b"x")
    done = overview("--store", store, "--audit")
    assert done.exit_code == Exit.AUDIT
    assert "synthetic.parquet: The file was changed after it was published." in done.stdout


def test_the_page_is_written_outside_of_releases_alone(store: Path, tmp_path: Path) -> None:
    page = tmp_path / "overview.html"
    assert overview("--store", store, "--html", page).exit_code == 0
    assert RUN in page.read_text(encoding="utf-8")
    before = files(store)
    for inside in (store / "releases" / "x.html", store / "releases" / "people" / RUN / "x.html"):
        refused = overview("--store", store, "--html", inside)
        assert refused.exit_code == Exit.MISTAKE
        assert "lie outside of releases" in refused.stderr
    assert files(store) == before


def test_a_release_file_tells_what_its_next_release_costs(store: Path, release: Published, tmp_path: Path) -> None:
    document = json.loads(release.config.model_dump_json(by_alias=True))
    file = tmp_path / "release.yaml"
    file.write_text(json.dumps({**document, "privacy": {"rho": 0.5}, "algorithm": {}, "runtime": {}}), encoding="utf-8")
    done = overview(file, "--store", store, "--json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["datasets"]
    assert [one["rho"] for one in found["planned"]] == ["1/2"]
    assert found["outlook"]["releases"] == 1
    assert overview(tmp_path / "none.yaml", "--store", store).exit_code == Exit.MISTAKE


def test_what_cannot_be_read_is_exit_code_6_and_what_is_damaged_3(store: Path) -> None:
    entry = store / "accounts" / "people" / "000000.json"
    data = entry.read_bytes()
    entry.write_bytes(b"{}")
    damaged = overview("--store", store)
    assert (damaged.exit_code, "damaged" in damaged.stdout) == (Exit.BUDGET, True)
    entry.unlink()
    os.mkfifo(entry)
    assert overview("--store", store).exit_code == Exit.STORE
    entry.unlink()
    entry.write_bytes(data)
    assert overview("--store", store).exit_code == 0
    assert overview("--store", store / "none").exit_code == Exit.MISTAKE


def test_a_server_that_does_not_answer_hides_no_account(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{taken.getsockname()[1]}/api")
        done = overview("--store", store)
    assert done.exit_code == Exit.STORE
    assert "10 more releases" in done.stdout
    assert "What it is going to start is not known here." in done.stdout
