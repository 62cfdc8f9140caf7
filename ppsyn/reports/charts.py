"""Charts as SVG, drawn here so that equal numbers give equal bytes. Each says in words what it shows."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from markupsafe import Markup

from ppsyn.arrays import Floats
from ppsyn.domain import Clique
from ppsyn.reports.formatting import count, exact_percent, percent, plural, shorten_middle, truncate

SURE = 1.96
"""Standard deviations that hold 95% of the noise."""

ERROR_LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Where the colours of a heat map change: the same in every report, so that reports can be compared."""

MOST_ROUNDS = 200
"""Rounds that are drawn and listed."""

_MOST_POINTS = 160


class Caption(NamedTuple):
    """The title of a chart, and what there is to see."""

    title: str
    description: str


# Elements

Part: TypeAlias = Markup | str
"""What may stand inside an element: text is escaped."""

_EMPTY = frozenset({"rect", "line", "circle", "path"})
"""Elements that hold nothing and have no end."""


def tag(name: str, /, *parts: Part, **attributes: str | float | None) -> Markup:
    """An element of a chart.

    Args:
        name: Its name, a constant.
        parts: What stands inside.
        attributes: As in SVG, with underscores for hyphens and one more behind names that Python keeps for itself;
            those that are None are left out.
    """
    written = Markup("").join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _EMPTY:
        return Markup("<{}{}/>").format(Markup(name), written)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, Markup("").join(parts))


def _attribute(key: str, value: str | float) -> Markup:
    text = value if isinstance(value, str) else short(value)
    return Markup(' {}="{}"').format(Markup(key.rstrip("_").replace("_", "-")), text)


def short(number: float) -> str:
    """A coordinate, to a tenth."""
    text = f"{number:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def picture(
    name: str, caption: Caption, size: tuple[float, float], parts: Iterable[Part], *, style: str | None = None
) -> Markup:
    """A chart, with its title and what it shows for those who do not see it.

    Args:
        name: That no other picture of the page has.
        caption: Title and description.
        size: Width and height.
        parts: What is drawn.
        style: Class of the picture: `strip` may be stretched, `middle` stays of middle size, `fixed` keeps its size
            and scrolls.
    """
    width, height = size
    drawn = tag(
        "svg",
        tag("title", caption.title, id=f"{name}-title"),
        tag("desc", caption.description, id=f"{name}-desc"),
        *parts,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        preserveAspectRatio="none" if style == "strip" else None,
        width=width if style == "fixed" else None,
        class_=style,
    )
    if style != "fixed":
        return drawn
    return tag("div", drawn, class_="scroll", tabindex="0", role="group", aria_label=caption.title)


def text_at(x: float, y: float, text: str, *, anchor: str | None = None, style: str | None = None) -> Markup:
    """A line of text in a picture."""
    return tag("text", text, x=x, y=y, text_anchor=anchor, class_=style)


def line(start: tuple[float, float], end: tuple[float, float], style: str) -> Markup:
    """A straight line in a picture."""
    return tag("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=style)


def axis_end(number: float) -> float:
    """The next of 1, 2 and 5, times a power of ten."""
    power = 10.0 ** math.floor(math.log10(number))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= number * (1 - 1e-9))


# One bar of parts

_STRIP = (1000.0, 40.0)


def stacked_bar(name: str, caption: Caption, parts: Iterable[tuple[str, Fraction]]) -> Markup:
    """Parts of a whole, one beside the other, over the full width.

    Args:
        name: That no other picture of the page has.
        caption: Title and description.
        parts: The class of each, and its amount.
    """
    shown = [part for part in parts if part[1] > 0]
    total, at = float(sum(rho for _, rho in shown)), 0.0
    drawn: list[Part] = []
    for style, rho in shown:
        width = _STRIP[0] * float(rho) / total
        drawn.append(tag("rect", x=at, y=0, width=width, height=_STRIP[1], class_=style))
        at += width
    return picture(name, caption, _STRIP, drawn, style="strip")


# Rounds

_ROUNDS_LEFT, _ROUNDS_RIGHT, _ROUNDS_TOP, _ROUNDS_BOTTOM, _ROUNDS_HEIGHT = 40.0, 340.0, 12.0, 150.0, 182.0


@dataclass(frozen=True, slots=True)
class RoundBar:
    """How far the answer of a round lies from the model, as fractions of all rows.

    Attributes:
        before: From the model when the question was asked.
        after: From the final model.
        noise: What noise alone is expected to make of it.
    """

    number: int
    before: float
    after: float
    noise: float


def round_chart(rounds: Sequence[RoundBar]) -> Markup:
    """The distance of each round's answer from the model, before and after, on a square-root scale."""
    shown = rounds[:MOST_ROUNDS]
    top = axis_end(max(1e-6, *(max(one.before, one.after, one.noise) for one in shown)))
    slot = (_ROUNDS_RIGHT - _ROUNDS_LEFT) / len(shown)
    width = min(slot * 0.8, 26)
    parts: list[Part] = [*_round_axis(top)]
    for at, one in enumerate(shown):
        middle = _ROUNDS_LEFT + (at + 0.5) * slot
        for part, style, wide in ((one.before, "s-pale", width), (one.after, "s-blue", width * 0.5)):
            y = _round_y(part, top)
            parts.append(tag("rect", x=middle - wide / 2, y=y, width=wide, height=_ROUNDS_BOTTOM - y, class_=style))
        y = _round_y(one.noise, top)
        parts.append(line((middle - width / 2, y), (middle + width / 2, y), "l-orange"))
        if at % max(1, -(-len(shown) // 12)) == 0:
            parts.append(text_at(middle, _ROUNDS_BOTTOM + 14, str(one.number), anchor="middle"))
    first, last = shown[0], shown[-1]
    caption = Caption(
        "How far each answer was from the model",
        f"In round {first.number} the answer differed from the model by {percent(first.before)} of the rows; in round "
        f"{last.number} by {percent(last.before)}, of which noise explains {percent(last.noise)}.",
    )
    return picture("distances", caption, (350, _ROUNDS_HEIGHT), parts, style="middle")


def _round_y(part: float, top: float) -> float:
    """A height on a square-root scale: late rounds are often a hundred times smaller than the first."""
    return _ROUNDS_BOTTOM - (_ROUNDS_BOTTOM - _ROUNDS_TOP) * (part / top) ** 0.5


def _round_axis(top: float) -> Iterator[Part]:
    for part in (0.0, top / 5, top):  # a fifth of 1, 2 or 5 is a round number
        y = _round_y(part, top)
        yield line((_ROUNDS_LEFT, y), (_ROUNDS_RIGHT, y), "l-axis")
        yield text_at(_ROUNDS_LEFT - 5, y + 4, percent(part), anchor="end")
    yield text_at((_ROUNDS_LEFT + _ROUNDS_RIGHT) / 2, _ROUNDS_HEIGHT - 4, "round", anchor="middle")


# Counts of one attribute

_BARS_WIDTH, _LABELS_WIDTH, _BAR_HEIGHT, _COLUMNS_HEIGHT = 300.0, 112.0, 17.0, 150.0
_MOST_BARS, _MOST_COLUMNS, _LABEL_LETTERS = 18, 90, 15


@dataclass(frozen=True, slots=True)
class Bar:
    """A group of values, and its count in two tables.

    Attributes:
        measured: With noise; or, on the owner's page, in the private table.
        deviation: The standard deviation of the noise, or zero.
    """

    label: str
    measured: float
    deviation: float
    synthetic: float

    @property
    def lower(self) -> float:
        """Where its error bar begins; a count is not negative."""
        return max(0.0, self.measured - self.margin)

    @property
    def upper(self) -> float:
        """Where its error bar ends."""
        return max(0.0, self.measured + self.margin)

    @property
    def margin(self) -> float:
        """How far 95% of the noise reaches."""
        return SURE * self.deviation

    @property
    def is_covered(self) -> bool:
        """Whether noise explains the difference."""
        return abs(self.measured - self.synthetic) <= self.margin


def bar_chart(name: str, caption: Caption, bars: Sequence[Bar], *, is_ordered: bool) -> Markup:
    """All groups of an attribute: a line for each, or columns where there are many and their order has a meaning.

    Args:
        name: That no other picture of the page has.
        caption: Title and description.
        bars: The groups.
        is_ordered: Whether neighbouring groups are neighbours in meaning.
    """
    if len(bars) <= _MOST_BARS or not is_ordered:
        return _horizontal_bars(name, caption, _largest(bars) if len(bars) > _MOST_BARS else bars)
    return _columns(name, caption, bars)


def _largest(bars: Sequence[Bar]) -> list[Bar]:
    """The groups with the largest counts, and all others as one."""
    ranked = sorted(bars, key=lambda bar: -bar.synthetic)
    rest = ranked[_MOST_BARS - 1 :]
    return [*ranked[: _MOST_BARS - 1], _sum(rest, f"{len(rest)} others")]


def _sum(bars: Sequence[Bar], label: str) -> Bar:
    """Several groups as one."""
    return Bar(
        label=label,
        measured=sum(bar.measured for bar in bars),
        deviation=sum(bar.deviation**2 for bar in bars) ** 0.5,
        synthetic=sum(bar.synthetic for bar in bars),
    )


def _horizontal_bars(name: str, caption: Caption, bars: Sequence[Bar]) -> Markup:
    top = max(max(bar.upper, bar.synthetic) for bar in bars) or 1.0
    scale = (_BARS_WIDTH - _LABELS_WIDTH - 6) / top
    parts: list[Part] = []
    for at, bar in enumerate(bars):
        y = at * _BAR_HEIGHT + 3
        parts.append(text_at(_LABELS_WIDTH - 7, y + 10, truncate(bar.label, _LABEL_LETTERS), anchor="end"))
        width = bar.synthetic * scale
        parts.append(tag("rect", x=_LABELS_WIDTH, y=y, width=width, height=_BAR_HEIGHT - 5, class_="s-pale"))
        middle = y + (_BAR_HEIGHT - 5) / 2
        start, end = _LABELS_WIDTH + bar.lower * scale, _LABELS_WIDTH + bar.upper * scale
        parts.append(line((start, middle), (end, middle), "l-orange"))
        x = _LABELS_WIDTH + max(bar.measured, 0.0) * scale
        parts.append(tag("circle", cx=x, cy=middle, r=2.2, class_="s-orange"))
    height = len(bars) * _BAR_HEIGHT + 20
    parts.append(line((_LABELS_WIDTH, 0), (_LABELS_WIDTH, height - 17), "l-axis"))
    parts.append(text_at(_LABELS_WIDTH, height - 3, "0"))
    parts.append(text_at(_BARS_WIDTH - 2, height - 3, count(top), anchor="end"))
    return picture(name, caption, (_BARS_WIDTH, height), parts)


def _columns(name: str, caption: Caption, bars: Sequence[Bar]) -> Markup:
    """A column for each group, or for several neighbours; only the first and the last have a label."""
    each = math.ceil(len(bars) / _MOST_COLUMNS)
    shown = [_sum(bars[at : at + each], "") for at in range(0, len(bars), each)]
    top = max(max(bar.upper, bar.synthetic) for bar in shown) or 1.0
    scale, slot = (_COLUMNS_HEIGHT - 14) / top, (_BARS_WIDTH - 8) / len(shown)
    parts: list[Part] = [
        text_at(2, 9, count(top)),
        line((2, _COLUMNS_HEIGHT), (_BARS_WIDTH - 2, _COLUMNS_HEIGHT), "l-axis"),
    ]
    if each > 1:
        merged = f"a column is {each} neighbouring groups"
        parts.append(text_at(_BARS_WIDTH - 2, 9, merged, anchor="end"))
        last = len(bars) - (len(shown) - 1) * each
        caption = Caption(caption.title, f"{caption.description} In this chart {merged}, {last} in the last.")
    for at, bar in enumerate(shown):
        x, height, wide = 4 + at * slot, bar.synthetic * scale, slot * 0.84
        parts.append(tag("rect", x=x, y=_COLUMNS_HEIGHT - height, width=wide, height=height, class_="s-pale"))
        middle = x + wide / 2
        ends = (_COLUMNS_HEIGHT - bar.lower * scale, _COLUMNS_HEIGHT - bar.upper * scale)
        parts.append(line((middle, ends[0]), (middle, ends[1]), "l-orange"))
        y = _COLUMNS_HEIGHT - max(bar.measured, 0.0) * scale
        parts.append(tag("circle", cx=middle, cy=y, r=1.6, class_="s-orange"))
    parts.append(text_at(2, _COLUMNS_HEIGHT + 15, truncate(bars[0].label, 22)))
    parts.append(text_at(_BARS_WIDTH - 2, _COLUMNS_HEIGHT + 15, truncate(bars[-1].label, 22), anchor="end"))
    return picture(name, caption, (_BARS_WIDTH, _COLUMNS_HEIGHT + 20), parts)


# Counts of two tables against each other

_SQUARE, _EDGE = 300.0, 26.0


def scatter(name: str, caption: Caption, counts: tuple[Floats, Floats], sigma: float, across: str) -> Markup:
    """Counts of cells or groups against the synthetic table's, on a square-root scale: the largest, and it says so.

    Args:
        name: That no other picture of the page has.
        caption: Title and description.
        counts: From left to right, and the synthetic table's from bottom to top.
        sigma: Of the noise of the former; without any, no curves show how much of it there is.
        across: What the former are.
    """
    noisy, sums = counts
    largest = np.argsort(-np.maximum(noisy, sums), kind="stable")[:_MOST_POINTS]
    top = float(max(noisy.max(), sums.max(), SURE * sigma)) or 1.0
    left_out = f"the {_MOST_POINTS} largest of {count(noisy.size)}" if noisy.size > _MOST_POINTS else ""
    floor, right = _SQUARE - _EDGE, _SQUARE - 4
    parts: list[Part] = [
        line((_EDGE, floor), (right, floor), "l-axis"),
        line((_EDGE, 4), (_EDGE, floor), "l-axis"),
        line((_EDGE, floor), (right, 4), "l-axis"),
    ]
    if sigma:
        bands = (_band(top, sigma, is_upper=is_upper) for is_upper in (True, False))
        parts += (tag("path", d=band, class_="l-soft", stroke_dasharray="3 3") for band in bands)
    for x, y in zip(noisy[largest].tolist(), sums[largest].tolist(), strict=True):
        parts.append(tag("circle", cx=_along(x, top), cy=_SQUARE - _along(y, top), r=2.6, class_="dot"))
    parts.append(text_at(_EDGE, _SQUARE - 10, "0"))
    parts.append(text_at(right, _SQUARE - 10, f"{across} {count(top)}", anchor="end"))
    parts.append(text_at(_EDGE + 6, 13, f"synthetic {count(top)}"))
    if left_out:
        parts.append(text_at(right, floor - 6, left_out, anchor="end"))
        caption = Caption(caption.title, f"{caption.description} The chart shows {left_out}.")
    return picture(name, caption, (_SQUARE, _SQUARE), parts)


def _along(rows: float, top: float) -> float:
    """A position on either axis of a scatter plot."""
    return _EDGE + (_SQUARE - 4 - _EDGE) * (max(rows, 0.0) / top) ** 0.5


def _band(top: float, sigma: float, *, is_upper: bool) -> str:
    """The curve on which counts differ by as much as noise explains."""
    most = SURE * sigma
    least = [fraction**2 * (top - most) for fraction in np.linspace(0, 1, 24).tolist()]
    points = [(rows, rows + most) if is_upper else (rows + most, rows) for rows in least]
    return "M" + " ".join(f"{_along(x, top):.1f} {_SQUARE - _along(y, top):.1f}" for x, y in points)


# Errors of attributes and pairs

_NAMES_WIDTH, _WIDE_CELL, _MOST_CELL, _HEAT_WIDTH = 106.0, 13.0, 26.0, 340.0
_MOST_NARROW = 18
"""Attributes that fit the width of a phone."""


def heat_map(names: Sequence[str], errors: Mapping[Clique, float | None], known_as: str) -> Markup:
    """Errors of every attribute and pair, by colour.

    Args:
        names: The attributes.
        errors: Fractions of rows; what is not known is struck out.
        known_as: What is said of the pairs that are known.
    """
    is_wide = len(names) > _MOST_NARROW
    cell = _WIDE_CELL if is_wide else min((_HEAT_WIDTH - _NAMES_WIDTH - 2) / len(names), _MOST_CELL)
    side = cell * len(names)
    at = {name: number for number, name in enumerate(names)}
    parts: list[Part] = [  # a name beside the diagonal is that of the row to its left and of the column below it
        text_at((number + 1) * cell + 4, (number + 0.5) * cell + 4, shorten_middle(name), style="strong")
        for number, name in enumerate(names)
    ]
    for clique, error in errors.items():
        parts += _heat_cell(at[clique[0]] * cell, at[clique[-1]] * cell, cell - 1, error)
    known = sum(error is not None for clique, error in errors.items() if len(clique) > 1)
    caption = Caption(
        "Expected error of each attribute and pair",
        f"{plural(len(names), 'attribute')}; {known} of {plural(len(errors) - len(names), 'pair')} were {known_as}. "
        "The lists below have the figures.",
    )
    size = (max(side + _NAMES_WIDTH, _HEAT_WIDTH), side)
    return picture("heat", caption, size, parts, style="fixed" if is_wide else "middle")


def _heat_cell(x: float, y: float, side: float, error: float | None) -> Iterator[Part]:
    if error is None:
        yield tag("rect", x=x + 0.5, y=y + 0.5, width=side - 1, height=side - 1, class_="unknown")
        yield tag("path", d=f"M{x + 3:.1f} {y + side - 3:.1f}L{x + side - 3:.1f} {y + 3:.1f}", class_="l-soft")
    else:
        level = sum(error >= limit for limit in ERROR_LIMITS)
        yield tag("rect", x=x, y=y, width=side, height=side, class_=f"e{level}")


# The model

_RADIUS, _LINE_HEIGHT, _NAME_WIDTH = 66.0, 12.0, 112.0
"""Of the circle at least; between names that stand below each other; and the room that a name takes."""
_MOST_LEVEL = 17
"""Attributes whose names fit around the circle side by side."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Two attributes that were measured together.

    Attributes:
        bits: Their mutual information in the model.
    """

    first: str
    second: str
    bits: float


def model_graph(names: Sequence[str], edges: Sequence[Edge]) -> Markup:
    """The attributes around a circle, and a line for each pair that was measured together.

    Args:
        names: The attributes, in their order around the circle.
        edges: Strongest first.
    """
    is_wide = len(names) > _MOST_LEVEL
    # Near the top of a circle of n names, neighbours stand radius * (2 pi / n)**2 below each other.
    radius = max(_RADIUS, 2.2 * len(names) if is_wide else _LINE_HEIGHT * (len(names) / (2 * math.pi)) ** 2)
    size = (2 * (radius + _NAME_WIDTH), 2 * (radius + (_NAME_WIDTH if is_wide else 30)))
    middle = (size[0] / 2, size[1] / 2)
    angles = {name: 2 * math.pi * (at + 0.5) / len(names) for at, name in enumerate(names)}
    points = {name: _on_circle(middle, radius, angle) for name, angle in angles.items()}
    most = max((edge.bits for edge in edges), default=0.0) or 1.0
    parts: list[Part] = [
        tag(
            "path",
            d=_bent_line(points[edge.first], points[edge.second], middle),
            stroke_width=0.6 + 4.4 * (edge.bits / most) ** 0.5,
            class_="edge",
        )
        for edge in reversed(edges)
    ]
    for name, angle in angles.items():
        x, y = points[name]
        parts.append(tag("circle", cx=x, cy=y, r=3.4, class_="node"))
        label_at = _on_circle(middle, radius + 9, angle)
        parts.append(_radial_label(name, angle, label_at) if is_wide else _level_label(name, angle, label_at))
    strongest = f" The strongest is between {edges[0].first} and {edges[0].second}." if edges else ""
    caption = Caption(
        "The model's graph", f"{plural(len(names), 'attribute')}, {plural(len(edges), 'line')}.{strongest}"
    )
    return picture("graph", caption, size, parts, style="fixed" if is_wide else "middle")


def _on_circle(middle: tuple[float, float], radius: float, angle: float) -> tuple[float, float]:
    return middle[0] + radius * math.sin(angle), middle[1] - radius * math.cos(angle)


def _bent_line(start: tuple[float, float], end: tuple[float, float], middle: tuple[float, float]) -> str:
    """A line that bends a little towards the middle, so that it passes no other attribute."""
    bend = [(a + b) / 2 + 0.35 * (m - (a + b) / 2) for a, b, m in zip(start, end, middle, strict=True)]
    return f"M{start[0]:.1f} {start[1]:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {end[0]:.1f} {end[1]:.1f}"


def _level_label(name: str, angle: float, at: tuple[float, float]) -> Markup:
    if abs(math.sin(angle)) < 0.1:  # at the very bottom, below its neighbours
        return text_at(at[0], at[1] + 14, shorten_middle(name), anchor="middle", style="strong")
    anchor = "start" if angle <= math.pi else "end"
    return text_at(at[0], at[1] + 4, shorten_middle(name), anchor=anchor, style="strong")


def _radial_label(name: str, angle: float, at: tuple[float, float]) -> Markup:
    degrees = math.degrees(angle) - 90 if angle <= math.pi else math.degrees(angle) + 90
    return tag(
        "text",
        shorten_middle(name),
        x=at[0],
        y=at[1],
        text_anchor="start" if angle <= math.pi else "end",
        transform=f"rotate({degrees:.1f} {at[0]:.1f} {at[1]:.1f})",
        dy="0.35em",
        class_="strong",
    )


# Intervals

_INTERVALS_WIDTH, _INTERVAL_LABELS, _INTERVAL_HEIGHT = 340.0, 158.0, 24.0


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure, and from where to where the truth lies; fractions of a whole."""

    label: str
    value: float
    lower: float
    upper: float


def interval_chart(name: str, title: str, intervals: Sequence[Interval]) -> Markup:
    """Figures with their error bars, one below the other."""
    top = min(1.0, axis_end(max(one.upper for one in intervals) or 0.01))
    height = len(intervals) * _INTERVAL_HEIGHT + 24

    def across(part: float) -> float:
        return _INTERVAL_LABELS + (_INTERVALS_WIDTH - _INTERVAL_LABELS - 6) * min(part, top) / top

    parts: list[Part] = []
    for part in (0.0, top / 2, top):
        parts.append(line((across(part), 0), (across(part), height - 18), "l-axis"))
        parts.append(text_at(across(part), height - 4, percent(part), anchor="end" if part == top else "middle"))
    for at, one in enumerate(intervals):
        y = (at + 0.5) * _INTERVAL_HEIGHT
        parts.append(text_at(_INTERVAL_LABELS - 8, y + 4, truncate(one.label, 26), anchor="end"))
        parts.append(line((across(one.lower), y), (across(one.upper), y), "l-orange"))
        parts += (line((across(end), y - 5), (across(end), y + 5), "l-orange") for end in (one.lower, one.upper))
        parts.append(tag("circle", cx=across(one.value), cy=y, r=2.6, class_="s-blue"))
    described = (
        f"{one.label}: {exact_percent(one.value)} ({exact_percent(one.lower)} to {exact_percent(one.upper)})"
        for one in intervals
    )
    caption = Caption(title, "; ".join(described))
    return picture(name, caption, (_INTERVALS_WIDTH, height), parts, style="middle")


# How many are how large

_HISTOGRAM = (350.0, 190.0)
_BINS, _HISTOGRAM_LEFT, _HISTOGRAM_BOTTOM, _HISTOGRAM_TOP = 24, 34.0, 156.0, 10.0


def histogram(name: str, caption: Caption, parts_of_rows: Floats, across: str) -> Markup:
    """How often fractions of a whole have which size.

    Args:
        name: That no other picture of the page has.
        caption: Title and description.
        parts_of_rows: The fractions.
        across: What they are.
    """
    top = axis_end(max(1e-4, float(parts_of_rows.max())))
    counts, _ = np.histogram(parts_of_rows, _BINS, (0.0, top))
    most, width = int(counts.max()), _HISTOGRAM[0] - _HISTOGRAM_LEFT - 8
    slot, floor = width / _BINS, _HISTOGRAM_BOTTOM
    parts: list[Part] = []
    for part in (0.0, top / 2, top):
        x = _HISTOGRAM_LEFT + width * part / top
        parts.append(text_at(x, floor + 15, percent(part), anchor="end" if part == top else "middle"))
    parts.append(line((_HISTOGRAM_LEFT, floor), (_HISTOGRAM[0] - 8, floor), "l-axis"))
    parts.append(text_at(_HISTOGRAM_LEFT - 5, _HISTOGRAM_TOP + 8, count(most), anchor="end"))
    parts.append(text_at((_HISTOGRAM_LEFT + _HISTOGRAM[0]) / 2, _HISTOGRAM[1] - 4, across, anchor="middle"))
    for at, number in enumerate(counts.tolist()):
        x, height = _HISTOGRAM_LEFT + at * slot, (floor - _HISTOGRAM_TOP) * number / most
        parts.append(tag("rect", x=x, y=floor - height, width=slot * 0.86, height=height, class_="s-blue"))
    return picture(name, caption, _HISTOGRAM, parts, style="middle")


# Several bars to a label

_GROUPS_WIDTH, _GROUP_HEIGHT = 350.0, 66.0


def grouped_bars(name: str, caption: Caption, groups: Sequence[tuple[str, Sequence[tuple[float, str]]]]) -> Markup:
    """Fractions of a whole as bars, several below each label.

    Args:
        name: That no other picture of the page has.
        caption: Title and description.
        groups: Each label, with the fraction and the class of each of its bars.
    """
    top = axis_end(max(0.01, *(part for _, bars in groups for part, _ in bars)))
    parts: list[Part] = []
    for number, (label, bars) in enumerate(groups):
        y = number * _GROUP_HEIGHT
        parts.append(text_at(0, y + 12, truncate(label, 52), style="strong"))
        for at, (part, style) in enumerate(bars):
            width = (_GROUPS_WIDTH - 60) * part / top
            parts.append(tag("rect", x=0, y=y + 18 + at * 14, width=max(width, 0.5), height=11, class_=style))
            parts.append(text_at(width + 5, y + 27 + at * 14, exact_percent(part)))
    return picture(name, caption, (_GROUPS_WIDTH, len(groups) * _GROUP_HEIGHT), parts, style="middle")


# Accounts, and what happened when

_LANES_WIDTH, _LANE_HEIGHT, _LANE_LETTERS = 350.0, 40.0, 34


def budget_bars(name: str, caption: Caption, bars: Sequence[tuple[str, str, Sequence[tuple[str, Fraction]]]]) -> Markup:
    """A full bar for each label, made of parts.

    Args:
        name: That no other picture of the page has.
        caption: Title and description.
        bars: Each label, what is said at its end, and the class of each part with its fraction of the whole.
    """
    drawn: list[Part] = []
    for number, (label, note, parts) in enumerate(bars):
        y, at = number * _LANE_HEIGHT, 0.0
        drawn.append(text_at(0, y + 12, truncate(label, _LANE_LETTERS), style="strong"))
        drawn.append(text_at(_LANES_WIDTH, y + 12, note, anchor="end"))
        for style, part in parts:
            width = _LANES_WIDTH * float(part)
            if width > 0:
                drawn.append(tag("rect", x=at, y=y + 18, width=width, height=13, class_=style))
            at += width
    return picture(name, caption, (_LANES_WIDTH, len(bars) * _LANE_HEIGHT), drawn, style="middle")


class Mark(NamedTuple):
    """Something that happened, or will, and how it is drawn."""

    at: datetime
    style: str


def time_line(name: str, caption: Caption, lanes: Sequence[tuple[str, Sequence[Mark]]], now: datetime) -> Markup:
    """What happened when, a lane for each label, with a line at the present.

    Args:
        name: That no other picture of the page has.
        caption: Title and description.
        lanes: Each label with its marks, one of them at least.
        now: Where the line is.
    """
    times = [now, *(mark.at for _, marks in lanes for mark in marks)]
    first, last = min(times), max(times)
    span = (last - first).total_seconds() or 1.0
    height = len(lanes) * _LANE_HEIGHT

    def across(at: datetime) -> float:
        return 5 + (_LANES_WIDTH - 10) * (at - first).total_seconds() / span

    parts: list[Part] = [line((across(now), 0), (across(now), height + 2), "l-soft")]
    for number, (label, marks) in enumerate(lanes):
        y = number * _LANE_HEIGHT
        parts.append(line((0, y + 26), (_LANES_WIDTH, y + 26), "l-axis"))
        parts.append(text_at(0, y + 12, truncate(label, _LANE_LETTERS), style="strong"))
        parts += (tag("circle", cx=across(at), cy=y + 26, r=4, class_=style) for at, style in marks)
    parts.append(text_at(0, height + 14, str(first.date())))
    parts.append(text_at(_LANES_WIDTH, height + 14, str(last.date()), anchor="end"))
    return picture(name, caption, (_LANES_WIDTH, height + 20), parts, style="middle")
