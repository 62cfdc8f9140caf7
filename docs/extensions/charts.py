"""Draw curves as SVG in the colours of the page."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ppsyn.reports.charts import Caption, Part, line, picture, short, tag, text_at

_WIDTH, _HEIGHT = 460.0, 320.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 68.0, 112.0, 34.0, 52.0
_APART = 18.0
"""The smallest distance between two labels."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a chart.

    Attributes:
        label: What is measured.
        ticks: Values with their texts in ascending order; the first and the last are the ends of the axis.
        is_log: Whether the axis is logarithmic.
    """

    label: str
    ticks: Sequence[tuple[float, str]]
    is_log: bool = False

    def position(self, value: float) -> float:
        """Return the position of a value, from 0 to 1."""
        low, high, at = (self._scaled(number) for number in (self.ticks[0][0], self.ticks[-1][0], value))
        return (at - low) / (high - low)

    def _scaled(self, value: float) -> float:
        return math.log(value) if self.is_log else value


@dataclass(frozen=True, slots=True)
class Curve:
    """A line with a label at its end; `is_measured` marks every point."""

    label: str
    points: Sequence[tuple[float, float]]
    is_measured: bool = False


def chart(name: str, named: tuple[str, str], axes: tuple[Axis, Axis], curves: Sequence[Curve], caption: str) -> str:
    """Draw a figure with a title and a description for screen readers, as one line of HTML."""
    parts = [*_grid(*axes), *(part for at, curve in enumerate(curves, 1) for part in _curve(at, curve, *axes))]
    drawing = picture(name, Caption(*named), (_WIDTH, _HEIGHT), [*parts, *_labels(curves, axes[1])])
    return str(tag("figure", drawing, tag("figcaption", caption), class_="chart"))


def _x(axis: Axis, value: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * axis.position(value)


def _y(axis: Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * axis.position(value)


def _grid(across: Axis, up: Axis) -> Iterator[Markup]:
    left, right, floor = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for value, text in up.ticks:
        yield line((left, _y(up, value)), (right, _y(up, value)), "grid")
        yield text_at(left - 8, _y(up, value) + 5, text, anchor="end")
    for value, text in across.ticks:
        yield line((_x(across, value), floor), (_x(across, value), floor + 5), "frame")
        yield text_at(_x(across, value), floor + 21, text, anchor="middle")
    yield line((left, floor), (right, floor), "frame")
    yield text_at(2, 16, up.label)
    yield text_at((left + right) / 2, _HEIGHT - 8, across.label, anchor="middle")


def _curve(number: int, curve: Curve, across: Axis, up: Axis) -> Iterator[Part]:
    points = [(_x(across, x), _y(up, y)) for x, y in curve.points]
    path = "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points)
    yield tag("path", d=path, class_=f"curve c{number}")
    if curve.is_measured:
        yield from (tag("circle", cx=x, cy=y, r=3.5, class_=f"m{number}") for x, y in points)


def _labels(curves: Sequence[Curve], up: Axis) -> Iterator[Markup]:
    """Place each label at the end of its curve, moved down if it would overlap another."""
    free = -math.inf
    for at, curve in sorted(enumerate(curves, 1), key=lambda one: _y(up, one[1].points[-1][1])):
        y = max(_y(up, curve.points[-1][1]), free)
        free = y + _APART
        yield tag("circle", cx=_WIDTH - _RIGHT + 12, cy=y, r=4, class_=f"m{at}")
        yield text_at(_WIDTH - _RIGHT + 21, y + 5, curve.label)
