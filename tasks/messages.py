"""What a flow run tells while it goes on, and how its failures are told: in a sentence."""

import logging

from prefect import get_run_logger
from prefect.client.schemas.objects import State
from prefect.states import Failed
from typing_extensions import override

from ppsyn.errors import ClusterError, InvariantError, PPSynError, RunTakenError, SourceError, StoreError
from ppsyn.tasks.run_registry import watchers

_PASSING = (StoreError, ClusterError, SourceError, RunTakenError)
"""What another try may get past, later."""

REFUSED = "Refused"
"""The state of a flow run that would end the same way however often it is tried."""


def tell(stage: str) -> None:
    """Say what is done now, to the flow run's log and to whoever watches."""
    get_run_logger().info(stage)
    for watcher in watchers():
        watcher.entered(stage)


def failed(error: PPSynError) -> State[str]:
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
