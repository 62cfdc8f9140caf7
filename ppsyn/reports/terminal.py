"""A run on a terminal: what it does, the budget as a bar, and the time that is left at the pace of the last rounds."""

import sys
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text
from typing_extensions import override

from ppsyn.mechanisms.base import State
from ppsyn.reports.progress import describe, spent_fraction


class _Bar(Progress):
    """A bar with a line above it."""

    line = ""

    @override
    def get_renderables(self) -> Iterable[RenderableType]:
        yield Text(self.line, no_wrap=True, overflow="ellipsis")
        yield self.make_tasks_table(self.tasks)


class Terminal:
    """Shows on standard error how a run goes, on two lines that are renewed."""

    def __init__(self) -> None:
        """Show nothing yet."""
        columns = (
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}% of the budget"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bar = _Bar(*columns, console=Console(stderr=True), expand=True)
        self._task = self._bar.add_task("", total=1.0)

    def start(self) -> None:
        """Begin to show."""
        self._bar.start()

    def stop(self) -> None:
        """Leave the last lines, and the terminal as it was."""
        self._bar.stop()

    def say(self, text: str) -> None:
        """Tell what is done now."""
        self._bar.line = text
        self._bar.refresh()

    def advance(self, state: State) -> None:
        """Show a run that has absorbed an answer."""
        self._bar.line = describe(state)
        self._bar.update(self._task, completed=spent_fraction(state))


def is_live_terminal() -> bool:
    """Whether standard error is a terminal that can renew a line."""
    console = Console(stderr=True)
    return sys.stderr.isatty() and not console.is_dumb_terminal
