"""`ppsyn benchmark scale` measures each part and fails where two ways to count differ."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ppsyn.benchmark.resources import Check, at_least, at_most, equal
from ppsyn.flows import scale
from ppsyn.flows.cli.main import main


def run(out: Path, rows: int = 3000) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["benchmark", "scale", "--rows", str(rows), "--out", str(out)])
    return done.exit_code, done.output


@pytest.mark.parametrize(("check", "code"), [(equal("x", False), 1), (equal("x", True), 0), (at_most("x", 2, 1), 0)])
def test_counts_that_differ_fail_the_command_and_slowness_does_not(
    check: Check, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "PARTS", {"one": lambda *_: ({"seconds": 2.0}, [check])})
    assert run(tmp_path) == (code, f"\none, 3,000 rows\n{check}\n")
    found = json.loads((tmp_path / "scale.json").read_text())
    assert (found["one"]["seconds"], found["checks"][0]["kept"]) == (2.0, check.is_kept)
    assert [path.name for path in tmp_path.iterdir()] == ["scale.json"]


def test_what_was_wanted_is_told() -> None:
    assert str(at_least("ratio", 1.5, 1.6)) == "missed ratio: 1.5, wanted at least 1.6"
    assert str(at_most("memory in MB", 292.4, 600)) == "PASS   memory in MB: 292, wanted at most 600"


@pytest.mark.slow
def test_all_parts_are_measured(tmp_path: Path) -> None:
    code, told = run(tmp_path, 30_000)
    assert code == 0, told
    assert set(scale.PARTS) < set(json.loads((tmp_path / "scale.json").read_text()))
