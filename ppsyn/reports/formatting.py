"""Numbers, names and groups of values as a reader sees them."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from fractions import Fraction

import numpy as np

from ppsyn.arrays import Codes
from ppsyn.domain import Clique
from ppsyn.schemas.columns import (
    BinnedColumn,
    BooleanColumn,
    CategoricalColumn,
    ColumnSchema,
    DateColumn,
    DatetimeColumn,
)
from ppsyn.schemas.columns.calendar import local_time

_LISTED = 3
"""Values or ranges that a label names one by one."""


def count(number: float) -> str:
    """A number of rows or cells, with commas."""
    return f"{round(number):,}"


def percent(part: float | Fraction) -> str:
    """A fraction of a whole, in percent, with as many digits as it takes to differ from zero."""
    number = 100 * float(part)
    if number == 0 or number >= 9.95:
        return f"{number:.0f}%"
    return f"{number:.1f}%" if number >= 0.095 else f"{number:.1g}%"


def exact_percent(part: float) -> str:
    """A fraction of a whole in percent, always with two decimals, so that figures can be compared."""
    return f"{100 * part:.2f}%"


def probability(number: float) -> str:
    """A small probability, as short as it can be written."""
    return f"{number:g}".replace("e-0", "e-")


def amount(rho: Fraction) -> str:
    """An amount of budget, to four digits."""
    return f"{float(rho):.4g}"


def plural(number: int, thing: str) -> str:
    """A number with its noun, which takes an s unless there is one of it."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def marginal_name(clique: Clique) -> str:
    """The name of a marginal."""
    return " \N{MULTIPLICATION SIGN} ".join(clique)


def join_names(names: Sequence[str], most: int = 10) -> str:
    """Names one after the other, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def truncate(text: str, most: int) -> str:
    """A text that fits, with an ellipsis for the end that was cut off."""
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def shorten_middle(name: str, most: int = 14) -> str:
    """A name that fits, with an ellipsis for its middle: names often differ at their ends."""
    return name if len(name) <= most else f"{name[: most // 2]}\N{HORIZONTAL ELLIPSIS}{name[1 + most // 2 - most :]}"


def name_codes(column: ColumnSchema, codes: Sequence[int]) -> str:
    """What a set of codes, in increasing order, stands for."""
    if len(codes) == column.size > 1:
        return "any value"
    values = [code for code in codes if code != column.null_code]
    pieces = _pieces(column, values)
    if len(values) < len(codes):
        pieces.append("no value")
    return ", ".join(pieces)


def name_group(columns: Mapping[str, ColumnSchema], clique: Clique, cells: Codes) -> str:
    """What a group of cells of a marginal stands for; an attribute that may have any value is not named."""
    shape = [columns[name].size for name in clique]
    axes = [np.unique(axis) for axis in np.unravel_index(cells, shape)]
    named = [
        f"{name}: {name_codes(columns[name], axis.tolist())}"
        for name, axis, size in zip(clique, axes, shape, strict=True)
        if axis.size < size
    ]
    text = "; ".join(named) or "all rows"
    is_box = cells.size == np.prod([axis.size for axis in axes], dtype=np.int64)
    return text if is_box else f"{cells.size} cells within {text}"


def _pieces(column: ColumnSchema, codes: Sequence[int]) -> list[str]:
    if not column.is_ordered:
        return _name_ranges(column, [(code, code) for code in codes], "more")
    return _name_ranges(column, _runs(codes), "more ranges")


def _name_ranges(column: ColumnSchema, ranges: Sequence[tuple[int, int]], rest: str) -> list[str]:
    shown = ranges if len(ranges) <= _LISTED else ranges[: _LISTED - 1]
    pieces = [_name_range(column, first, last) for first, last in shown]
    return pieces if shown is ranges else [*pieces, f"{len(ranges) - len(shown)} {rest}"]


def _runs(codes: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last code of every stretch without a gap."""
    runs: list[tuple[int, int]] = []
    for code in codes:
        if runs and code == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], code)
        else:
            runs.append((code, code))
    return runs


def _name_range(column: ColumnSchema, first: int, last: int) -> str:
    if isinstance(column, CategoricalColumn | BooleanColumn):
        return _join_ends(*(_label(column.labels[code]) for code in (first, last)))
    start, end = column.intervals.starts[first].item(), column.intervals.ends[last].item()
    return _join_ends(_position(column, start), _position(column, end))


def _label(label: str | int) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _join_ends(first: str, last: str) -> str:
    if first == last:
        return first
    is_short = first.isdecimal() and last.isdecimal()
    return f"{first}\N{EN DASH}{last}" if is_short else f"{first} to {last}"


def _position(column: BinnedColumn, position: float) -> str:
    """A position on the axis of a column, as its values are written."""
    if isinstance(column, DateColumn):
        return (date(1970, 1, 1) + timedelta(days=int(position))).isoformat()
    if isinstance(column, DatetimeColumn):
        return local_time(int(position), column.zone).isoformat(" ", "minutes")
    return str(position) if isinstance(position, int) else f"{position:.6g}"
