"""Compiled code on disk, across versions."""

import subprocess
import sys
from pathlib import Path

import pytest

VERSION = """
from typing import NamedTuple
from ppsyn.jit import compiled

class {name}(NamedTuple):
    number: int

@compiled
def half(held: {name}) -> float:
    return held.number / 2

assert half({name}(3)) == 1.5
"""


@pytest.mark.slow
def test_machine_code_that_an_earlier_version_left_with_a_type_that_is_gone_is_made_anew(tmp_path: Path) -> None:
    for name in ("Earlier", "Later"):
        (tmp_path / "kernel.py").write_text(VERSION.format(name=name), encoding="utf-8")
        command = [sys.executable, "-B", "-c", "import kernel"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        assert list(tmp_path.glob("__pycache__/kernel.half-*.nbi"))
