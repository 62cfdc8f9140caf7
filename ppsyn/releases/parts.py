"""Synthetic rows as Parquet files of their own, each of which any process can make: a table in parts."""

import io
from collections.abc import Iterator

from ppsyn.code_version import code_version
from ppsyn.errors import ClusterError
from ppsyn.generation.plan import Recipe
from ppsyn.generation.sampling import BLOCK_ROWS
from ppsyn.releases.tables import write_rows

PART_BLOCKS = 4
"""Blocks of a part: a second's work or less, and a few MB to send."""


def part_rows(recipe: Recipe) -> Iterator[int]:
    """The number of rows of each part, in order; a table without rows has one part, for its types."""
    most = PART_BLOCKS * BLOCK_ROWS
    return (min(most, recipe.rows - start) for start in range(0, max(1, recipe.rows), most))


def make_part(recipe: Recipe, number: int, group_rows: int, source: str) -> bytes:
    """A part as a Parquet file, made by a process whose code has the digest `source`.

    Raises:
        ClusterError: If this is other code, which might make other rows of the same seed.
    """
    if code_version().source != source:
        raise ClusterError("Expected workers with the code of whoever asks for rows. Install the same version on all.")
    first = number * PART_BLOCKS
    blocks = map(recipe.block, range(first, min(first + PART_BLOCKS, recipe.blocks)))
    file = io.BytesIO()
    write_rows(blocks, recipe.no_rows(), file, group_rows)
    return file.getvalue()


def kept(recipe: Recipe) -> Recipe:
    """The recipe itself, for workers to have from each other."""
    return recipe
