"""A step of a flow: a Prefect task that keeps nothing, repeats nothing, and lets no private value out."""

import traceback
from asyncio import CancelledError
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.exceptions import ExternalSignal, PrefectSignal

from ppsyn.errors import InvariantError, PPSynError
from ppsyn.runs.record import private_folder
from ppsyn.schemas.run import RunRef
from ppsyn.storage import open_store

_SIGNALS = (KeyboardInterrupt, CancelledError, ExternalSignal, PrefectSignal)
"""What ends a task from outside. An exit from inside is none: it may carry a text."""

P = ParamSpec("P")
R = TypeVar("R")


def step(
    name: str, label: str | None = None
) -> Callable[[Callable[Concatenate[RunRef, P], R]], Task[Concatenate[RunRef, P], R]]:
    """Make a function a task.

    Prefect keeps no result of it. It never repeats it either: to draw twice is to spend twice, so
    a run goes on by being resumed.

    Args:
        name: Its name.
        label: What a run of it is called, after dataset and run; by default its name.
    """

    def made(function: Callable[Concatenate[RunRef, P], R]) -> Task[Concatenate[RunRef, P], R]:
        return task(
            name=name,
            task_run_name=f"{{ref.dataset}} {{ref.run}} {label or name}",
            persist_result=False,
            cache_policy=NO_CACHE,
            log_prints=False,
            retries=0,
        )(sealed(function))

    return made


def sealed(function: Callable[Concatenate[RunRef, P], R]) -> Callable[Concatenate[RunRef, P], R]:
    """Let no unforeseen error carry a private value out: its text would become the state of the run.

    Our own errors name public facts only and pass. Of any other only the type is shown;
    the rest is written beside the private fragments.
    """

    @wraps(function)
    def guarded(ref: RunRef, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(ref, *args, **kwargs)
        except PPSynError as error:
            failure: BaseException = error.with_traceback(None)
        except BaseException as error:  # noqa: BLE001  # whatever it is, its text must not get out; a panic is no Exception
            failure = signal_in(error) or InvariantError(
                f"{type(error).__name__} in {function.__name__}; its text may be private and is in {_keep(ref, error)}."
            )
        failure.__cause__ = failure.__context__ = None
        raise failure

    return guarded


def signal_in(error: BaseException | None) -> BaseException | None:
    """The interrupt that an error stands for.

    Compiled code turns one that meets it into a SystemError, Prefect's engine into errors of its own.
    """
    met: list[BaseException] = []
    while error is not None and error not in met:
        if isinstance(error, _SIGNALS):
            return error
        met.append(error)
        error = error.__cause__ or error.__context__
    return None


def _keep(ref: RunRef, error: BaseException) -> str:
    """Write the error where private things are; returns where."""
    key = f"{private_folder(ref.run)}/failure.txt"
    try:
        store = open_store(ref.private)
        store.put(key, "".join(traceback.format_exception(error)).encode(errors="backslashreplace"))
    except Exception:  # noqa: BLE001  # whatever it is, it would carry the error along
        return "no file, because the private store failed too"
    return store.url(key)
