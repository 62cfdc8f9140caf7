"""`make benchmark-scale` measures each part and fails where two ways to count differ."""

import json
from pathlib import Path

import pytest
from performance import scale
from performance.resources import Check, at_least, at_most, equal


def measure(out: Path, monkeypatch: pytest.MonkeyPatch, rows: int = 3000) -> int:
    """The exit code."""
    monkeypatch.setattr("sys.argv", ["scale", "--rows", str(rows), "--out", str(out)])
    try:
        scale.main()
    except SystemExit as ended:
        return int(str(ended.code))
    return 0


@pytest.mark.parametrize(("check", "code"), [(equal("x", False), 1), (equal("x", True), 0), (at_most("x", 2, 1), 0)])
def test_counts_that_differ_fail_the_program_and_slowness_does_not(
    check: Check, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scale, "PARTS", {"one": lambda *_: ({"seconds": 2.0}, [check])})
    assert measure(tmp_path, monkeypatch) == code
    assert capsys.readouterr().out == f"\none, 3,000 rows\n{check}\n"
    found = json.loads((tmp_path / "scale.json").read_text())
    assert (found["one"]["seconds"], found["checks"][0]["kept"]) == (2.0, check.is_kept)
    assert [path.name for path in tmp_path.iterdir()] == ["scale.json"]


def test_too_few_rows_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure(tmp_path, monkeypatch, 2999) == 2
    assert "expected --rows of at least 3000, got 2999" in capsys.readouterr().err


def test_what_was_wanted_is_told() -> None:
    assert str(at_least("ratio", 1.5, 1.6)) == "missed ratio: 1.5, wanted at least 1.6"
    assert str(at_most("memory in MB", 292.4, 600)) == "PASS   memory in MB: 292, wanted at most 600"


@pytest.mark.slow
def test_all_parts_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(tmp_path, monkeypatch, 30_000) == 0
    assert set(scale.PARTS) < set(json.loads((tmp_path / "scale.json").read_text()))
