"""A table of any length whose attributes depend on each other, a block of rows at a time, from a seed."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from ppsyn.arrays import Codes
from ppsyn.data.snapshot import FORMAT, Contents, Shelf, complete, write_codes
from ppsyn.domain import domain_of
from ppsyn.schemas.table import TableSchema

SIZES = (2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20)
"""Of 15 attributes: 455 marginals of three, the largest of 4,800 cells."""

SCHEMA = TableSchema.model_validate(
    {
        "name": "population",
        "columns": [
            {"name": f"a{number:02d}", "kind": "integer", "lower": 0, "upper": size - 1}
            for number, size in enumerate(SIZES)
        ],
    }
)
DOMAIN = domain_of(SCHEMA)

BLOCK_ROWS = 131_072


def blocks(rows: int, block_rows: int = BLOCK_ROWS) -> Iterator[dict[str, Codes]]:
    """The codes of so many rows. Neighbouring attributes have more in common than distant ones."""
    for number, start in enumerate(range(0, rows, block_rows)):
        count = min(block_rows, rows - start)
        rng = np.random.Generator(np.random.PCG64([20261118, number]))
        latent, found = rng.random(count), dict[str, Codes]()
        for attribute in DOMAIN.attributes:
            latent = np.where(rng.random(count) < 0.7, latent, rng.random(count))
            found[attribute.name] = (latent**2 * attribute.size).astype(np.int32)
        yield found


def write_snapshot(shelf: Shelf, rows: int) -> None:
    """The table as a run keeps it, in at least 30 fragments."""
    size = max(1, min(BLOCK_ROWS, rows // 30))
    fragments = tuple(
        write_codes(shelf, f"fragments/{number:05d}.parquet", block, DOMAIN)
        for number, block in enumerate(blocks(rows, size))
    )
    complete(shelf, Contents(format=FORMAT, schema_digest=SCHEMA.digest(), fragments=fragments))


def write_table(path: Path, rows: int) -> None:
    """The table as a Parquet file that a release can read."""
    schema = pa.schema([(name, pa.int32()) for name in DOMAIN.names])
    with parquet.ParquetWriter(path, schema) as writer:
        for block in blocks(rows):
            writer.write_table(pa.table(block, schema))
