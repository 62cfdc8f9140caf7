"""A command that is killed with SIGKILL at its n-th change of a store, before it or right after it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any

from ppsyn.flows.cli.main import main
from ppsyn.storage import Store

CHANGES = ("create", "put", "discard", "delete")


def killed_at(number: int, *, is_after: bool, arguments: list[str]) -> int:
    """Run the command in a process that is killed at this change; its exit code, -9 if it was killed."""
    command = [sys.executable, "-m", "support.interrupted", str(number), str(int(is_after)), *arguments]
    return subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, check=False).returncode


def _counted(method: Callable[..., Any], numbers: Iterator[int], number: int, *, is_after: bool) -> Callable[..., Any]:
    @wraps(method)
    def counted(self: Store, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401  as the method
        mine = next(numbers)  # threads change stores at once
        if mine == number and not is_after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = method(self, *arguments, **named)
        if mine == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return counted


def _run(number: int, *, is_after: bool, arguments: list[str]) -> None:
    numbers = count(1)
    for name in CHANGES:
        setattr(Store, name, _counted(getattr(Store, name), numbers, number, is_after=is_after))
    main.main(arguments, "ppsyn")


if __name__ == "__main__":
    _run(int(sys.argv[1]), is_after=sys.argv[2] == "1", arguments=sys.argv[3:])
