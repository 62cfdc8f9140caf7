"""`ppsyn selftest privacy` from the command line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.privacy.curator import TableCurator
from ppsyn.selftest import library

QUICK = ("selftest", "privacy", "--jobs", "1", "--folders", "20")


def test_a_case_is_attacked_and_told_of(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [*QUICK, "--case", "independent", "--runs", "60", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    head, row, *_ = done.output.splitlines()
    assert head.split()[0] == "case"
    assert row.split()[0] == "independent"
    assert row.endswith("holds")
    written = json.loads((tmp_path / "out" / "selftest.json").read_text())
    (case,) = written["cases"]
    assert written["ok"]
    assert (case["runs"], case["folders"], case["faults"]) == (60, 20, [])
    assert case["answers"]["mu"] <= case["answers"]["most"]
    assert "<svg" in (tmp_path / "out" / "selftest.svg").read_text()
    assert "| independent | 60 | 20 |" in (tmp_path / "out" / "selftest.md").read_text()


@pytest.mark.parametrize("content", ["", "[]", "{}"])
def test_a_folder_with_a_file_of_another_kind_is_refused_and_left_as_it_is(tmp_path: Path, content: str) -> None:
    (tmp_path / "selftest.json").write_text(content)
    done = CliRunner().invoke(main, [*QUICK, "--case", "mst", "--out", str(tmp_path)])
    assert done.exit_code == Exit.MISTAKE
    assert "Expected selftest.json" in done.output
    assert "Traceback" not in done.output
    assert (tmp_path / "selftest.json").read_text() == content


@pytest.mark.slow
def test_a_fault_is_told_and_exits_with_the_code_of_an_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "TableCurator", lambda counter, account, _: TableCurator(counter, account, 1))
    done = CliRunner().invoke(main, [*QUICK, "--case", "persons", "--runs", "200", "--json"])
    assert done.exit_code == Exit.AUDIT, done.output
    told = json.loads(done.output)
    assert not told["ok"]
    assert any("the answers tell mu" in fault for fault in told["cases"][0]["faults"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--case", "nothing"), "There is no case 'nothing'"),
        (("--runs", "3"), "--runs"),
        (("--jobs", "0"), "--jobs"),
    ],
)
def test_bad_options_are_refused(options: tuple[str, ...], problem: str) -> None:
    done = CliRunner().invoke(main, [*QUICK, *options])
    assert done.exit_code == Exit.MISTAKE
    assert problem in done.output
    assert "Traceback" not in done.output
