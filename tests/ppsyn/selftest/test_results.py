"""Findings of several calls in one folder."""

import json
from pathlib import Path

import pytest

from ppsyn.errors import ConfigError
from ppsyn.selftest import results
from ppsyn.selftest.attacks import Attack, Finding

ATTACK = Attack(guesses=40, mu=0.5, surely=0.1, most=1.2)


def finding(name: str, runs: int = 20) -> Finding:
    curve = ((1.0, 0.0), (0.25, 0.25), (0.0, 1.0))
    return Finding(name, f"told of {name}", runs, 20, 1.02, ATTACK, ATTACK, ATTACK, (0.0, 0.2), curve, ("a.json",), 1.5)


def test_findings_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    findings = [finding("ppsyn"), finding("mst")]
    assert results.earlier(tmp_path) == []
    results.write(findings, tmp_path)
    assert results.earlier(tmp_path) == findings


def test_those_of_another_version_are_not(tmp_path: Path) -> None:
    results.write([finding("ppsyn")], tmp_path)
    written = tmp_path / "selftest.json"
    written.write_text(json.dumps({**json.loads(written.read_text()), "code": "of another version"}))
    assert results.earlier(tmp_path) == []


def test_there_is_one_finding_a_case_the_new_one_in_the_order_of_the_cases() -> None:
    gathered = results.merged([finding("mst", runs=80)], [finding("quality"), finding("mst"), finding("independent")])
    assert [(one.name, one.runs) for one in gathered] == [("independent", 20), ("mst", 80), ("quality", 20)]


def test_another_version_has_another_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = results.code()
    (tmp_path / "attacks.py").write_text("more = 1\n")
    monkeypatch.setattr(results, "__file__", str(tmp_path / "results.py"))
    results.code.cache_clear()
    assert results.code() != known
    results.code.cache_clear()


@pytest.mark.parametrize("content", ["", "[]", '{"cases": [1], "code": "now"}'])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "selftest.json").write_text(content.replace("now", results.code()))
    with pytest.raises(ConfigError, match=r"Expected selftest\.json in"):
        results.earlier(tmp_path)
