"""What a command's exit code tells a script."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class ServerError(Exception):
    """A Prefect server that does not start or does not answer."""


class Exit(IntEnum):
    """Exit codes; 0 is done, 1 a defect."""

    MISTAKE = 2
    BUDGET = 3
    RESUME = 4
    AUDIT = 5
    STORE = 6
    INTERRUPTED = 130


MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        0: "done",
        1: "a defect of ppsyn",
        Exit.MISTAKE: "a mistake in the command, the release file, the schema or the table",
        Exit.BUDGET: "the account does not have what was asked for",
        Exit.RESUME: "the run cannot be resumed, or another process goes on with it",
        Exit.AUDIT: "the audit found something",
        Exit.STORE: "a store, a database, the Prefect server or Dask failed; try again, or resume",
        Exit.INTERRUPTED: "interrupted; resume",
    }
)
"""What each code says, in `ppsyn --help` and in the docs."""


def exit_of(error: Exception) -> Exit | None:
    """The exit code of a failure that is not a defect."""
    from ppsyn import errors  # after help was shown

    codes: tuple[tuple[type[Exception], Exit | None], ...] = (
        (errors.InvariantError, None),
        (errors.AccountError, Exit.BUDGET),
        (errors.BudgetExceededError, Exit.BUDGET),
        (errors.AuditError, Exit.AUDIT),
        (errors.RunError, Exit.RESUME),
        (errors.StoreError, Exit.STORE),
        (errors.ClusterError, Exit.STORE),
        (ServerError, Exit.STORE),
        (errors.PPSynError, Exit.MISTAKE),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), None)
