"""What the beat on which draws answer costs a release on an idle machine: seconds waited, and of processor time.

python -m performance.beat examples/adult/release.yaml

Draws are timed by the processor seconds that they took, so that what else runs on the machine does not matter: a draw
waits for the rest of its beats.
"""

import argparse
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from unittest import mock

from performance.years import make_release

from ppsyn.privacy import curator
from ppsyn.schemas.release import load_release


def main() -> None:
    """Release a table as the pipeline does, without Prefect, and print what its draws waited for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="a release file")
    draws = list[tuple[float, int]]()

    @contextmanager
    def timed(_: curator.TableCurator, numbers: int) -> Generator[None]:
        began = time.thread_time()
        yield
        draws.append((time.thread_time() - began, numbers))

    with tempfile.TemporaryDirectory() as folder:
        config = load_release(parser.parse_args().file, [f"stores.root={folder}"])
        began = time.process_time()
        with mock.patch.object(curator.TableCurator, "_paced", timed):
            make_release(config)
        spent = time.process_time() - began
    beats = [math.ceil(seconds / curator.beat(numbers)) for seconds, numbers in draws]
    waited = sum(
        count * curator.beat(numbers) - seconds for count, (seconds, numbers) in zip(beats, draws, strict=True)
    )
    drawn = sum(seconds for seconds, _ in draws)
    sys.stdout.write(
        f"{len(draws)} draws of {drawn:.2f} s wait {waited:.2f} s for their beats; the release takes {spent:.1f} s of "
        f"processor time without them: {waited / (spent + waited):.1%} of its time\n"
        f"draws by their beats: {dict(sorted(Counter(beats).items()))}\n"
    )


if __name__ == "__main__":
    main()
