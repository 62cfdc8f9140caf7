"""Which saved syntheses are read."""

import json
from pathlib import Path

import pytest

import ppsyn
from ppsyn.errors import ConfigError

OLD = """{
  "format": "ppsyn-synthesis-1",
  "budget": "1/2",
  "spends": [],
  "seed": 0
}
"""


def test_a_synthesis_of_an_earlier_format_is_refused_with_the_version_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "synthesis.json").write_text(OLD)
    with pytest.raises(ConfigError) as caught:
        ppsyn.load(tmp_path)
    assert str(caught.value) == (
        f"Cannot read folder={tmp_path}. Expected format ppsyn-synthesis-3, got ppsyn-synthesis-1. "
        "Read it with a development version of ppsyn 0.1.0, which wrote it."
    )
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_one_of_a_later_format_names_its_version(tmp_path: Path) -> None:
    (tmp_path / "synthesis.json").write_text(json.dumps({"format": "ppsyn-synthesis-9", "code": {"ppsyn": "3.1"}}))
    with pytest.raises(ConfigError, match=r"Read it with ppsyn 3\.1, which wrote it\."):
        ppsyn.load(tmp_path)


@pytest.mark.parametrize("version", ["", "rm -rf /", "1.0\nAll is well.", 1.0, None])
def test_what_is_no_version_is_not_repeated(tmp_path: Path, version: object) -> None:
    (tmp_path / "synthesis.json").write_text(json.dumps({"format": "ppsyn-synthesis-9", "code": {"ppsyn": version}}))
    with pytest.raises(ConfigError) as caught:
        ppsyn.load(tmp_path)
    assert "well" not in str(caught.value)
    assert "rm" not in str(caught.value).replace("format", "")
