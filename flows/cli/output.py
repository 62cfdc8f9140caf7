"""How a command tells what it has found, and what went wrong."""

import json
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

import click

from ppsyn.flows.cli.exit_codes import Exit, exit_of

F = TypeVar("F", bound=Callable[..., Any])

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


def told(function: F) -> F:
    """Tell a person's mistake in a sentence, and give each kind of failure its exit code."""

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
    """Tell what went wrong, and leave."""
    click.echo(coloured(message, "red"), err=True)
    sys.exit(code)


def coloured(text: str, colour: str) -> str:
    """The text in a colour, unless the environment asks for none (https://no-color.org)."""
    return text if os.environ.get("NO_COLOR") else click.style(text, fg=colour)


def print_json(document: object) -> None:
    """Print a result for scripts."""
    click.echo(json.dumps(document, indent=2))


def confirm(question: str) -> None:
    """Ask, and leave unless the answer is yes."""
    try:
        is_confirmed = click.confirm(question)
    except click.Abort:
        is_confirmed = False
    if not is_confirmed:
        fail(Exit.INTERRUPTED, "Nothing was changed.")
