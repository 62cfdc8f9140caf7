"""A process that has loaded the libraries that tests need, and runs each set of tests in a fork of itself.

Loading them takes four of the five seconds that a short test takes. Nothing of the project is loaded before the fork,
so each fork sees the source as it is then. It is told what to run, a line of JSON each, and answers with what pytest
returned.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

LIBRARIES = (
    *("pytest", "hypothesis", "numpy", "scipy.stats", "pandas", "pyarrow.parquet", "pyarrow.csv", "numba", "pydantic"),
    *("obstore", "opendp.measurements", "sqlalchemy", "yaml", "rich", "dp_accounting.rdp", "grimp", "prefect"),
)
PROJECT = ("ppsyn",)
LATE, ELSEWHERE, CRASHED = 97, 98, 99
"""What is answered for tests that took too long, for tests of source that is not that of the copy, and for no tests."""


def main(root: Path) -> None:
    """Load the libraries, then run tests until there is no more to run."""
    for name in LIBRARIES:
        importlib.import_module(name)
    _shrink_nothing()
    sys.path.insert(0, str(root))
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_tested(root, job))
        sys.stdout.write(f"{_waited(child, job['seconds'])}\n")
        sys.stdout.flush()


def _shrink_nothing() -> None:
    """A fault needs one example, not the smallest."""
    hypothesis = importlib.import_module("hypothesis")
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("faults", phases=phases)
    hypothesis.settings.load_profile("faults")


def _tested(root: Path, job: dict[str, object]) -> int:
    os.setsid()
    os.chdir(root)
    os.environ.update(job["environment"])
    output = os.open(str(job["output"]), os.O_WRONLY | os.O_CREAT)
    for stream in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDONLY) if stream == 0 else output, stream)
    try:
        code = int(importlib.import_module("pytest").main(job["arguments"]))
        return code if _is_all_from(root) else ELSEWHERE
    except BaseException:  # noqa: BLE001  # whatever it is, this fork must not go on as the process that made it
        traceback.print_exc()
        return CRASHED
    finally:
        sys.stdout.flush()


def _is_all_from(root: Path) -> bool:
    loaded = [module for name, module in sys.modules.items() if name.split(".")[0] in PROJECT]
    files = [Path(file) for module in loaded if (file := getattr(module, "__file__", None))]
    others = [file for file in files if not file.is_relative_to(root)]
    sys.stdout.write("".join(f"{file} is not below {root}.\n" for file in others))
    return not others


def _waited(child: int, seconds: float) -> int:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            with contextlib.suppress(ProcessLookupError):  # what a test may have left behind
                os.killpg(child, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return LATE


if __name__ == "__main__":
    main(Path(sys.argv[1]))
