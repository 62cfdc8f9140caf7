"""Runs cases one after another, each in a fork of a process that has imported everything.

It is told by lines of JSON on standard input and answers with lines of JSON. A case cannot take more processor time,
time or memory than its limits, whatever it does.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

SECONDS = 5
"""Of processor time, and of time in which the case could have run and did not: it waits for something."""

MEMORY = 2**30
"""Beside what the libraries take."""

OUT, ERR, BASE = "stdout.txt", "stderr.txt", "base.txt"

_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",  # each arena takes 64 MB of addresses, which the limit would count
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "GX_ANALYTICS_ENABLED": "False",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
    "AWS_EC2_METADATA_DISABLED": "true",
}

_MODULES = (
    "ppsyn.flows.cli.main", "ppsyn.flows.preflight", "ppsyn.mechanisms.forecast", "ppsyn.quality.run",
    "ppsyn.evaluation.owner_report", "ppsyn.runs.cleanup", "ppsyn.schema_draft", "ppsyn.evaluation.schema_check",
    "ppsyn.synthesis_files",
    "ppsyn.data.ingest", "ppsyn.releases.audit", "great_expectations", "rich.console", "fuzzing.commands",
)  # fmt: skip


def environment() -> dict[str, str]:
    """What the sandbox has to be started with."""
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(paths)}


def serve() -> None:
    """Answer until standard input ends."""
    for name in _MODULES:
        importlib.import_module(name)
    importlib.import_module("fuzzing.commands").warm_up()
    _answer({"ready": True})
    for line in sys.stdin:
        _answer(_watched(json.loads(line)))


def _answer(told: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def _watched(case: dict[str, object]) -> dict[str, object]:
    child = os.fork()
    if child == 0:
        _run(case)
    started, is_hung = time.monotonic(), False
    while True:
        found, status, used = os.wait4(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() - started - _queued(child) > SECONDS + 1:
            is_hung = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError):  # what it has started
        os.killpg(child, signal.SIGKILL)
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    return {
        "code": None if killed else os.WEXITSTATUS(status),
        "killed": "hang" if is_hung or killed == signal.SIGXCPU else killed,
        "seconds": used.ru_utime + used.ru_stime,
        "megabytes": (used.ru_maxrss - int((Path(str(case["told"])) / BASE).read_text())) // 1024,
    }


def _queued(process: int) -> float:
    """Seconds in which other processes had the processor that a thread of this one was ready for."""
    try:
        return sum(int(path.read_text().split()[1]) for path in Path(f"/proc/{process}/task").glob("*/schedstat")) / 1e9
    except OSError:
        return 0.0


def _peak_of(process: int, what: str) -> int:
    """Of the memory of a process, in kB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:"))


def _run(case: dict[str, object]) -> None:
    """Be the case; never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.chdir(str(case["folder"]))
        for number, name in ((1, OUT), (2, ERR)):
            os.dup2(os.open(Path(str(case["told"])) / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        (Path(str(case["told"])) / BASE).write_text(str(_peak_of(os.getpid(), "VmRSS")), encoding="utf-8")
        addresses = _peak_of(os.getpid(), "VmSize") * 1024
        resource.setrlimit(resource.RLIMIT_AS, (addresses + 2 * MEMORY, addresses + 2 * MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        commands = importlib.import_module("fuzzing.commands")
        if case.get("plant"):
            commands.plant(str(case["plant"]))
        run: Callable[[list[str]], None] = commands.run
        run([os.fsdecode(bytes.fromhex(word)) for word in case["arguments"]])
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:  # noqa: BLE001  # as the interpreter would
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
