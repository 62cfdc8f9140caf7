"""A release, and what each of its stages takes.

python -m performance.staged FILE    prints seconds, processor seconds and the peak of memory by stage, as JSON
"""

import json
import sys
import time
from dataclasses import dataclass, field

from performance.resources import forget_peak, peak_mb

from ppsyn.flows.ephemeral_server import prefect_api
from ppsyn.mechanisms.base import State
from ppsyn.schemas.run import RunRef


@dataclass
class Stages:
    """A watcher that notes what passes between one stage and the next."""

    done: list[dict[str, float | str]] = field(default_factory=list[dict[str, float | str]])
    _now: str = "checking the release"
    _began: tuple[float, float] = (0.0, 0.0)

    def opened(self, ref: RunRef) -> None:
        """Begin the first stage."""
        self._begin(self._now)

    def entered(self, stage: str) -> None:
        """End a stage and begin the next."""
        seconds, cpu = (now - then for now, then in zip(_clocks(), self._began, strict=True))
        self.done.append({"stage": self._now, "seconds": seconds, "cpu_seconds": cpu, "peak_mb": peak_mb()})
        self._begin(stage)

    def advanced(self, state: State) -> None:
        """The first answer ends the count."""
        if self._now == "counting marginals":
            self.entered("asking and fitting")

    def _begin(self, stage: str) -> None:
        forget_peak()
        self._now, self._began = stage, _clocks()


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def main() -> None:
    """Release what the file says, with a server of its own."""
    stages = Stages()
    with prefect_api():
        from ppsyn.flows.release import release  # noqa: PLC0415  # Prefect is imported while its server starts
        from ppsyn.tasks.run_registry import watched_by  # noqa: PLC0415

        with watched_by(stages):
            release(sys.argv[1])
    stages.entered("")
    sys.stdout.write(f"{json.dumps({'stages': stages.done})}\n")


if __name__ == "__main__":
    main()
