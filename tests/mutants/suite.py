"""Plant faults in a copy of the source, one at a time, and run the tests of the claim that each breaks.

A fault counts as caught if a test of its claim fails, on source that runs. Tests that do not pass without a fault
say nothing with one; so they are run on the plain copy first. Nor does a test say anything that fails since the patch
is no program: whose module does not compile or import, or uses a name that is not there.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

from mutants.fault import Fault
from mutants.warm import CRASHED, ELSEWHERE, LATE

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("ppsyn", "flows", "tasks", "schemas")

PATIENCE = 300
"""Seconds after which a fault that makes the tests wait for something counts as one that they do not tell of."""

_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "out", "node_modules", "site")
_NO_PROGRAM = re.compile(r"(\w+\.)*(NameError|UnboundLocalError|ImportError|ModuleNotFoundError|SyntaxError)\b")
_FAILED = 1
"""What pytest returns if tests ran and some failed; errors of collection and of usage have other numbers."""

_DETAILS = {
    LATE: f"The tests took more than {PATIENCE} seconds.",
    ELSEWHERE: "The tests ran on source that is not that of the copy.",
    CRASHED: "The tests were not run.",
}

_ages = count(1)


class PatchError(Exception):
    """A patch that does not apply, or whose result is no Python."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests of a claim said.

    Attributes:
        verdict: Whether a test failed, all passed, or neither: the tests could not be run.
        test: The first test that failed.
        detail: What went wrong where the tests could not be run.
    """

    verdict: Literal["caught", "survived", "broken"]
    test: str = ""
    detail: str = ""
    seconds: float = 0.0


def patched(fault: Fault, text: str) -> str:
    """The source of a file with the fault in it.

    Raises:
        PatchError: If the old text is not there exactly once, or what results does not compile.
    """
    found = text.count(fault.old)
    if found != 1:
        elsewhere = [str(path.relative_to(ROOT)) for path in _sources() if fault.old in path.read_text("utf-8")]
        hint = f" It is in {', '.join(elsewhere)}." if elsewhere else " It is nowhere: anchor the patch anew."
        raise PatchError(f"{fault.name!r}: its text is {found} times in {fault.file}, not once.{hint}")
    made = text.replace(fault.old, fault.new)
    try:
        compile(made, fault.file, "exec")
    except SyntaxError as error:
        raise PatchError(f"{fault.name!r} is no Python: {error}.") from None
    if made == text:
        raise PatchError(f"{fault.name!r} changes nothing.")
    return made


def _sources() -> Iterator[Path]:
    return (path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py")))


def source_of(fault: Fault) -> str:
    """The text of the file that a fault is planted in.

    Raises:
        PatchError: If there is no such file.
    """
    path = ROOT / fault.file
    if not path.is_file():
        elsewhere = [str(found.relative_to(ROOT)) for found in _sources() if fault.old in found.read_text("utf-8")]
        raise PatchError(
            f"{fault.name!r}: there is no {fault.file}. Its text is in {', '.join(elsewhere) or 'no file'}."
        )
    return path.read_text(encoding="utf-8")


def files_of(claim: str) -> list[str]:
    """The files that PRIVACY.md names as the tests of a claim, its own first; the lint of the whole source is none."""
    page = (ROOT / "ppsyn" / "PRIVACY.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {claim}.")[1].split("\n## ")[0]
    return re.findall(r"`(tests/[\w/]+\.py)`", section.split("**Tests.**")[1].split("\n\n")[0])


def places_of(test: str, files: Sequence[str]) -> list[str]:
    """Where pytest finds the test of this name among the files; nothing if it is not there."""
    text = rf"^def {re.escape(test)}\("
    return [f"{file}::{test}" for file in files if re.search(text, (ROOT / file).read_text("utf-8"), re.MULTILINE)]


class Copy:
    """A copy of the repository, in which faults are planted and tests are run."""

    def __init__(self, folder: Path) -> None:
        """Copy what is there, with the machine code that was compiled of it."""
        self._root = folder / "ppsyn"
        shutil.copytree(ROOT, self._root, ignore=_LEFT_OUT, symlinks=True)
        command = [sys.executable, "-P", str(self._root / "tests" / "mutants" / "warm.py"), str(self._root)]
        self._tests = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """The copy with the fault in it.

        Every version of a file gets a date of its own, since compiled code is known by date and size.

        Raises:
            PatchError: If the patch does not apply.
        """
        plain, made = source_of(fault), patched(fault, source_of(fault))
        path = self._root / fault.file
        before = path.stat().st_mtime
        _write(path, made, before + next(_ages))
        try:
            yield
        finally:
            _write(path, plain, before)

    def run(self, places: Sequence[str], *, cold: bool = False, nightly: bool = False) -> Outcome:
        """Run tests until one fails.

        Args:
            places: Files or tests.
            cold: Whether to compile anew, with nothing from the cache.
            nightly: Whether to run the long tests of noise alone; otherwise none that is slow.
        """
        with tempfile.TemporaryDirectory() as scratch:
            report, output = Path(scratch) / "report.xml", Path(scratch) / "output"
            arguments = [
                *("-x", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider"),
                *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what was loaded before the fork
                *("-m", "nightly" if nightly else "not slow"),
                *("--basetemp", f"{scratch}/files", "--junitxml", str(report), *places),
            ]
            environment = {"PYTHONPATH": str(self._root), "TMPDIR": scratch}
            if cold:
                environment["NUMBA_CACHE_DIR"] = f"{scratch}/compiled"
            began = time.monotonic()
            code = self._answer(
                {"arguments": arguments, "environment": environment, "output": str(output), "seconds": PATIENCE}
            )
            return _judged(code, output, report, time.monotonic() - began)

    def _answer(self, job: dict[str, object]) -> int:
        """What pytest returned in the process that has its libraries loaded."""
        if self._tests.stdin is None or self._tests.stdout is None:
            raise RuntimeError("The process that runs tests has no pipes.")
        self._tests.stdin.write(f"{json.dumps(job)}\n")
        self._tests.stdin.flush()
        return int(self._tests.stdout.readline())

    def close(self) -> None:
        """End the process that runs the tests."""
        with self._tests:
            if self._tests.stdin is not None:
                self._tests.stdin.close()


def _write(path: Path, text: str, date: float) -> None:
    path.write_text(text, encoding="utf-8")
    os.utime(path, (date, date))


def _judged(code: int, output: Path, report: Path, seconds: float) -> Outcome:
    """What a run of pytest says: a test that fails tells of a fault, one that cannot be run does not."""
    if code == 0:
        return Outcome("survived", seconds=seconds)
    if code in _DETAILS:
        return Outcome("broken", "", f"{_DETAILS[code]} {_last(output)}", seconds)
    failures = [case for case in _cases(report) if case.find("failure") is not None]
    if code != _FAILED or not failures:
        return Outcome("broken", "", _last(output), seconds)
    name, failure = failures[0].get("name", ""), failures[0].find("failure")
    message = "" if failure is None else failure.get("message", "")
    if _NO_PROGRAM.match(message):
        return Outcome("broken", name, message.splitlines()[0], seconds)
    return Outcome("caught", name, message, seconds)


def _cases(report: Path) -> list[ET.Element]:
    return list(ET.parse(report).getroot().iter("testcase")) if report.is_file() else []


def _last(output: Path) -> str:
    """The error that pytest shows last, or else its last lines."""
    lines = [line for line in output.read_text("utf-8", "replace").splitlines() if line.strip()]
    return " ".join([line for line in lines if line.startswith("E  ")][-1:] or lines[-3:])[-300:]


def try_fault(copy: Copy, fault: Fault) -> Outcome:
    """Plant a fault and run the tests of its claim: the one that is known to tell first, then all.

    If another than that one tells, it has to pass without the fault.
    """
    files = files_of(fault.claim)
    cold, seconds = "@compiled" in source_of(fault), 0.0
    if fault.told_by:
        with copy.planted(fault):
            first = copy.run(places_of(fault.told_by, files), cold=cold, nightly=is_nightly(fault.told_by, files))
        if first.verdict != "survived":
            return first
        seconds = first.seconds
    with copy.planted(fault):
        found = copy.run(files, cold=cold)
    if found.verdict == "caught" and copy.run(places_of(found.test.split("[")[0], files)).verdict != "survived":
        found = replace(found, verdict="broken", detail="This test fails without the fault, too.")
    return replace(found, seconds=seconds + found.seconds)


def is_nightly(test: str, files: Sequence[str]) -> bool:
    """Whether a test is one of the long ones of noise, which run at night."""
    text = rf"@pytest\.mark\.nightly\n(?:@.*\n)*def {re.escape(test)}\("
    return any(re.search(text, (ROOT / file).read_text("utf-8")) for file in files)
