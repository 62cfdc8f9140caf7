"""Some rows of the private table."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
from typing_extensions import override


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Batch:
    """Private rows, with the columns of the schema and the person column if there is one."""

    fragment: str
    """Where they come from: the address of a file, or "the query"."""
    frame: pd.DataFrame

    @override
    def __repr__(self) -> str:
        return f"Batch({self.fragment})"


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
