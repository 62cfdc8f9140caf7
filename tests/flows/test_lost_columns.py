"""What a release tells its owner of columns that would be lost: on a terminal, before it spends, and nowhere else."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from support.canaries import files_below, search_all, search_server, text_canary
from support.small_release import DATASET, write_release
from support.terminals import on_a_terminal, terminal_as_stderr

from ppsyn.flows.cli.schema import warn_of_lost_columns
from ppsyn.flows.preflight import read_inputs
from ppsyn.privacy.account import StoredAccount
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

PPSYN = str(Path(sys.executable).parent / "ppsyn")
TOLD = "Most values of 'age', 'joined' do not fit the schema"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A release of a table whose numbers have a decimal comma and whose dates a point."""
    made = write_release(tmp_path)
    table, schema = tmp_path / "table.csv", tmp_path / "schema.yaml"
    rewritten = re.sub(r"(?m)^(\d+),", r'"\1,0",', re.sub(r"(\d+)-(\d+)-(\d+)", r"\3.\2.\1", table.read_text("utf-8")))
    table.write_text(rewritten, encoding="utf-8")
    document = yaml.safe_load(schema.read_text("utf-8"))
    for column in document["columns"]:
        column["nullable"] = True
    schema.write_text(yaml.safe_dump(document), encoding="utf-8")
    return made


def warned(file: Path) -> str:
    """What is told on a terminal."""
    config, table = read_inputs(str(file), ())
    with terminal_as_stderr() as seen:
        warn_of_lost_columns(config.source, table)
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", seen()).split())


def test_columns_that_would_be_lost_are_named_on_a_terminal_with_a_warning(file: Path) -> None:
    told = warned(file)
    assert told.startswith(TOLD)
    assert "This is private" in told
    assert "job" not in told
    said = file.read_text("utf-8").replace("kind: csv", "kind: csv\n  decimal: ','\n  dates: '%d.%m.%Y'")
    file.write_text(said, encoding="utf-8")
    assert warned(file) == ""


def test_off_a_terminal_the_table_is_not_even_read(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    read: list[object] = []

    def looking(*inputs: object) -> list[str]:
        read.append(inputs)
        return ["age"]

    monkeypatch.setattr("ppsyn.evaluation.schema_check.lost_columns", looking)
    config, table = read_inputs(str(file), ())
    warn_of_lost_columns(config.source, table)
    assert (read, capfd.readouterr()) == ([], ("", ""))
    assert "'age'" in warned(file)  # which this would have seen


@pytest.mark.parametrize("data", [b"", b"\x00\n\x00", b"age,job\n1,2\n"], ids=["empty", "noise", "columns"])
def test_a_table_that_cannot_be_looked_at_is_left_to_the_release(file: Path, data: bytes) -> None:
    (file.parent / "table.csv").write_bytes(data)
    assert warned(file) == ""


def test_a_fault_of_the_look_itself_stops_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[str]:
        raise ZeroDivisionError

    monkeypatch.setattr("ppsyn.evaluation.schema_check.lost_columns", fail)
    assert warned(file) == ""


@pytest.mark.slow
def test_nothing_but_the_terminal_is_told_and_nothing_else_depends_on_it(
    file: Path, prefect_api: str, prefect_server_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = tmp_path_factory.mktemp("log") / "release.log"
    command = f"{PPSYN} release {file} --log {log}; echo exit $?"
    seen = " ".join(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", on_a_terminal(["sh", "-c", command])).split())
    assert TOLD in seen
    assert seen.endswith("exit 0")
    piped = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert piped.stdout.endswith("exit 0\n")
    assert "Most values" not in piped.stdout + piped.stderr

    state = StoredAccount(open_store(Location(url=str(file.parent / "out"))), DATASET).state
    assert len({budget.spent for budget in state.budgets.values()}) == 1
    one, other = (
        {path.name for path in (file.parent / "out/releases" / DATASET / run).rglob("*")} for run in state.budgets
    )
    assert one == other
    kept = {**files_below(file.parent), **files_below(log.parent), **files_below(Path(os.environ["PREFECT_HOME"]))}
    known = [text_canary(text) for text in ("Most values of", "do not fit the schema", "would be lost")]
    deadline = time.monotonic() + 60
    while not search_server(prefect_server_folder, [text_canary(f"{list(state.budgets)[-1]} publish")]):
        assert time.monotonic() < deadline  # the server is told of the end some time after it
        time.sleep(0.5)
    assert search_all(kept, known) + search_server(prefect_server_folder, known) == []
