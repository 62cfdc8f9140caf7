"""Loaded by Dask into its workers: one is killed in the middle of a part, or all meet an error with a private text."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from ppsyn.data.marginals import kernel

MARKER = "PPSYN_TEST_DEAD_WORKER"
"""The file that the dying one leaves, so that there is one."""
TEXT = "PPSYN_TEST_WORKER_SAYS"
"""What the error says."""


def dying(count: Callable[..., None]) -> Callable[..., None]:
    def count_and_die(*arguments: object) -> None:
        count(*arguments)
        try:
            Path(os.environ[MARKER]).open("x").close()
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    return count_and_die


def failing(*_: object) -> NoReturn:
    raise ValueError(os.environ[TEXT]) from KeyError(os.environ[TEXT])


if TEXT in os.environ:
    kernel.add_block = failing
elif MARKER in os.environ and kernel.add_block.__name__ == "add_block":  # loaded twice, it would call itself
    kernel.add_block = dying(kernel.add_block)
