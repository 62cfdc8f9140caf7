"""What tables that outgrow memory cost: counting, Dask, a whole release, generation.

python -m performance.scale --rows 1000000

The table is generated, and each figure is of one run. A missed target is reported and no more; counting backends that
disagree fail the program (exit code 1). Figures are in OUT/scale.json.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import yaml
from performance import counting, writing
from performance.population import SCHEMA, write_snapshot, write_table
from performance.resources import Check, as_table, at_least, equal, told_by
from pydantic import JsonValue

from ppsyn.data.marginals.distributed import Spread
from ppsyn.data.snapshot import Shelf, open_snapshot
from ppsyn.errors import InvariantError
from ppsyn.flows.ephemeral_server import prefect_api
from ppsyn.runs.preflight import begin
from ppsyn.runs.record import private_folder, ref_of
from ppsyn.schemas.config import RuntimeConfig
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.storage import open_store

Say: TypeAlias = Callable[[str], None]
Part: TypeAlias = Callable[[Path, int, Say], tuple[dict[str, JsonValue], list[Check]]]
"""Measures in a folder of its own with so many rows, says what it found; returns the figures and the checks."""

_LEAST_ROWS = 3000
_DASK_PARTS = 4
_DASK_REPEATS = 3
_WANTED_SPEEDUP = 1.6


def measure_dask(folder: Path, rows: int, say: Say) -> tuple[dict[str, JsonValue], list[Check]]:
    """The same pass on one worker and on two."""
    config = _config(folder)
    ref = ref_of(config, "benchmark")
    begin(ref, config, SCHEMA)
    shelf = Shelf(open_store(ref.private), private_folder(ref.run))
    write_snapshot(shelf, rows)
    snapshot = open_snapshot(shelf, SCHEMA)
    local, seconds, is_equal = counting.digest(snapshot.count(counting.CLIQUES)), dict[int, float](), True
    os.environ["PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW"] = "ignore"  # there is no flow here, only its tasks
    with prefect_api():
        from ppsyn.tasks import dask as dask_tasks  # noqa: PLC0415  # Prefect is imported while its server starts
        from ppsyn.tasks.dask import count_parts_on  # noqa: PLC0415

        for workers in (1, 2):
            with dask_tasks.start_workers(RuntimeConfig(workers=workers)) as runner:
                if runner is None:
                    raise InvariantError("Workers were asked for and there are none.")
                spread = Spread(snapshot, _DASK_PARTS, count_parts_on(ref, runner))
                spread.count(counting.CLIQUES[:1])  # has all workers import and compile
                took: list[float] = []
                for _ in range(_DASK_REPEATS):
                    began = time.perf_counter()
                    is_equal &= counting.digest(spread.count(counting.CLIQUES)) == local
                    took.append(time.perf_counter() - began)
            seconds[workers] = min(took)
            say(f"{workers} worker{'s' if workers > 1 else ' '}  {seconds[workers]:.2f} s, the best of {_DASK_REPEATS}")
    checks = [
        at_least("speed of two workers to one", seconds[1] / seconds[2], _WANTED_SPEEDUP),
        equal("local pass and Dask, counts that differ", is_equal),
    ]
    return {"seconds": {str(workers): took for workers, took in seconds.items()}}, checks


def measure_release(folder: Path, rows: int, say: Say) -> tuple[dict[str, JsonValue], list[Check]]:
    """A whole release at epsilon 1, stage by stage, in a process of its own."""
    write_table(folder / "table.parquet", rows)
    (folder / "schema.yaml").write_text(yaml.safe_dump(SCHEMA.model_dump(mode="json")), encoding="utf-8")
    document = _config(folder).model_dump(mode="json", by_alias=True, exclude_unset=True)
    (folder / "release.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    stages = told_by("performance.staged", str(folder / "release.yaml"))["stages"]
    lines = [["stage", "seconds", "cpu s", "peak MB"]]
    names = ("seconds", "cpu_seconds", "peak_mb")
    lines += [[stage["stage"], *(f"{stage[name]:.1f}" for name in names)] for stage in stages]
    total, cpu = (sum(stage[name] for stage in stages) for name in names[:2])
    say(as_table([*lines, ["all", f"{total:.1f}", f"{cpu:.1f}", f"{max(stage['peak_mb'] for stage in stages):.1f}"]]))
    return {"stages": stages}, []


def _config(folder: Path) -> ReleaseConfig:
    return ReleaseConfig.model_validate(
        {
            "dataset": "population",
            "source": {"kind": "parquet", "path": str(folder / "table.parquet")},
            "schema": str(folder / "schema.yaml"),
            "privacy": {"epsilon": 1.0, "delta": 1e-9},
            "account": {"cap": {"epsilon": 2.0, "delta": 1e-9}},
            "stores": {"root": str(folder / "stores")},
        }
    )


PARTS: Mapping[str, Part] = {
    "counting": counting.measure,
    "Dask": measure_dask,
    "release": measure_release,
    "generation": writing.measure,
}


def measure(rows: int, out: Path) -> bool:
    """Measure every part, print it, and write it to scale.json; whether all backends counted alike."""
    found: dict[str, JsonValue] = {"rows": rows}
    checks: list[Check] = []
    for name, part in PARTS.items():
        _say(f"\n{name}, {rows:,} rows")
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            figures, judged = part(folder, rows, _say)
        finally:
            shutil.rmtree(folder)
        for check in judged:
            _say(str(check))
        checks += judged
        found[name] = figures
        found["checks"] = [{"what": c.what, "value": c.value, "wanted": c.wanted, "kept": c.is_kept} for c in checks]
        (out / "scale.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return all(check.is_kept for check in checks if check.is_vital)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Measure, and exit with 1 if two ways to count differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table, at least 3000 (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/scale"), help="the folder of results (%(default)s)")
    arguments = parser.parse_args()
    if arguments.rows < _LEAST_ROWS:
        parser.error(f"expected --rows of at least {_LEAST_ROWS}, got {arguments.rows}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    if not measure(arguments.rows, arguments.out):
        sys.exit(1)


if __name__ == "__main__":
    main()
