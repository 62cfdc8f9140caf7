"""What the pipeline costs over the bare library: the same release both ways, in turns, in processes of their own.

python -m flows.overhead examples/adult/release.yaml --repeats 3
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from schemas.release import load_release

_BARE = """
import json
import sys
import pandas as pd
import ppsyn
source, schema, settings, out = sys.argv[1:]
release = ppsyn.synthesize(pd.read_parquet(source), schema, progress=False, **json.loads(settings))
ppsyn.save(release, out + "/synthesis")
release.table.to_parquet(out + "/synthetic.parquet", index=False)
"""

_SAME_ROUNDS = "algorithm.eta=1000000"
"""Noise never halves, so that every run has as many rounds."""


def main() -> None:
    """Print both times, their difference and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="a release of a Parquet file")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "prefect"
        pairs = [_pair(arguments.file, Path(folder) / str(number), home) for number in range(arguments.repeats)]
    bare, piped = zip(*pairs, strict=True)
    _say(f"library   {_spread(bare)}")
    _say(f"pipeline  {_spread(piped)} (first, with a new Prefect database: {piped[0]:.1f} s)")
    warm = [pipe - plain for plain, pipe in pairs[1:]] or [piped[0] - bare[0]]
    _say(f"overhead  {_spread(warm)}, ratio {statistics.mean(piped[1:] or piped) / statistics.mean(bare):.2f}")


def _pair(file: str, folder: Path, home: Path) -> tuple[float, float]:
    """Seconds of the release by the library and by the pipeline."""
    folder.mkdir()
    config = load_release(file, [_SAME_ROUNDS])
    source = config.source.path.url if config.source.kind == "parquet" else sys.exit("Expected a Parquet source.")
    settings = {"epsilon": config.privacy.epsilon, "delta": config.privacy.delta, **config.method.model_dump()}
    bare = _seconds([sys.executable, "-c", _BARE, source, config.table, json.dumps(settings), str(folder)], {})
    command = [str(Path(sys.executable).parent / "ppsyn"), "release", file, "--set", f"stores.root={folder / 'stores'}"]
    return bare, _seconds([*command, "--set", _SAME_ROUNDS, "--quiet"], {"PREFECT_HOME": str(home)})


def _seconds(command: Sequence[str], variables: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, env={**os.environ, **variables}, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _spread(seconds: Sequence[float]) -> str:
    deviation = statistics.stdev(seconds) if len(seconds) > 1 else 0.0
    return f"{statistics.mean(seconds):.1f} s (sd {deviation:.1f}, {len(seconds)} runs)"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
