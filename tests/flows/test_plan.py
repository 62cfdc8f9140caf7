"""What a release would do, told before it does anything."""

import json
import re
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.private_tables import CANARY
from support.small_release import DATASET, write_release

from ppsyn.errors import PPSynError
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.flows.preflight import prepare, read_inputs
from ppsyn.privacy.account import StoredAccount
from ppsyn.privacy.budget import rho_from
from ppsyn.runs.preflight import check_possible
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store


def ppsyn(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A release file whose table has a header, and rows that nobody can read."""
    made = write_release(tmp_path)
    (tmp_path / "table.csv").write_bytes(f'age,job,member,joined\n"{CANARY}\n'.encode() + b"\xff\xfe,,,,,,\n")
    return made


def test_a_plan_reads_no_row_and_writes_nothing(file: Path) -> None:
    before = {path: path.read_bytes() for path in file.parent.rglob("*") if path.is_file()}
    result = ppsyn("plan", str(file))
    assert (result.exit_code, result.stderr) == (0, "")
    assert {path: path.read_bytes() for path in file.parent.rglob("*") if path.is_file()} == before
    assert CANARY not in result.output
    for told in ("rows      50000 assumed", "age ", "workload  6 marginals", "model ", "budget ", "4 *"):
        assert told in result.stdout


def test_the_plan_as_json_says_what_the_text_says(file: Path) -> None:
    text = ppsyn("plan", str(file), "--rows", "400").stdout
    found = json.loads(ppsyn("plan", str(file), "--rows", "400", "--json").stdout)
    assert found["rows_assumed"] == 400
    for column in found["columns"]:
        assert re.search(
            rf"^{column['name']} .+ {column['sigma']:.1f} +{column['noise_share']:.2%}$", text, re.MULTILINE
        )
    for other in found["budgets"]:
        rounds = rf"{other['rounds']['planned']} +{other['rounds']['sigma']:.1f}"
        line = rf"^ *{other['epsilon']:.4g}( \*)? +{other['noise_share']:.2%} +{rounds} +enough$"
        assert re.search(line, text, re.MULTILINE)
    spent = sum(stage["rho"] for stage in found["one_way"]) + found["rounds"]["rho"]
    assert spent == pytest.approx(found["rho"])


def test_the_account_is_told_before_and_after_it_is_opened(file: Path) -> None:
    cap = rho_from(10, 1e-6)
    before = json.loads(ppsyn("plan", str(file), "--json").stdout)
    assert before["account"] == {"left": float(cap), "cap": float(cap)}
    account = StoredAccount(open_store(Location(url=str(file.parent / "out"))), DATASET)
    account.open(cap, 1e-6, "a row")
    account.reserve("20260102-030405-9f8e7d6c", cap * Fraction(9, 10), "0" * 64)
    again = ppsyn("plan", str(file), "--set", "privacy.epsilon=0.5")
    assert f"rho {float(cap / 10):.6g} left of {float(cap):.6g}" in again.stdout
    assert re.search(r"^ +5 +\S+ +\S+ +\S+ +too little$", again.stdout, re.MULTILINE)


def test_a_budget_without_delta_is_told_in_rho(file: Path) -> None:
    result = ppsyn("plan", str(file), "--set", "privacy={rho: 0.1}", "--set", "account.cap={rho: 1}")
    assert result.exit_code == 0
    assert re.search(r"^ +rho +error", result.stdout, re.MULTILINE)
    assert "0.1 *" in result.stdout


@pytest.mark.parametrize(
    "settings",
    [
        ["privacy.epsilon=11"],
        ["privacy.epsilon=-1"],
        ["algorithm.max_model_size_mb=0.0001"],
        ["algorithm.workload={cliques: [[nobody]]}"],
        ["privacy.person={column: job, max_rows: 2}"],
        ["source.path=elsewhere.csv"],
        ["schema=nowhere.yaml"],
        ["account.cap=null"],
    ],
    ids=" ".join,
)
def test_what_a_release_would_refuse_is_refused_in_the_same_words(file: Path, settings: list[str]) -> None:
    with pytest.raises(PPSynError) as caught:
        check_possible(*read_inputs(str(file), tuple(settings)))
    result = ppsyn("plan", str(file), *(part for setting in settings for part in ("--set", setting)))
    assert isinstance(result.exception, SystemExit)
    assert (result.stdout, result.stderr.strip()) == ("", str(caught.value).strip())
    assert result.exit_code in (Exit.MISTAKE, Exit.BUDGET)


def from_a_database(folder: Path, query: str) -> list[str]:
    """Settings that take the table of a release from a database."""
    with closing(sqlite3.connect(folder / "table.db")) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS t (age, job, member, joined)")
        connection.execute("CREATE VIEW IF NOT EXISTS v AS SELECT * FROM t")
    source = json.dumps({"kind": "sql", "url": f"sqlite:///{folder}/table.db", "query": query})
    return [f"source={source}"]


def test_a_query_that_lets_one_row_move_others_is_refused_before_anything_begins(file: Path) -> None:
    (setting,) = from_a_database(file.parent, "SELECT * FROM t ORDER BY age LIMIT 9")
    for command in ("plan", "release"):
        result = ppsyn(command, str(file), "--set", setting)
        assert result.exit_code == Exit.MISTAKE
        assert "Expected the query to be row by row, without LIMIT" in result.stderr
    assert not (file.parent / "stores").exists()


def test_what_a_query_leaves_to_its_owner_is_told_before_a_release_begins(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = read_inputs(str(file), tuple(from_a_database(file.parent, "SELECT * FROM v")))
    prepare(*inputs, resume=None, is_new=True)
    told = capsys.readouterr()
    assert "'v' is a view" in told.err
    assert told.out == ""


@pytest.mark.parametrize("options", [[], ["--json"]], ids=" ".join)
def test_a_plan_tells_what_a_query_leaves_to_its_owner_beside_its_answer(file: Path, options: list[str]) -> None:
    (view,) = from_a_database(file.parent, "SELECT * FROM v")
    inputs = read_inputs(str(file), (view,))
    planned = ppsyn("plan", str(file), "--set", view, *options)
    assert (planned.exit_code, planned.stderr.splitlines()) == (0, check_possible(*inputs))
    assert "'v' is a view" in planned.stderr
    assert "is a view" not in planned.stdout
    (table,) = from_a_database(file.parent, "SELECT * FROM t")
    assert ppsyn("plan", str(file), "--set", table, *options).stderr == ""
