"""A table of four attributes in a ring, each tied to its neighbours by a bit: no tree of pairs holds all four ties."""

import numpy as np
import pandas as pd

from ppsyn.schemas.table import TableSchema

NAMES = ("a", "b", "c", "d")
RING = (("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"))

SCHEMA = TableSchema.model_validate(
    {"name": "ring", "columns": [{"name": name, "kind": "integer", "lower": 0, "upper": 3} for name in NAMES]}
)

SETTINGS = {"max_model_size_mb": 112 * 8 / 2**20, "rounds": 8, "max_fit_steps": 60}
"""A chain of three ties takes 48 cells and the fourth 16 more; a tree of all of them would take 128."""

BUDGET = {"epsilon": 200.0, "delta": 1e-6}
"""So large that the ties are found for certain."""


def ring(rows: int = 2_000) -> pd.DataFrame:
    bits = np.random.Generator(np.random.PCG64(1)).integers(0, 2, (4, rows))
    return pd.DataFrame({name: 2 * bits[at] + bits[(at + 1) % 4] for at, name in enumerate(NAMES)})


def tied(table: pd.DataFrame) -> dict[tuple[str, str], float]:
    """In which share of the rows each two neighbours agree on their bit: half of them if they are not tied."""
    first, second = table // 2, table % 2
    steps = dict(zip(RING, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")], strict=True))
    return {pair: float((second[left] == first[right]).mean()) for pair, (left, right) in steps.items()}
