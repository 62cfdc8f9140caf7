"""What tables that outgrow memory cost, part by part: `ppsyn benchmark scale`."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from pydantic import JsonValue

from ppsyn.benchmark import counting, writing
from ppsyn.benchmark.gauges import Check

Say: TypeAlias = Callable[[str], None]
Part: TypeAlias = Callable[[Path, int, Say], tuple[dict[str, JsonValue], list[Check]]]
"""Measures in a folder of its own with so many rows, says what it found; returns the figures and the checks."""

PARTS: Mapping[str, Part] = {
    "counting": counting.measure,
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
