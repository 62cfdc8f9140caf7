"""Mean, spread and the ratio to AIM, for each mechanism at each setting."""

import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from ppsyn.benchmark.results import ERRORS, Result

REFERENCE = "aim"

_WIDTH = 100

WARNING = (
    "These numbers were computed from the tables themselves. If a table is private, so are they: to show them, or to "
    "choose by them how it is released, leaks something of it that no budget has paid for."
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one mechanism at one setting, over its runs.

    Attributes:
        spread: Standard deviation of the runs; none of a single one.
        ratio: Mean over the mean of AIM, where AIM is there and not nought.
        seconds: Median, of the runs that tell; the first run of all may have compiled something.
        round_seconds: The same for a round: all that a run took over its rounds, so that what is done once counts too.
    """

    dataset: str
    degree: int
    epsilon: float
    metric: str
    mechanism: str
    mean: float
    spread: float | None
    runs: int
    ratio: float | None
    seconds: float | None
    round_seconds: float | None

    @property
    def standard_error(self) -> float:
        """Of the mean; nought where it cannot be told."""
        return 0.0 if self.spread is None else self.spread / self.runs**0.5

    def as_json(self) -> dict[str, object]:
        """For scripts."""
        return asdict(self)


def summarize(results: Iterable[Result]) -> list[Cell]:
    """The cells of all results, in the order in which mechanisms first appear."""
    gathered: dict[tuple[str, int, float, str, str], list[Result]] = {}
    for result in results:
        for metric in result.errors:
            key = (result.dataset, result.degree, result.epsilon, metric, result.mechanism)
            gathered.setdefault(key, []).append(result)
    names = list(ERRORS)
    ordered = sorted(gathered, key=lambda key: (key[0], key[1], key[2], names.index(key[3])))
    means = {key: statistics.fmean(result.errors[key[3]] for result in found) for key, found in gathered.items()}
    return [_cell(key, gathered[key], means[key], means.get((*key[:4], REFERENCE))) for key in ordered]


def _cell(key: tuple[str, int, float, str, str], found: Sequence[Result], mean: float, reference: float | None) -> Cell:
    values = [result.errors[key[3]] for result in found]
    seconds = [result.seconds for result in found if result.seconds is not None]
    paces = [result.seconds / result.rounds for result in found if result.seconds is not None and result.rounds]
    return Cell(
        *key,
        mean=mean,
        spread=statistics.stdev(values) if len(values) > 1 else None,
        runs=len(values),
        ratio=mean / reference if reference else None,
        seconds=statistics.median(seconds) if seconds else None,
        round_seconds=statistics.median(paces) if paces else None,
    )


def as_text(cells: Sequence[Cell]) -> str:
    """A table for each dataset, degree and epsilon, and what to keep in mind."""
    parts: list[str] = []
    for (dataset, degree, epsilon), group in groupby(cells, lambda cell: (cell.dataset, cell.degree, cell.epsilon)):
        heading = f"{dataset}, epsilon {epsilon:g}, workload of {degree}-way marginals"
        parts.append(f"{heading}\n{_aligned([_HEAD, *(_line(cell) for cell in group)])}")
    return "\n\n".join([*parts, textwrap.fill(WARNING, _WIDTH)])


_HEAD = ("metric", "mechanism", "mean +- sd", "runs", f"ratio to {REFERENCE}", "seconds", "a round")


def _line(cell: Cell) -> tuple[str, ...]:
    return (
        ERRORS[cell.metric],
        cell.mechanism,
        f"{cell.mean:.4g}" + ("" if cell.spread is None else f" +- {cell.spread:.2g}"),
        str(cell.runs),
        "" if cell.ratio is None else f"{cell.ratio:.3f}",
        "" if cell.seconds is None else f"{cell.seconds:.1f}",
        "" if cell.round_seconds is None else f"{cell.round_seconds:.2f}",
    )


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
