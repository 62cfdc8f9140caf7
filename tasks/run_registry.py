"""The runs that this process goes on with. Tasks are told names and addresses; what they stand for is here."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from ppsyn.mechanisms.base import State
from ppsyn.runs.run import Run
from ppsyn.schemas.run import RunRef


class Watcher(Protocol):
    """Is told how a run goes: released values only."""

    def opened(self, ref: RunRef) -> None:
        """A run has a name now, by which it can be resumed."""
        ...

    def entered(self, stage: str) -> None:
        """The run does something that takes a while."""
        ...

    def advanced(self, state: State) -> None:
        """The run has absorbed an answer."""
        ...


_RUNS: dict[str, Run] = {}
_WATCHERS: list[Watcher] = []


def run_of(ref: RunRef) -> Run:
    """The run, read from its stores if this process does not have it."""
    if ref.run not in _RUNS:
        _RUNS[ref.run] = Run(ref)
    return _RUNS[ref.run]


def forget(ref: RunRef) -> None:
    """Have the run read from its stores again, whatever became of it in this process."""
    _RUNS.pop(ref.run, None)


@contextmanager
def watched_by(watcher: Watcher) -> Generator[None]:
    """Tell `watcher` how runs of this process go."""
    _WATCHERS.append(watcher)
    try:
        yield
    finally:
        _WATCHERS.remove(watcher)


def watchers() -> tuple[Watcher, ...]:
    """Who is to be told."""
    return tuple(_WATCHERS)
