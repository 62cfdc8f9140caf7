"""What a person sees in a terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager


def _open() -> tuple[int, int]:
    """Both sides of a terminal of 80 columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    return master, slave


@contextmanager
def terminal_as_stderr() -> Generator[Callable[[], str]]:
    """Have this process's standard error on a terminal; afterwards, what was seen there."""
    master, slave = _open()
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.extend(_read(master)))
    before, sys.stderr = sys.stderr, os.fdopen(slave, "w", encoding="utf-8")
    reader.start()
    try:
        yield lambda: b"".join(seen).decode().replace("\r\n", "\n")
    finally:
        sys.stderr.close()
        sys.stderr = before
        reader.join()
        os.close(master)


def on_a_terminal(command: Sequence[str], **environment: str) -> str:
    """What a person sees in a terminal of 80 columns."""
    master, slave = _open()
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env={**kept, "TERM": "xterm-256color", **environment}
    )
    os.close(slave)
    seen = b"".join(_read(master))
    os.close(master)
    assert process.wait(60) is not None
    return seen.decode().replace("\r\n", "\n")


def _read(handle: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(handle, 4096)
        except OSError:  # Linux, when the other side is closed
            return
        if not data:
            return
        yield data
