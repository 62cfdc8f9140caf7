"""Has cases run in a sandbox, and says what is wrong with how each one ended."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzzing.cases import FIFO, FOLDER, GONE, ZERO, Case, smaller
from fuzzing.sandbox import ERR, MEMORY, OUT, environment
from fuzzing.stage import CANARY_NUMBER, CANARY_TEXT

from ppsyn.flows.cli.output import MEANINGS

_CODES = {code for code in MEANINGS if code != 1}
_PRIVATE = (CANARY_TEXT.encode(), str(CANARY_NUMBER).encode(), f"{CANARY_NUMBER:,}".encode())
_CHARGE = b'"kind":"charge"'
_TRIES = 60


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a case ended; nothing is wrong with it if there are no faults."""

    faults: tuple[str, ...]
    seconds: float
    megabytes: int
    code: int | None
    told: str


class Judge:
    """A stage and a sandbox."""

    def __init__(self, folder: Path) -> None:
        """Set the stage, and start the sandbox."""
        self.stage, self._folder = folder / "stage", folder
        self.stage.mkdir(parents=True)
        command = [sys.executable, "-m", "fuzzing.stage", str(self.stage)]
        subprocess.run(command, env=environment(), check=True, capture_output=True, timeout=600)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzzing.sandbox"],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def close(self) -> None:
        """Stop the sandbox."""
        with self._process:  # closes both pipes, upon which it ends
            pass

    def _answer(self) -> dict[str, object]:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def try_out(self, case: Case, plant: str | None = None) -> Verdict:
        """Run a case and judge it."""
        folder = self._folder / "case"
        told = self._folder / "told"
        for place in (folder, told):
            shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.stage, folder)
        told.mkdir()
        for path, data in case.files.items():
            _place(folder / path, data)
        before, spent = _names(folder), _charges(folder)
        words = [word.encode("utf-8", "surrogatepass").hex() for word in case.arguments]
        assert self._process.stdin is not None
        asked = {"folder": str(folder), "told": str(told), "arguments": words, "plant": plant}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        found = self._answer()
        output = b"".join((told / name).read_bytes() for name in (OUT, ERR) if (told / name).exists())
        made = [folder / name for name in _names(folder) - before if "private" not in Path(name).parts[-1]]
        faults = [*_ended(found, output), *_leaked(output, made)]
        if _charges(folder) > spent and found["code"] != 0:
            faults.append("spent")
        text = output.decode("utf-8", "replace")
        return Verdict(tuple(faults), float(str(found["seconds"])), int(str(found["megabytes"])), found["code"], text)  # type: ignore[arg-type]

    def shrunk(self, case: Case, fault: str, plant: str | None = None) -> Case:
        """A smaller case with the same fault, as far as some tries find one."""
        left = _TRIES
        while True:
            for tried in smaller(case):
                left -= 1
                if left < 0:
                    return case
                if fault in self.try_out(tried, plant).faults:
                    case = tried
                    break
            else:
                return case


def _ended(found: dict[str, object], output: bytes) -> Iterator[str]:
    if found["killed"] is not None:
        yield f"{found['killed']}"
    elif found["code"] not in _CODES:
        yield f"exit {found['code']}"
    if b"Traceback (most recent call last)" in output:
        yield "traceback"
    if int(str(found["megabytes"])) > MEMORY >> 20:
        yield "memory"
    if len(output) > 2**20:
        yield "talkative"


def _leaked(output: bytes, made: list[Path]) -> Iterator[str]:
    if any(value in output for value in _PRIVATE):
        yield "private value in output"
    for path in made:
        if path.is_file() and any(value in path.read_bytes() for value in _PRIVATE):
            yield f"private value in {path.name}"


def _place(path: Path, data: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    if data == FIFO:
        os.mkfifo(path)
    elif data == ZERO:
        path.symlink_to(ZERO)
    elif data == FOLDER:
        path.mkdir()
    elif isinstance(data, bytes):
        path.write_bytes(data)
    elif data != GONE:
        raise ValueError(data)


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def _charges(folder: Path) -> int:
    """Of the account, however it is kept."""
    files = (path for path in (folder / "store" / "accounts").rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.read_bytes().count(_CHARGE) for path in files)
