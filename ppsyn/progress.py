"""A line on the terminal that shows how far a release has come: released values only."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ppsyn.state import State


@contextmanager
def shown(is_wanted: bool | None) -> Generator[Callable[[State], None]]:
    """Watch a run on standard error; by default where that is a terminal."""
    if not (sys.stderr.isatty() if is_wanted is None else is_wanted):
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}% of the budget"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        bar = progress.add_task("one-way marginals", total=1.0)

        def watch(state: State) -> None:
            progress.update(bar, completed=float(state.spent / state.plan.rho), description=describe(state))

        yield watch


def describe(state: State) -> str:
    """What a run is doing, in a few words."""
    if state.one_way:
        return "one-way marginals"
    if state.left == 0:
        return f"{len(state.rounds)} rounds"
    return f"round {len(state.rounds) + 1}" + (f": {' x '.join(state.chosen.clique)}" if state.chosen else "")
