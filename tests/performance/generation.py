"""Speed and memory of row generation, beside a plain sampler of independent rows.

Both run on one thread, in one process, on the same random tree with the sizes of the Adult table.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ppsyn.arrays import Codes, Floats
from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.generation import sampling as generate
from ppsyn.generation.sampling import Step

DOMAIN = Domain(
    tuple(
        Attribute(name, size)
        for name, size in {
            "age": 85,
            "workclass": 9,
            "weight": 100,
            "education": 16,
            "marital": 7,
            "occupation": 15,
            "relationship": 6,
            "race": 5,
            "sex": 2,
            "gain": 100,
            "loss": 100,
            "hours": 99,
            "country": 42,
            "income": 2,
        }.items()
    )
)
TREE: tuple[tuple[Clique, Clique], ...] = (
    ((), ("gain", "loss")),
    (("gain",), ("age", "relationship")),
    (("age", "relationship"), ("marital",)),
    (("marital", "relationship"), ("sex",)),
    (("age", "marital", "relationship"), ("education",)),
    (("age", "education"), ("workclass", "hours")),
    (("workclass", "education", "sex"), ("occupation",)),
    (("age",), ("weight", "country")),
    (("age", "education", "sex"), ("income",)),
    (("country", "education"), ("race",)),
)
"""What each step is given and what it adds: separators to 3,570 cells, new cells to 10,000."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What generating a table took."""

    rows: int
    cells: int
    """Of all weights together."""
    seconds: float
    baseline_seconds: float
    peak_bytes: int
    """Of the whole process, the libraries included."""
    added_bytes: int
    """By how much generation raised that peak: the table itself and the working memory."""


def random_steps(seed: int) -> list[Step]:
    """Weights for `TREE` that vary over some orders of magnitude, as fitted ones do."""
    rng = np.random.Generator(np.random.PCG64(seed))
    return [
        Step(given, new, rng.standard_exponential((DOMAIN.size(given), DOMAIN.size(new))) ** 3) for given, new in TREE
    ]


def sample_independently(steps: Sequence[Step], rows: int, seed: int) -> dict[str, Codes]:
    """The baseline: every row drawn on its own, one vectorised inverse-CDF look-up per step and block."""
    rng = np.random.Generator(np.random.PCG64(seed))
    table = {name: np.empty(rows, np.int32) for name in DOMAIN.names}
    lookups = [_stacked_cdf(step.weights) for step in steps]
    for start in range(0, rows, generate.BLOCK_ROWS):
        part = slice(start, min(start + generate.BLOCK_ROWS, rows))
        for step, lookup in zip(steps, lookups, strict=True):
            _sample_step(step, lookup, {name: column[part] for name, column in table.items()}, rng)
    return table


def _stacked_cdf(weights: Floats) -> Floats:
    """The conditional CDFs end to end, that of given cell k raised by k, so that one search serves all rows."""
    cumulative = np.cumsum(weights, axis=1)
    return (cumulative / cumulative[:, -1:] + np.arange(len(weights))[:, None]).ravel()


def _sample_step(step: Step, lookup: Floats, codes: dict[str, Codes], rng: np.random.Generator) -> None:
    rows = len(next(iter(codes.values())))
    given_codes = tuple(codes[name] for name in step.given)
    keys = np.ravel_multi_index(given_codes, DOMAIN.shape(step.given)) if step.given else np.zeros(rows, np.int64)
    size = DOMAIN.size(step.new)
    cells = np.searchsorted(lookup, keys + rng.random(rows), side="right") - keys * size
    np.clip(cells, 0, size - 1, out=cells)
    for name, column in zip(step.new, np.unravel_index(cells, DOMAIN.shape(step.new)), strict=True):
        codes[name][:] = column


def measure(rows: int, seed: int = 0) -> Measurement:
    """Generate a table both ways, after a first row that pays for compilation."""
    steps = random_steps(seed)
    generate.generate(steps, DOMAIN, 1, seed)
    before = _peak_bytes()
    seconds = _time(lambda: generate.generate(steps, DOMAIN, rows, seed))
    peak = _peak_bytes()
    return Measurement(
        rows=rows,
        cells=sum(step.weights.size for step in steps),
        seconds=seconds,
        baseline_seconds=_time(lambda: sample_independently(steps, rows, seed)),
        peak_bytes=peak,
        added_bytes=peak - before,
    )


def _time(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Print one measurement."""
    parser = argparse.ArgumentParser(prog="python -m performance.generation", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows to generate (default: %(default)s)")
    found = measure(parser.parse_args().rows)
    sys.stdout.write(
        f"{found.rows:,} rows, {len(DOMAIN.attributes)} attributes, {len(TREE)} steps, {found.cells:,} cells\n"
        f"generate        {found.rows / found.seconds:12,.0f} rows/s\n"
        f"numpy, i.i.d.   {found.rows / found.baseline_seconds:12,.0f} rows/s\n"
        f"ratio           {found.baseline_seconds / found.seconds:12.1f}\n"
        f"peak memory     {found.peak_bytes / 2**20:12,.0f} MiB, {found.added_bytes / 2**20:,.0f} of it to generate\n"
    )


if __name__ == "__main__":
    main()
