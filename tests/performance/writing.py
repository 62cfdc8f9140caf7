"""Rows of a fitted model, written to Parquet: rows a second and memory, for a tenth of them and for all.

python -m performance.writing FOLDER ROWS GROUP_ROWS   rows of the release in FOLDER, in a process of their own

It prints rows, processor and real seconds, the peak of memory, the bytes of the file and a digest of its rows, as JSON.
"""
# pyarrow is annotated in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from performance.population import SCHEMA, blocks
from performance.resources import Check, as_table, at_most, equal, peak_mb, told_by
from pyarrow import parquet
from pydantic import JsonValue

from ppsyn.api import synthesize
from ppsyn.generation.sampling import BLOCK_ROWS
from ppsyn.releases.tables import write_rows
from ppsyn.synthesis_files import load, save

WANTED_MB = 600.0
WANTED_GROWTH_MB = 50.0

_FITTED_ROWS, _ROUNDS = 20_000, 12
_FEW, _SMALL_GROUP = 3 * BLOCK_ROWS, 50_000


def measure(folder: Path, rows: int, say: Callable[[str], None]) -> tuple[dict[str, JsonValue], list[Check]]:
    """A tenth of the rows and all of them; and a few in row groups of two sizes."""
    frame = pd.concat([pd.DataFrame(block) for block in blocks(_FITTED_ROWS)])
    save(synthesize(frame, SCHEMA, epsilon=1.0, delta=1e-9, rounds=_ROUNDS, progress=False), folder / "release")
    asked = [(max(1, rows // 10), BLOCK_ROWS), (rows, BLOCK_ROWS), (_FEW, BLOCK_ROWS), (_FEW, _SMALL_GROUP)]
    tenth, whole, few, regrouped = (
        told_by(__name__, str(folder / "release"), str(count), str(group)) for count, group in asked
    )
    lines = [["", "rows", "rows/s", "cpu s", "bytes a row", "peak MB"]]
    for name, found in (("a tenth", tenth), ("all", whole)):
        count, pace = f"{found['rows']:,}", f"{found['rows'] / found['real_seconds']:,.0f}"
        size = f"{found['bytes'] / found['rows']:.1f}"
        lines.append([name, count, pace, f"{found['seconds']:.2f}", size, f"{found['peak_mb']:.0f}"])
    say(as_table(lines))
    checks = [
        at_most("peak memory of generation in MB", whole["peak_mb"], WANTED_MB),
        at_most("memory for ten times as many rows, in MB more", whole["peak_mb"] - tenth["peak_mb"], WANTED_GROWTH_MB),
        equal("rows in row groups of two sizes, tables that differ", few["digest"] == regrouped["digest"]),
    ]
    return {"tenth": tenth, "whole": whole}, checks


def main() -> None:
    """Write rows, and print what it took."""
    folder, rows, group_rows = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    release, out = load(folder), folder.with_name("rows.parquet")
    release.generate(1)  # compiles
    recipe = release.recipe(rows)
    began, real = time.process_time(), time.perf_counter()
    with out.open("wb") as file:
        written = write_rows(recipe.all_blocks(), recipe.no_rows(), file, group_rows)
    seconds, real_seconds, peak = time.process_time() - began, time.perf_counter() - real, peak_mb()
    facts = {
        "rows": written,
        "seconds": seconds,
        "real_seconds": real_seconds,
        "peak_mb": peak,
        "bytes": out.stat().st_size,
        "digest": _digest(out) if rows <= _FEW else None,
    }
    out.unlink()
    sys.stdout.write(f"{json.dumps(facts)}\n")


def _digest(out: Path) -> str:
    hashed = hashlib.sha256()
    for column in parquet.read_table(out).itercolumns():
        hashed.update(column.to_numpy().tobytes())
    return hashed.hexdigest()


if __name__ == "__main__":
    main()
