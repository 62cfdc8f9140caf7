"""What the pipeline costs over the bare library: the same release both ways, in turns, in processes of their own.

python -m performance.overhead examples/adult/release.yaml --repeats 3

How long a release takes depends on its noise, which no one can choose. So the library does each
release again with the answers that the pipeline drew: it counts, scores and draws as the pipeline
did, throws away what it drew, and from then on has the same models to fit.
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

from ppsyn.releases.layout import ANSWERS
from ppsyn.schemas.release import ReleaseConfig, load_release

_BARE = """
import json
import sys
from unittest import mock
import pandas as pd
import ppsyn
from ppsyn.privacy.curator import TableCurator
from ppsyn.releases.tables import unpack_answers

source, schema, settings, answers, out = sys.argv[1:]
with open(answers, "rb") as file:
    drawn = iter(unpack_answers(file.read()))

class Repeating(TableCurator):
    def answer(self, request):
        super().answer(request)
        return next(drawn)

with mock.patch("ppsyn.api.TableCurator", Repeating):
    release = ppsyn.synthesize(pd.read_parquet(source), schema, progress=False, **json.loads(settings))
ppsyn.save(release, out + "/synthesis")
release.table.to_parquet(out + "/synthetic.parquet", index=False)
"""


def main() -> None:
    """Print both times, their difference and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="a release of a Parquet file")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "prefect"
        first = _pair(arguments.file, Path(folder) / "first", home)
        pairs = [_pair(arguments.file, Path(folder) / str(number), home) for number in range(arguments.repeats)]
    bare, piped = zip(*pairs, strict=True)
    _say(f"library   {_spread(bare)}")
    _say(f"pipeline  {_spread(piped)}")
    _say(f"overhead  {_spread([pipe - plain for plain, pipe in pairs])}, ratio {sum(piped) / sum(bare):.2f}")
    _say(f"overhead  {first[1] - first[0]:.1f} s in the very first run, which makes Prefect's database")


def _pair(file: str, folder: Path, home: Path) -> tuple[float, float]:
    """Seconds of one release by the library and by the pipeline."""
    folder.mkdir()
    config = load_release(file, [])
    command = [str(Path(sys.executable).parent / "ppsyn"), "release", file, "--set", f"stores.root={folder / 'stores'}"]
    piped = _seconds([*command, "--quiet"], {"PREFECT_HOME": str(home)})
    (answers,) = folder.glob(f"stores/**/{ANSWERS}")
    bare = _seconds([sys.executable, "-c", _BARE, *_inputs(config), str(answers), str(folder)], {})
    _say(f"          {bare:.1f} s by the library, {piped:.1f} s by the pipeline")
    return bare, piped


def _inputs(config: ReleaseConfig) -> tuple[str, str, str]:
    source = config.source.path.url if config.source.kind == "parquet" else sys.exit("Expected a Parquet source.")
    settings = {"epsilon": config.privacy.epsilon, "delta": config.privacy.delta, **config.algorithm.model_dump()}
    return source, config.table, json.dumps(settings)


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
