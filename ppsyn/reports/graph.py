"""The model's graph: which attributes it relates directly, and how strongly."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.model.graphical_model import GraphicalModel
from ppsyn.reports.elements import fold, picture, section, table, text_at
from ppsyn.reports.markup import Markup, Part, tag
from ppsyn.reports.words import listed, plural, shortened

_RADIUS, _LINE, _NAME = 66.0, 12.0, 112.0
"""Of the circle at least; between names that stand below each other; and the room that a name takes."""
_MOST_LEVEL = 17
"""Attributes whose names fit around the circle side by side."""
_MOST_LISTED = 100


@dataclass(frozen=True, slots=True)
class Edge:
    """Two attributes that were measured together.

    Attributes:
        bits: Their mutual information in the model.
    """

    first: str
    second: str
    bits: float


def edges_of(model: GraphicalModel) -> list[Edge]:
    """The pairs inside the model's cliques, strongest first."""
    pairs = {pair for clique in (*model.potentials, *model.loose) for pair in combinations(clique, 2)}
    edges = [Edge(*pair, mutual_information(model.project(pair))) for pair in sorted(pairs)]
    return sorted(edges, key=lambda edge: -edge.bits)


def mutual_information(counts: Floats) -> float:
    """In bits, of a table of counts with two axes."""
    joint = counts / counts.sum()
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    is_there = (joint > 0) & (apart > 0)
    return max(0.0, float((joint[is_there] * np.log2(joint[is_there] / apart[is_there])).sum()))


def graph(model: GraphicalModel) -> Markup:
    """The section."""
    edges, names = edges_of(model), _around(model)
    alone = [name for name in model.domain.names if not any(name in (e.first, e.second) for e in edges)]
    apart = f" Measured alone only, and therefore independent of all others here: {listed(alone)}." if alone else ""
    rows = [(edge.first, edge.second, f"{edge.bits:.3f}") for edge in edges[:_MOST_LISTED]]
    more = f"; the strongest {_MOST_LISTED} of {len(edges)}" if len(edges) > _MOST_LISTED else ""
    return section(
        "model",
        "The model's graph",
        tag(
            "p",
            "A line joins two attributes that were measured together. Attributes without a line between them are "
            "related in the synthetic table only as far as the attributes on the paths between them explain it."
            f"{apart}",
        ),
        tag(
            "figure",
            _drawing(names, edges),
            tag("figcaption", "The thicker the line, the more the two tell about each other (mutual information)."),
        ),
        fold(
            "The lines in numbers",
            table(f"Mutual information in the model{more}", ("Attribute", "With", "Bits"), rows, (2,)),
        )
        if rows
        else None,
    )


def _around(model: GraphicalModel) -> list[str]:
    """The attributes in the order of the junction tree, so that related ones stand near each other."""
    return list(dict.fromkeys(name for node in model.tree.nodes for name in node))


def _drawing(names: Sequence[str], edges: Sequence[Edge]) -> Markup:
    is_wide = len(names) > _MOST_LEVEL
    # Near the top of a circle of n names, neighbours stand radius * (2 pi / n)**2 below each other.
    radius = max(_RADIUS, 2.2 * len(names) if is_wide else _LINE * (len(names) / (2 * math.pi)) ** 2)
    size = (2 * (radius + _NAME), 2 * (radius + (_NAME if is_wide else 30)))
    middle = (size[0] / 2, size[1] / 2)
    turns = {name: 2 * math.pi * (at + 0.5) / len(names) for at, name in enumerate(names)}
    points = {name: _point(middle, radius, turn) for name, turn in turns.items()}
    most = max((edge.bits for edge in edges), default=0.0) or 1.0
    parts: list[Part] = [
        tag(
            "path",
            d=_curve(points[e.first], points[e.second], middle),
            stroke_width=0.6 + 4.4 * (e.bits / most) ** 0.5,
            class_="edge",
        )
        for e in reversed(edges)
    ]
    for name, turn in turns.items():
        parts.append(tag("circle", cx=points[name][0], cy=points[name][1], r=3.4, class_="node"))
        parts.append(_turned(name, turn, middle, radius) if is_wide else _level(name, turn, middle, radius))
    strongest = f" The strongest is between {edges[0].first} and {edges[0].second}." if edges else ""
    told = ("The model's graph", f"{plural(len(names), 'attribute')}, {plural(len(edges), 'line')}.{strongest}")
    drawn = picture("graph", told, size, parts, style="fixed" if is_wide else "middle")
    if not is_wide:
        return drawn
    return tag("div", drawn, class_="scroll", tabindex="0", role="group", aria_label="The model's graph")


def _point(middle: tuple[float, float], radius: float, turn: float) -> tuple[float, float]:
    return middle[0] + radius * math.sin(turn), middle[1] - radius * math.cos(turn)


def _curve(start: tuple[float, float], end: tuple[float, float], middle: tuple[float, float]) -> str:
    """A line that bends a little towards the middle, so that it passes no other attribute."""
    bend = [(a + b) / 2 + 0.35 * (m - (a + b) / 2) for a, b, m in zip(start, end, middle, strict=True)]
    return f"M{start[0]:.1f} {start[1]:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {end[0]:.1f} {end[1]:.1f}"


def _level(name: str, turn: float, middle: tuple[float, float], radius: float) -> Markup:
    x, y = _point(middle, radius + 9, turn)
    if abs(math.sin(turn)) < 0.1:  # at the very bottom, below its neighbours
        return text_at(x, y + 14, shortened(name), anchor="middle", style="strong")
    return text_at(x, y + 4, shortened(name), anchor="start" if turn <= math.pi else "end", style="strong")


def _turned(name: str, turn: float, middle: tuple[float, float], radius: float) -> Markup:
    x, y = _point(middle, radius + 9, turn)
    degrees = math.degrees(turn) - 90 if turn <= math.pi else math.degrees(turn) + 90
    anchor = "start" if turn <= math.pi else "end"
    turned = f"rotate({degrees:.1f} {x:.1f} {y:.1f})"
    return tag("text", shortened(name), x=x, y=y, text_anchor=anchor, transform=turned, dy="0.35em", class_="strong")
