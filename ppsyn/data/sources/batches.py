"""Some rows of the private table."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
from typing_extensions import override

from ppsyn.errors import SourceError, translated

UNREADABLE_LINE = "\0line"
"""Stands in every column for a line of a CSV file that cannot be read, which no field can hold: it fits no domain."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Batch:
    """Private rows, with the columns of the schema and the person column if there is one."""

    fragment: str
    """Where they come from: the address of a file, or "the query"."""
    frame: pd.DataFrame

    @override
    def __repr__(self) -> str:
        return f"Batch({self.fragment})"

    def unreadable_lines(self) -> int:
        """How many rows stand for a line that cannot be read. Private."""
        return int((self.frame == UNREADABLE_LINE).any(axis="columns").sum())


def regroup(blocks: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of `rows` rows; the last may have fewer."""
    held: list[pa.RecordBatch] = []
    count = 0
    for block in blocks:
        start = 0
        while count + block.num_rows - start >= rows:
            taken = rows - count
            held.append(block.slice(start, taken))
            yield pa.Table.from_batches(held)
            start, held, count = start + taken, [], 0
        if start < block.num_rows:
            held.append(block.slice(start))
            count += block.num_rows - start
    if held:
        yield pa.Table.from_batches(held)


def guarded(frames: Iterator[pd.DataFrame], broken: tuple[type[Exception], ...], rule: str) -> Iterator[pd.DataFrame]:
    """The same frames; of an error of these kinds the rule alone is told, because its text may quote a row.

    Raises:
        SourceError: With the rule.
    """
    while True:
        with translated(broken, to=SourceError, message=rule):
            frame = next(frames, None)
        if frame is None:
            return
        yield frame
