"""What will become of a private table's values, told to a person at a terminal."""

import sys
from collections.abc import Iterator
from contextlib import suppress

from rich.console import Console
from rich.table import Table

from ppsyn.data.encoding.parsing import Fit
from ppsyn.data.encoding.table import Fate, fate_of
from ppsyn.evaluation.schema_check import EncodingSummary, lost_columns
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.release import Source
from ppsyn.schemas.table import TableSchema

WARNING = (
    "These numbers are private: they are exact, and no noise covers them. Do not save, send or publish them, "
    "and do not change the schema because of them in a way that would tell others what they are."
)

_LOST = (
    "Most values of {} do not fit the schema and would be lost, by the first rows of the table. Nothing is spent yet: "
    "to stop, press Ctrl-C. `ppsyn schema check` tells what becomes of the values."
)
_LOST_IS_PRIVATE = "This is private: it is exact, and no noise covers it. Do not save, send or publish it."

_CLASSES = {
    Fit.INSIDE: "in the domain",
    Fit.OUTSIDE: "outside",
    Fit.MISFIT: "not comparable",
    Fit.NULL: "null",
}
_FATES = {
    Fate.KEPT: "kept",
    Fate.CLIPPED: "clipped to the nearest bin",
    Fate.NULL: "made null",
    Fate.FIRST: "put into the first bin",
    Fate.REFUSED: "REFUSED: the release stops",
}


def warn(source: Source, schema: TableSchema) -> None:
    """Name, where standard error is a terminal, the columns of which a release would lose most values.

    Elsewhere nothing is read. Nothing else depends on what is found, nor on whether it could be looked for: what
    stops a release, the release itself tells.
    """
    if not sys.stderr.isatty():
        return
    lost: list[str] = []
    with suppress(Exception):
        lost = lost_columns(source, schema)
    if lost:
        console = Console(stderr=True)
        for line in (_LOST.format(", ".join(map(repr, lost))), _LOST_IS_PRIVATE):
            console.print(line, style="bold", markup=False, highlight=False)


def show(summary: EncodingSummary, console: Console) -> None:
    """Print, column by column, which values there are and what becomes of them."""
    console.print(WARNING, style="bold", markup=False, highlight=False)
    kept = "" if summary.kept is None else f", of which {summary.kept} count: the others pass the most rows of a person"
    console.print(f"\n{summary.rows} rows{kept}", highlight=False)
    if summary.unreadable:
        console.print(
            f"{summary.unreadable} rows are lines that cannot be read: an open quote, another number of fields than "
            "the header has, or characters of another encoding. They count below in every column.",
            highlight=False,
        )
    table = Table(box=None, pad_edge=False)
    for name in ("column", "values", "rows", "become"):
        table.add_column(name, justify="right" if name == "rows" else "left", no_wrap=name == "rows")
    for name, column in summary.columns.items():
        for number, (told, count, fate) in enumerate(_lines(summary, column)):
            table.add_row("" if number else name, told, str(count), fate)
    console.print(table)
    for line in _names(summary):
        console.print(line, markup=False, highlight=False)


def _lines(summary: EncodingSummary, column: ColumnSchema) -> Iterator[tuple[str, int, str]]:
    """The classes of values that there are; those in the domain always."""
    counts = summary.fits[column.name]
    for fit, told in _CLASSES.items():
        if fit is Fit.INSIDE or counts[fit]:
            fate = fate_of(fit, column)
            yield told, counts[fit], f"{column.other!r}" if fate is Fate.OTHER else _FATES[fate]


def _names(summary: EncodingSummary) -> Iterator[str]:
    names = summary.names
    for name in names.missing:
        yield f"Missing: the table has no column {name!r}; a release would be refused."
    for name in names.absent:
        yield f"Missing: the table has no column {name!r}, which `excluded` names; a release would be refused."
    for name in names.unknown:
        yield f"Unknown: {name!r} is neither in `columns` nor in `excluded`; a release would be refused."
    for name in names.excluded:
        yield f"Left out: {name!r} is in `excluded`, and was not looked at."
