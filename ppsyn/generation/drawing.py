"""Values drawn from bins, evenly, and again where they do not come in the order that rules ask for."""

from collections.abc import Mapping, Sequence

import numpy as np

from ppsyn.arrays import Codes, Flags, Floats, Ints
from ppsyn.schemas.columns import BinnedColumn, BooleanColumn, CategoricalColumn, DatetimeColumn, RealColumn
from ppsyn.schemas.columns.intervals import Axis
from ppsyn.schemas.derivation import Values
from ppsyn.schemas.rules import Precedence
from ppsyn.schemas.table import TableSchema

_ATTEMPTS = 16
"""Draws of rows that come out of order, before they are drawn one column after another."""


def draw_whole(starts: Axis, ends: Axis, rng: np.random.Generator) -> Ints:
    """Whole numbers from `starts` to `ends`, both included."""
    return rng.integers(np.asarray(starts, np.int64), np.asarray(ends, np.int64), endpoint=True)


def draw_reals(starts: Axis, ends: Axis, rng: np.random.Generator) -> Floats:
    """Reals; those that rounding carries past an end are moved back to it."""
    shares = rng.random(starts.size)
    return np.clip(starts * (1 - shares) + ends * shares, starts, ends)


def tick_of(column: BinnedColumn) -> int:
    """How far apart on its axis the values are that are drawn, where they are whole."""
    return column.tick if isinstance(column, DatetimeColumn) else 1


def bring_in_order(
    drawn: dict[str, Values], codes: Mapping[str, Codes], schema: TableSchema, rng: np.random.Generator
) -> None:
    """Draw values again, in the rows and columns where one is greater than what must not come before it.

    They are drawn evenly among those in order, by rejection; where that takes too long, one column after another.
    """
    for group in _groups(schema.precedences):
        columns = {column.name: column for column in schema.attributes}
        part = _Part({name: columns[name] for name in _sorted(group)}, group, drawn, codes)
        rows = np.flatnonzero(part.is_reversed(slice(None)))
        for _ in range(_ATTEMPTS):
            if not rows.size:
                break
            for name in part.columns:
                part.put(name, rows, part.starts[name][rows], part.ends[name][rows], rng)
            rows = rows[part.is_reversed(rows)]
        if rows.size:
            part.draw_in_turn(rows, rng)
        drawn.update(part.drawn())


def _groups(steps: Sequence[Precedence]) -> list[list[Precedence]]:
    """The orders, those together that share columns."""
    found: list[list[Precedence]] = []
    for step in steps:
        pair = {step.before, step.after}
        joined = [group for group in found if any(pair & {one.before, one.after} for one in group)]
        found = [group for group in found if group not in joined]
        found.append([*(one for group in joined for one in group), step])
    return found


def _sorted(group: Sequence[Precedence]) -> list[str]:
    """The columns, none before one that it must not come before."""
    names = dict.fromkeys(name for step in group for name in (step.before, step.after))
    return sorted(names, key=lambda name: sum(step.after == name for step in group))


class _Part:
    """Columns that orders join, in some rows of which values are drawn again; numbers are in ticks."""

    def __init__(
        self,
        columns: Mapping[str, object],
        steps: Sequence[Precedence],
        drawn: Mapping[str, Values],
        codes: Mapping[str, Codes],
    ) -> None:
        """Take what was drawn."""
        self.columns: dict[str, BinnedColumn] = {}
        self.starts, self.ends = dict[str, Axis](), dict[str, Axis]()
        self._numbers, self._nulls = dict[str, Axis](), dict[str, Flags]()
        self._steps = steps
        for name, column in columns.items():
            if not isinstance(column, BinnedColumn) or isinstance(column, CategoricalColumn | BooleanColumn):
                continue
            self.columns[name] = column
            self._nulls[name] = drawn[name].nulls
            present = np.where(drawn[name].nulls, 0, codes[name])
            self.starts[name], self.ends[name] = column.drawable.starts[present], column.drawable.ends[present]
            tick = tick_of(column)
            self._numbers[name] = drawn[name].numbers // tick if tick > 1 else drawn[name].numbers.copy()

    def drawn(self) -> dict[str, Values]:
        """The values as they are now."""
        return {
            name: Values(self._numbers[name] * tick if (tick := tick_of(column)) > 1 else self._numbers[name], nulls)
            for (name, column), nulls in zip(self.columns.items(), self._nulls.values(), strict=True)
        }

    def is_reversed(self, rows: Ints | slice) -> Flags:
        """In which rows a value is greater than one that it must not be greater than."""
        return np.logical_or.reduce(
            [
                self._holds(step, rows)
                & (self._numbers[step.before][rows] + step.gap > self._numbers[step.after][rows])
                for step in self._steps
            ]
        )

    def _holds(self, step: Precedence, rows: Ints | slice) -> Flags:
        return ~(self._nulls[step.before][rows] | self._nulls[step.after][rows])

    def put(self, name: str, rows: Ints, starts: Axis, ends: Axis, rng: np.random.Generator) -> None:
        """Draw the values of a column in some rows."""
        column = self.columns[name]
        if isinstance(column, RealColumn):
            reals = draw_reals(starts, ends, rng)
            self._numbers[name][rows] = reals.astype(np.dtype(column.decoded_dtype)).astype(np.float64)
        else:
            self._numbers[name][rows] = draw_whole(starts, ends, rng)

    def draw_in_turn(self, rows: Ints, rng: np.random.Generator) -> None:
        """Draw column by column: not before what was drawn, and not after what has still to find room."""
        for name in self.columns:
            starts, ends = self.starts[name][rows], self.ends[name][rows]
            for step in self._steps:
                holds = self._holds(step, rows)
                if step.after == name:
                    starts = np.where(holds, np.maximum(starts, self._numbers[step.before][rows] + step.gap), starts)
                if step.before == name:
                    ends = np.where(holds, np.minimum(ends, self.ends[step.after][rows] - step.gap), ends)
            self.put(name, rows, starts, ends, rng)
