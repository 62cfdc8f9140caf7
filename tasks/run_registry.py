"""The runs of this process, by reference, and what a flow run says while it works on one.

Tasks receive names and addresses; the live objects are here.
"""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from prefect import get_run_logger
from prefect.client.schemas.objects import State as FlowState
from prefect.states import Failed
from typing_extensions import override

from ppsyn.errors import ClusterError, InvariantError, PPSynError, RunTakenError, SourceError, StoreError
from ppsyn.mechanisms.base import State
from ppsyn.runs.run import Run
from ppsyn.schemas.run import RunRef


class Watcher(Protocol):
    """Receives the progress of a run: released values only."""

    def opened(self, ref: RunRef) -> None:
        """Called once the run has a name, by which it can be resumed."""
        ...

    def entered(self, stage: str) -> None:
        """Called when the run starts something that takes a while."""
        ...

    def advanced(self, state: State) -> None:
        """Called when the run has absorbed an answer."""
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
    """Send the progress of this process's runs to `watcher`."""
    _WATCHERS.append(watcher)
    try:
        yield
    finally:
        _WATCHERS.remove(watcher)


def watchers() -> tuple[Watcher, ...]:
    """All watchers of this process."""
    return tuple(_WATCHERS)


_PASSING = (StoreError, ClusterError, SourceError, RunTakenError)
"""What another try may get past, later."""

REFUSED = "Refused"
"""The state of a flow run that would end the same way however often it is tried."""


def tell(stage: str) -> None:
    """Say what is done now, to the flow run's log and to whoever watches."""
    get_run_logger().info(stage)
    for watcher in watchers():
        watcher.entered(stage)


def failed_state(error: PPSynError) -> FlowState[str]:
    """The state of a flow run that met this error: its sentence, and whether it is worth another try."""
    return Failed(name="Failed" if isinstance(error, _PASSING) else REFUSED, message=str(error), data=error)


class _InASentence(logging.Filter):
    """Prefect logs a traceback for each error; ours say all there is to say."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, PPSynError) and not isinstance(error, InvariantError):
            record.msg, record.args, record.exc_info, record.exc_text = str(error), (), None, None
        return True


def tell_errors_in_a_sentence() -> None:
    """Have Prefect log no traceback of errors that are foreseen."""
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logger = logging.getLogger(name)
        if not any(isinstance(known, _InASentence) for known in logger.filters):
            logger.addFilter(_InASentence())
