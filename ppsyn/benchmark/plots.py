"""Plots of a benchmark: for each table and metric one figure, as PNG and as SVG, with standard errors.

Over epsilon, unless the mechanisms differ in the number of one setting (`ppsyn:anneal_threshold=0.3`,
`ppsyn:anneal_threshold=0.4`, ...), which is then the axis, or the workloads differ in their degree. Where nothing
differs but the mechanisms, they stand side by side.
"""
# matplotlib's keyword arguments are not annotated.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppsyn.benchmark.results import ERRORS
from ppsyn.benchmark.summary import Cell

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Of Okabe and Ito: apart for the colour-blind, too."""
_MARKERS = "osD^vPX*<>"
_STYLES = ("-", "--", "-.", ":")
_LEAST_SWEEP = 3
_MECHANISM = "mechanism"
_LOGARITHMIC = ("range_3_error", "range_5_error")
"""Squared errors, which span orders of magnitude."""


@dataclass(frozen=True, slots=True)
class Line:
    """The points of one mechanism."""

    label: str
    places: tuple[float, ...]
    means: tuple[float, ...]
    errors: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """What a figure shows."""

    title: str
    across: str
    up: str
    lines: tuple[Line, ...]

    @property
    def ticks(self) -> dict[float, str]:
        """What stands where on the axis."""
        if self.across == _MECHANISM:
            return {line.places[0]: line.label for line in self.lines}
        return {place: f"{place:g}" for line in self.lines for place in line.places}


def draw_all(cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Draw every table and metric into `folder`; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    ordered = sorted(cells, key=lambda cell: (cell.dataset, cell.metric))
    for (dataset, metric), group in groupby(ordered, lambda cell: (cell.dataset, cell.metric)):
        figure = _figure(chart_of(list(group)), is_logarithmic=metric in _LOGARITHMIC)
        written += _save(figure, folder / f"{dataset}-{metric}")
    return written


def chart_of(cells: Sequence[Cell]) -> Chart:
    """The figure of the cells of one table and one metric."""
    title, up = cells[0].dataset, ERRORS[cells[0].metric]
    setting, values = sweep_of(dict.fromkeys(cell.mechanism for cell in cells))
    if setting:
        return Chart(title, setting, up, _over_setting(cells, values))
    if len({cell.epsilon for cell in cells}) == 1 and len({cell.degree for cell in cells}) > 1:
        return Chart(
            title, "attributes of a marginal", up, _lines((cell.mechanism, cell.degree, cell) for cell in cells)
        )
    if len({(cell.epsilon, cell.degree) for cell in cells}) == 1:
        return Chart(title, _MECHANISM, up, _lines((cell.mechanism, place, cell) for place, cell in enumerate(cells)))
    degrees = {cell.degree for cell in cells}
    return Chart(title, "epsilon", up, _lines((_label(cell, degrees), cell.epsilon, cell) for cell in cells))


def _label(cell: Cell, degrees: set[int]) -> str:
    return cell.mechanism if len(degrees) == 1 else f"{cell.mechanism}, {cell.degree}-way"


def _over_setting(cells: Sequence[Cell], values: dict[str, tuple[str, float]]) -> tuple[Line, ...]:
    """A line for each base and epsilon; mechanisms without the setting are level lines beside them."""
    ends = [value for _, value in values.values()]
    points: list[tuple[str, float, Cell]] = []
    for cell in cells:
        base, value = values.get(cell.mechanism, (cell.mechanism, None))
        label = f"{base}, epsilon {cell.epsilon:g}"
        points += [(label, place, cell) for place in ((min(ends), max(ends)) if value is None else (value,))]
    return _lines(points)


def _lines(points: Iterable[tuple[str, float, Cell]]) -> tuple[Line, ...]:
    gathered: dict[str, list[tuple[float, Cell]]] = {}
    for label, place, cell in points:
        gathered.setdefault(label, []).append((place, cell))
    lines: list[Line] = []
    for label, found in gathered.items():
        found.sort(key=lambda point: point[0])
        cells = [cell for _, cell in found]
        places = tuple(place for place, _ in found)
        lines.append(Line(label, places, tuple(c.mean for c in cells), tuple(cell.standard_error for cell in cells)))
    return tuple(lines)


def sweep_of(mechanisms: Iterable[str]) -> tuple[str, dict[str, tuple[str, float]]]:
    """The setting that at least three mechanisms differ in by a number alone, and for each its base and that number.

    The name is empty if there is none.
    """
    found: dict[str, dict[str, tuple[str, float]]] = {}
    for mechanism in mechanisms:
        base, _, text = mechanism.partition(":")
        parts = text.split("+")
        for part in parts:
            setting, _, value = part.partition("=")
            if (number := _number(value)) is not None:
                others = "+".join(other for other in parts if other != part)
                found.setdefault(setting, {})[mechanism] = (f"{base}:{others}" if others else base, number)
    longest = {name: max(Counter(base for base, _ in bases.values()).values()) for name, bases in found.items()}
    setting = max(longest, key=lambda name: longest[name], default="")
    return (setting, found[setting]) if setting and longest[setting] >= _LEAST_SWEEP else ("", {})


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _figure(chart: Chart, *, is_logarithmic: bool) -> Figure:
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for number, line in enumerate(chart.lines):
        axes.errorbar(
            line.places,
            line.means,
            yerr=line.errors,
            label=line.label,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            linestyle=_STYLES[number // len(_COLOURS) % len(_STYLES)],
            capsize=3,
            markersize=5,
        )
    _dress(axes, chart, is_logarithmic=is_logarithmic)
    return figure


def _dress(axes: Axes, chart: Chart, *, is_logarithmic: bool) -> None:
    axes.set_title(chart.title)
    axes.set_xlabel(chart.across)
    axes.set_ylabel(f"{chart.up} (mean, standard error)")
    if chart.across == "epsilon":
        axes.set_xscale("log")
    is_named = chart.across == _MECHANISM
    axes.set_xticks(list(chart.ticks), list(chart.ticks.values()), rotation=20 if is_named else 0)
    axes.set_xticks([], minor=True)
    if is_logarithmic and all(mean > 0 for line in chart.lines for mean in line.means):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(visible=True, axis="y", alpha=0.3)
    if not is_named:
        axes.legend(fontsize="small")


def _save(figure: Figure, path: Path) -> list[Path]:
    """Equal results give equal files."""
    with rc_context({"svg.hashsalt": "ppsyn"}):
        figure.savefig(path.with_name(f"{path.name}.png"), dpi=150)
        figure.savefig(path.with_name(f"{path.name}.svg"), metadata={"Date": None})
    return [path.with_name(f"{path.name}.png"), path.with_name(f"{path.name}.svg")]
