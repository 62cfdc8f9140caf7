"""Render every command and exit code as Markdown from the command line itself."""

from collections.abc import Iterator
from inspect import cleandoc
from textwrap import dedent

import click

from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import MEANINGS

_KEPT = "\b\n"
"""The prefix of a help paragraph whose line breaks are kept."""


def commands(level: int) -> str:
    """Render a section for each command."""
    return "\n".join(line for name, command in _all("ppsyn", main) for line in _section(name, command, level))


def exit_codes() -> str:
    """Render a table of the exit codes."""
    return "\n".join(
        ["| exit code | meaning |", "|---|---|", *(f"| {code} | {meaning} |" for code, meaning in MEANINGS.items())]
    )


def _all(path: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from _all(f"{path} {name}", command)


def _section(name: str, command: click.Command, level: int) -> Iterator[str]:
    pieces = command.collect_usage_pieces(click.Context(command, info_name=name))
    yield f"{'#' * level} {name}\n"
    yield f"    {name} {' '.join(pieces)}\n"
    for paragraph in cleandoc(command.help or "").split("\n\n"):
        yield _paragraph(paragraph)
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if options:
        yield "| option | meaning | default |"
        yield "|---|---|---|"
        yield from map(_row, options)
        yield ""


def _paragraph(text: str) -> str:
    if not text.startswith(_KEPT):
        return f"{text}\n"
    head, _, body = text.removeprefix(_KEPT).partition("\n")
    return f"{head}\n\n```text\n{dedent(body)}\n```\n"


def _row(option: click.Option) -> str:
    name = " ".join((option.opts[-1], "" if option.is_flag else option.make_metavar(click.Context(main)))).strip()
    variable = f" Environment variable: `{option.envvar}`." if option.envvar else ""
    return f"| `{name}` | {option.help or ''}{variable} | {_default(option)} |"


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    return f"`{option.default}`" if option.show_default else ""
