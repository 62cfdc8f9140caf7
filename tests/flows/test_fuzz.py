"""Bad input of every kind: no traceback, no hang, no gigabytes, nothing spent, no private value told."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzzing.cases import FIFO, KINDS, Case, make
from fuzzing.judge import Judge
from fuzzing.known import kept, known

from ppsyn.flows.cli.output import Exit

PPSYN = str(Path(sys.executable).parent / "ppsyn")

CASES = 80
"""Of each run of the fast tests, always the same; `make fuzz` makes thousands, others every day."""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    judge = Judge(tmp_path_factory.mktemp("fuzz"))
    yield judge
    judge.close()


def test_what_once_went_wrong_is_refused_in_a_sentence(judge: Judge) -> None:
    wrong = {}
    for name, case in known(judge.stage):
        verdict, is_valid = judge.try_out(case), name.startswith(("string_view", "plan of 1 rows"))
        if verdict.faults or (verdict.code == 0) != is_valid:
            wrong[name] = (verdict.code, verdict.faults, verdict.told[-500:])
    assert wrong == {}


def test_what_the_fuzzer_found_ends_as_documented(judge: Judge) -> None:
    found = {name: judge.try_out(case) for name, case in kept()}
    assert {name: verdict.told[-500:] for name, verdict in found.items() if verdict.faults} == {}


def test_cases_of_every_kind_end_as_documented(judge: Judge) -> None:
    wrong, ended = {}, dict.fromkeys(KINDS, 0)
    for seed in range(CASES):
        verdict = judge.try_out(make(seed, judge.stage))
        ended[KINDS[seed % len(KINDS)]] += verdict.code not in (0, None)
        if verdict.faults:
            wrong[seed] = (verdict.faults, verdict.told[-500:])
    assert wrong == {}
    assert all(ended.values())  # refusals were met, of every kind


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("raise", "traceback"),
        ("sleep", "hang"),
        ("turn", "hang"),
        ("eat", "memory"),
        ("leak", "private value in output"),
        ("spend", "spent"),
    ],
)
def test_a_planted_fault_is_found(judge: Judge, fault: str, found: str) -> None:
    cases = (make(seed, judge.stage) for seed in range(2, 2 + len(KINDS) * 20, len(KINDS)))  # CSV files
    assert any(found in judge.try_out(case, fault).faults for case in cases)


def test_a_failing_case_is_shrunk_and_kept(judge: Judge) -> None:
    case = Case(("plan", "csv.yaml"), {"people.csv": b"sex,age\n" * 100, "other.csv": b"x", "pipe": FIFO})
    small = judge.shrunk(case, "traceback", "raise")
    assert len(small.files) == 0
    assert Case.from_json(case.as_json()) == case


@pytest.mark.slow
def test_thousands_of_cases_end_as_documented(tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-m", "fuzzing", "--cases", "5000", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=tests, capture_output=True, text=True, check=False, timeout=7200)
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.slow
def test_the_release_command_itself_refuses_bad_input(judge: Judge, tmp_path: Path) -> None:
    refused = 0
    for seed in (seed for seed in range(96) if KINDS[seed % len(KINDS)].__name__ in ("_schema", "_csv", "_parquet")):
        case = make(seed, judge.stage)
        if (
            judge.try_out(Case(("plan", "csv.yaml" if "people.csv" in case.files else "parquet.yaml"), case.files)).code
            == 0
        ):
            continue
        file = "csv.yaml" if "people.csv" in case.files else "parquet.yaml"
        folder = judge.stage.parent / "case"  # as the judge has put it together
        environment = {**os.environ, "PREFECT_HOME": str(tmp_path), "PREFECT_API_URL": ""}
        told = subprocess.run(
            [PPSYN, "release", file],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (told.returncode, told.stdout) == (Exit.MISTAKE, ""), told.stderr
        assert "Traceback" not in told.stderr
        refused += 1
    assert refused >= 12


@pytest.mark.parametrize("home", ["/proc/none", pytest.param("x" * 300, marks=pytest.mark.slow)])
def test_a_home_of_prefect_that_cannot_be_written_is_told(judge: Judge, tmp_path: Path, home: str) -> None:
    environment = {**os.environ, "PREFECT_HOME": home}
    environment.pop("PREFECT_API_URL", None)
    told = subprocess.run(
        [PPSYN, "release", "csv.yaml"],
        cwd=judge.stage,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == Exit.STORE, told.stderr
    assert "PREFECT_HOME" in told.stderr
    assert "Traceback" not in told.stderr
