"""Counting all marginals of three attributes: the streaming pass beside a bare loop of numpy, each in a process.

python -m performance.counting stream FOLDER FRAGMENTS     the pass over so many fragments of a snapshot
python -m performance.counting bincount FOLDER FRAGMENTS   numpy, over arrays that are in memory already

Each prints rows, processor seconds, the peak of memory and a digest of the counts, as JSON.
"""

import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
from performance.population import DOMAIN, SCHEMA, write_snapshot
from performance.resources import Check, as_table, at_most, equal, peak_mb, told_by
from pydantic import JsonValue

from ppsyn.arrays import Ints
from ppsyn.data.snapshot import Shelf, Snapshot, open_snapshot, read_codes
from ppsyn.domain import Clique
from ppsyn.schemas.locations import Location
from ppsyn.storage import open_store

CLIQUES: tuple[Clique, ...] = tuple(combinations(DOMAIN.names, 3))
WANTED_RATIO = 1.3
WANTED_MB = 600.0
WANTED_GROWTH = 0.1

_REPEATS = 3


def snapshot_in(folder: Path, rows: int | None = None) -> Snapshot:
    """The benchmark's table as a snapshot in a folder, written there if `rows` are given."""
    shelf = Shelf(open_store(Location(url=str(folder))), "private")
    if rows is not None:
        write_snapshot(shelf, rows)
    return open_snapshot(shelf, SCHEMA)


def measure(folder: Path, rows: int, say: Callable[[str], None]) -> tuple[dict[str, JsonValue], list[Check]]:
    """Both ways on the whole table, and the pass on a tenth and on three tenths of it."""
    whole = len(snapshot_in(folder, rows).fragments)
    parts = [max(1, round(whole * tenths / 10)) for tenths in (1, 3, 10)]
    streamed = [told_by(__name__, "stream", str(folder), str(part)) for part in parts]
    bare = told_by(__name__, "bincount", str(folder), str(whole))
    lines = [["", "rows", "cpu s", "ns a row and marginal", "peak MB"]]
    for name, found in (*(("streaming pass", found) for found in streamed), ("numpy bincount", bare)):
        pace = found["seconds"] / found["rows"] / len(CLIQUES) * 1e9
        lines.append([name, f"{found['rows']:,}", f"{found['seconds']:.2f}", f"{pace:.2f}", f"{found['peak_mb']:.0f}"])
    say(as_table(lines))
    small, middle, large = (found["seconds"] / found["rows"] for found in streamed)
    checks = [
        at_most(
            "cpu seconds, streaming pass to bincount loop", streamed[-1]["seconds"] / bare["seconds"], WANTED_RATIO
        ),
        at_most("peak memory of the streaming pass in MB", streamed[-1]["peak_mb"], WANTED_MB),
        at_most("departure from linear, 1 to 3 tenths", abs(middle / small - 1), WANTED_GROWTH),
        at_most("departure from linear, 3 to 10 tenths", abs(large / middle - 1), WANTED_GROWTH),
        equal("streaming pass and bincount loop, counts that differ", streamed[-1]["digest"] == bare["digest"]),
    ]
    return {"stream": [*streamed], "bincount": bare}, checks


def digest(counts: Sequence[Ints]) -> str:
    """A fingerprint of the counts, to compare them by."""
    hashed = hashlib.sha256()
    for each in counts:
        hashed.update(np.ascontiguousarray(each, np.int64).tobytes())
    return hashed.hexdigest()


def _stream(snapshot: Snapshot) -> Callable[[], Sequence[Ints]]:
    replace(snapshot, fragments=()).count(CLIQUES[:1])  # compiles
    return lambda: snapshot.count(CLIQUES)


def _bincount(snapshot: Snapshot) -> Callable[[], Sequence[Ints]]:
    parts = [read_codes(snapshot.shelf, fragment, DOMAIN) for fragment in snapshot.fragments]
    columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in DOMAIN.names}

    def loop() -> list[Ints]:
        found: list[Ints] = []
        for first, second, third in CLIQUES:
            cells = columns[first].astype(np.int64)
            for name in (second, third):
                cells *= DOMAIN[name].size
                cells += columns[name]
            found.append(np.bincount(cells, minlength=DOMAIN.size((first, second, third))))
        return found

    return loop


def main() -> None:
    """Measure one way, and print what it took."""
    way, folder, fragments = sys.argv[1:]
    snapshot = snapshot_in(Path(folder))
    snapshot = replace(snapshot, fragments=snapshot.fragments[: int(fragments)])
    count, seconds, counts = {"stream": _stream, "bincount": _bincount}[way](snapshot), list[float](), list[Ints]()
    for _ in range(_REPEATS if way == "stream" else 1):
        began = time.process_time()
        counts = list(count())
        seconds.append(time.process_time() - began)
    facts = {
        "rows": int(counts[0].sum()),
        "seconds": statistics.median(seconds),
        "peak_mb": peak_mb(),
        "digest": digest(counts),
    }
    sys.stdout.write(f"{json.dumps(facts)}\n")


if __name__ == "__main__":
    main()
