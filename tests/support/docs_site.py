"""The documentation as `make docs` builds it, once for all processes of a test run."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_MAKE = (ROOT / "Makefile").read_text(encoding="utf-8")


def build(docs: Path, site: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run the command of the Makefile on these folders."""
    (command,) = [line.split() for line in _MAKE.splitlines() if "sphinx-build" in line]
    program, *given = command[: command.index("docs")]
    line = [str(Path(sys.executable).parent / Path(program).name), *given, *options, str(docs), str(site)]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)


def shared_site(folders: pytest.TempPathFactory, *, has_results: bool) -> Path:
    """The site, with the notebook's results or without, which nobody may change."""
    base = folders.getbasetemp()
    site = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / ("site" if has_results else "pages")
    with site.with_suffix(".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (site / "index.html").exists():
            done = build(ROOT / "docs", site, *([] if has_results else ["-D", "nb_execution_mode=off"]))
            assert done.returncode == 0, done.stderr
    return site
