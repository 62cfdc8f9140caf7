"""A whole release in small: a private table, its public schema and a release file that takes a second to compute.

Among the four columns there is one with more values than a coarse look has groups, so that every stage of the
algorithm takes place.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import yaml

from ppsyn.schemas.locations import Location

DATASET = "club"
ROWS = 400
BATCH_ROWS = 150
"""Of the table; the last of three fragments is smaller."""

JOBS = ("cook", "nurse", "clerk", "smith")

SCHEMA: Mapping[str, object] = {
    "name": "club",
    "columns": [
        {"name": "age", "kind": "integer", "lower": 18, "upper": 65},
        {"name": "job", "kind": "categorical", "values": list(JOBS), "nullable": True},
        {"name": "member", "kind": "boolean", "outside": "refuse"},
        {"name": "joined", "kind": "date", "lower": "2010-01-01", "upper": "2019-12-31", "unit": "year"},
    ],
}

RELEASE: Mapping[str, object] = {
    "dataset": DATASET,
    "schema": "schema.yaml",
    "privacy": {"epsilon": 4.0, "delta": 1.0e-6},
    "account": {"cap": {"epsilon": 10.0, "delta": 1.0e-6}},
    "algorithm": {"workload": {"degree": 2}, "rounds": 4, "max_fit_steps": 40},
    "generation": {"seed": 7},
}


def table_text(rows: int = ROWS, seed: int = 0) -> str:
    """The private table as CSV: older people joined earlier, and members work."""
    rng = np.random.Generator(np.random.PCG64(seed))
    lines = ["age,job,member,joined"]
    for _ in range(rows):
        age = int(rng.integers(18, 66))
        is_member = rng.random() < 0.3 + age / 150
        job = JOBS[int(rng.integers(len(JOBS)))] if is_member or rng.random() < 0.5 else ""
        year = 2010 + min(9, max(0, round((65 - age) / 5 + rng.normal())))
        lines.append(f"{age},{job},{str(is_member).lower()},{year}-0{rng.integers(1, 10)}-1{rng.integers(10)}")
    return "\n".join(lines) + "\n"


def write_release(folder: Path, root: Location | str = "out", **changes: Mapping[str, object]) -> Path:
    """Write table.csv, schema.yaml and release.yaml into a folder; returns the release file.

    Args:
        folder: It is made if it is missing.
        root: Where accounts, runs and releases are kept; a relative path is seen from the folder.
        changes: Fields of the release file, by section: `privacy={"epsilon": 1.0}`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.csv").write_text(table_text(), encoding="utf-8")
    (folder / "schema.yaml").write_text(yaml.safe_dump(dict(SCHEMA), sort_keys=False), encoding="utf-8")
    location = root if isinstance(root, str) else root.model_dump(mode="json", exclude_none=True)
    document: dict[str, object] = {
        **RELEASE,
        "source": {"kind": "csv", "path": "table.csv", "batch_rows": BATCH_ROWS},
        "stores": {"root": location},
    }
    for section, fields in changes.items():
        before = document.get(section)
        document[section] = {**(before if isinstance(before, dict) else {}), **fields}
    file = folder / "release.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return file
