"""What a piece of work takes: time, processor time, memory; and whether that is what was wanted."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
_FORGET_PEAK = "5"
"""For clear_refs of proc(5)."""


@dataclass(frozen=True, slots=True)
class Check:
    """A number, and what was wanted of it."""

    what: str
    value: float
    wanted: str
    is_kept: bool
    is_vital: bool = False
    """Whether a miss is a defect, and not a matter of speed."""

    def __str__(self) -> str:
        """A line for a person."""
        return f"{'PASS  ' if self.is_kept else 'missed'} {self.what}: {self.value:.3g}, wanted {self.wanted}"


def at_most(what: str, value: float, limit: float) -> Check:
    """Wanted: no more than that."""
    return Check(what, value, f"at most {limit:g}", value <= limit)


def at_least(what: str, value: float, limit: float) -> Check:
    """Wanted: no less than that."""
    return Check(what, value, f"at least {limit:g}", value >= limit)


def equal(what: str, is_equal: bool) -> Check:
    """Wanted: no difference."""
    return Check(what, float(not is_equal), "0", is_equal, is_vital=True)


def peak_mb() -> float:
    """The most memory that this process has had since it began, or since the peak was forgotten. Linux only."""
    (line,) = (line for line in _STATUS.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def forget_peak() -> None:
    """Measure the peak from here on."""
    Path("/proc/self/clear_refs").write_text(_FORGET_PEAK, encoding="ascii")


def told_by(module: str, *arguments: str) -> dict[str, Any]:
    """What a module prints as JSON when it runs in a process of its own."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def as_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in columns, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    )
