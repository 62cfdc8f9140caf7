"""What to generate: all that any process needs to make any block of them. Released values only."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ppsyn.generation.decoding import decode
from ppsyn.generation.sampling import BLOCK_ROWS, Plan, check_count, make_block
from ppsyn.schemas.table import TableSchema


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """Rows of a model from a seed. A block depends on no other, and all of them on nothing but this.

    Attributes:
        plan: The model's.
        rows: How many in all. The last block takes what is left, so that fewer rows are not the first of more.
    """

    plan: Plan
    schema: TableSchema
    rows: int
    seed: int

    def __post_init__(self) -> None:
        """Refuse what is not a number of rows or a seed."""
        check_count("rows", self.rows)
        check_count("seed", self.seed)

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-self.rows // BLOCK_ROWS)

    def block(self, index: int) -> pd.DataFrame:
        """The rows of one block, in the schema's order of columns and with its dtypes."""
        codes = make_block(self.plan, index, min(BLOCK_ROWS, self.rows - index * BLOCK_ROWS), self.seed)
        # The second key keeps values within bins independent of the codes' own stream.
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(index, 1))))
        return decode({column.name: codes[column.name] for column in self.schema.attributes}, self.schema, rng)

    def all_blocks(self) -> Iterator[pd.DataFrame]:
        """All blocks in order, one at a time."""
        return map(self.block, range(self.blocks))

    def no_rows(self) -> pd.DataFrame:
        """A table without rows that has the types of all blocks."""
        codes = {column.name: np.zeros(0, np.int32) for column in self.schema.attributes}
        return decode(codes, self.schema, np.random.Generator(np.random.PCG64(0)))
