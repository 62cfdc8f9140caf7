"""What codes stand for, in words: values, ranges, and groups of cells."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

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
"""Values or ranges that are told one by one."""


def name_codes(column: ColumnSchema, codes: Sequence[int]) -> str:
    """What a set of codes, in increasing order, stands for."""
    if len(codes) == column.size > 1:
        return "any value"
    values = [code for code in codes if code != column.null_code]
    pieces = _pieces(column, values)
    if len(values) < len(codes):
        pieces.append("no value")
    return ", ".join(pieces)


def _pieces(column: ColumnSchema, codes: Sequence[int]) -> list[str]:
    if not column.is_ordered:
        return _listed(column, [(code, code) for code in codes], "more")
    return _listed(column, _runs(codes), "more ranges")


def _listed(column: ColumnSchema, ranges: Sequence[tuple[int, int]], rest: str) -> list[str]:
    shown = ranges if len(ranges) <= _LISTED else ranges[: _LISTED - 1]
    pieces = [_value(column, first, last) for first, last in shown]
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


def _value(column: ColumnSchema, first: int, last: int) -> str:
    if isinstance(column, CategoricalColumn | BooleanColumn):
        return _range(*(_label(column.labels[code]) for code in (first, last)))
    start, end = column.intervals.starts[first].item(), column.intervals.ends[last].item()
    return _range(_position(column, start), _position(column, end))


def _label(label: str | int) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _range(first: str, last: str) -> str:
    if first == last:
        return first
    is_short = first.isdecimal() and last.isdecimal()
    return f"{first}\N{EN DASH}{last}" if is_short else f"{first} to {last}"


def _position(column: BinnedColumn, position: float) -> str:
    """A place on the axis of a column, as its values are written."""
    if isinstance(column, DateColumn):
        return (date(1970, 1, 1) + timedelta(days=int(position))).isoformat()
    if isinstance(column, DatetimeColumn):
        return local_time(int(position), column.zone).isoformat(" ", "minutes")
    return str(position) if isinstance(position, int) else f"{position:.6g}"


def name_group(columns: Mapping[str, ColumnSchema], clique: Clique, cells: Codes) -> str:
    """What a group of cells of a marginal stands for; attributes that may have any value are not mentioned."""
    shape = [columns[name].size for name in clique]
    axes = [np.unique(axis) for axis in np.unravel_index(cells, shape)]
    told = [
        f"{name}: {name_codes(columns[name], axis.tolist())}"
        for name, axis, size in zip(clique, axes, shape, strict=True)
        if axis.size < size
    ]
    text = "; ".join(told) or "all rows"
    is_box = cells.size == np.prod([axis.size for axis in axes], dtype=np.int64)
    return text if is_box else f"{cells.size} cells within {text}"
