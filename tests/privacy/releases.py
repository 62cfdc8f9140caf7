"""Releases of a toy table whose answers are made up, so that anything else that differs has leaked."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from privacy.instruments import Watched, watch_draws

from ppsyn import Synthesis, save, synthesize
from ppsyn.arrays import Ints
from ppsyn.schemas.table import TableSchema

CANARY = "canary-7f3a91"
"""A private value that no schema lists."""

ODD = 7_365_019
"""A private number far outside its column's bounds."""

SCHEMA = TableSchema.model_validate(
    {
        "name": "toy",
        "columns": [
            {"name": "colour", "kind": "categorical", "values": ["red", "green"], "outside": "other", "other": "red"},
            {"name": "age", "kind": "integer", "lower": 0, "upper": 5, "outside": "clip"},
            {"name": "ok", "kind": "boolean", "nullable": True, "outside": "null"},
        ],
        "excluded": ["who", "note"],
    }
)

SETTINGS = {"rounds": 3, "max_fit_steps": 20}


def private_frame(rows: int = 12) -> pd.DataFrame:
    """A private table with values outside its domain; two rows belong to each person."""
    return pd.DataFrame(
        {
            "who": [f"{CANARY}-{row // 2}" for row in range(rows)],
            "colour": pd.Series([CANARY if row % 3 else "green" for row in range(rows)], dtype=object),
            "age": pd.Series([ODD if row % 5 == 0 else row % 6 for row in range(rows)], dtype=object),
            "ok": pd.Series([None if row % 4 == 0 else row % 2 == 0 for row in range(rows)], dtype=object),
            "note": [CANARY] * rows,
        }
    )


@dataclass
class Script(Watched):
    """Made-up answers, the same in every run of the same seed."""

    seed: int = 0
    rows: int = 500
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.Generator(np.random.PCG64(self.seed))
        self.counts, self.choice = self._counts, self._choice

    def _counts(self, groups: int) -> Ints:
        return self.rng.multinomial(self.rows, np.full(groups, 1 / groups)).astype(np.int64)

    def _choice(self, candidates: int) -> int:
        return int(self.rng.integers(candidates))


def scripted_release(frame: pd.DataFrame, script: Script | None = None, **options: object) -> Synthesis:
    """Release the table with made-up answers in place of noise."""
    with pytest.MonkeyPatch.context() as patch:
        watch_draws(patch, script or Script())
        return synthesize(frame, SCHEMA, rho=0.5, **SETTINGS, **options)


def published(synthesis: Synthesis, folder: Path) -> dict[str, bytes]:
    """Everything that a release can publish, as bytes."""
    save(synthesis, folder)
    bars = synthesis.marginal(["age", "colour"])
    return {
        "files": b"".join(path.read_bytes() for path in sorted(folder.iterdir())),
        "rows": synthesis.table.to_csv().encode(),
        "dtypes": repr(synthesis.table.dtypes).encode(),
        "bars": bars.to_csv().encode(),
        "ledger": repr(synthesis.ledger).encode(),
    }
