"""What commands print, tables, JSON, questions and errors, and the exit code they end with."""

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import wraps
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_PIPE_COLUMNS = 10_000

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


class ServerError(Exception):
    """A Prefect server that does not start or does not answer."""


class Exit(IntEnum):
    """Exit codes; 0 is done, 1 a defect."""

    MISTAKE = 2
    BUDGET = 3
    RESUME = 4
    AUDIT = 5
    STORE = 6
    ATTENTION = 7
    INTERRUPTED = 130


MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        0: "done",
        1: "a defect of ppsyn",
        Exit.MISTAKE: "a mistake in the command, the release file, the schema or the table",
        Exit.BUDGET: "the account has too little budget left",
        Exit.RESUME: "the run cannot be resumed, or another process goes on with it",
        Exit.AUDIT: "the audit found something",
        Exit.STORE: "a store, a database, the Prefect server or Dask failed; try again, or resume",
        Exit.ATTENTION: "something needs somebody (`ppsyn overview --check`)",
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


def handle_errors(function: F) -> F:
    """Print an expected error as one line and exit with its code; a defect keeps its traceback."""

    @wraps(function)
    def command(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            fail(Exit.INTERRUPTED, "Interrupted.")
        except Exception as error:
            code = exit_of(error)
            if code is None:
                raise
            fail(code, str(error))

    return command  # pyright: ignore[reportReturnType]  # the same parameters


def fail(code: Exit, message: str) -> NoReturn:
    """Print an error and exit."""
    click.echo(coloured(message, "red"), err=True)
    sys.exit(code)


def coloured(text: str, colour: str) -> str:
    """The text in a colour, unless the environment asks for none (https://no-color.org)."""
    return text if os.environ.get("NO_COLOR") else click.style(text, fg=colour)


def print_json(document: object) -> None:
    """Print a result for scripts."""
    click.echo(json.dumps(document, indent=2))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines as they are."""
    for line in lines:
        click.echo(line)


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Collection[str] = (),
    unwrapped: Collection[str] = (),
    to_stderr: bool = False,
) -> None:
    """Print a table, as wide as the terminal; elsewhere, such as in a pipe, as wide as it needs.

    Args:
        headings: Of its columns.
        rows: A text for each column; no markup.
        numbers: Columns that are aligned to the right.
        unwrapped: Columns whose texts stay on one line.
        to_stderr: Whether to print to standard error.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in headings:
        table.add_column(name, justify="right" if name in numbers else "left", no_wrap=name in unwrapped)
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(stderr=to_stderr)
    if not (console.is_terminal or os.environ.get("COLUMNS")):
        console.width = _PIPE_COLUMNS
    console.print(table)


def confirm(question: str) -> None:
    """Ask, and exit unless the answer is yes."""
    try:
        is_confirmed = click.confirm(question)
    except click.Abort:
        is_confirmed = False
    if not is_confirmed:
        fail(Exit.INTERRUPTED, "Nothing was changed.")
