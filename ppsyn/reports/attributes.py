"""Single attributes: measured counts with their error bars beside the synthetic table's."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.domain import Clique
from ppsyn.model.inference_plan import Measurement
from ppsyn.reports.elements import fold, line, picture, table, text_at
from ppsyn.reports.labels import name_group
from ppsyn.reports.markup import Markup, Part, tag
from ppsyn.reports.released import Released
from ppsyn.reports.words import count, cut, plural

SURE = 1.96
"""Standard deviations that hold 95% of the noise."""

_WIDTH, _LABELS = 300.0, 112.0
_ROW, _COLUMN_HEIGHT = 17.0, 150.0
_MOST_ROWS, _MOST_COLUMNS, _MOST_IN_TABLE = 18, 90, 60
_LABEL_LETTERS = 15


@dataclass(frozen=True, slots=True)
class Bar:
    """A group of values: what was measured, and what the synthetic table has."""

    label: str
    measured: float
    deviation: float
    synthetic: float

    @property
    def lower(self) -> float:
        """Where its error bar begins; a count is not negative."""
        return max(0.0, self.measured - SURE * self.deviation)

    @property
    def upper(self) -> float:
        """Where its error bar ends."""
        return max(0.0, self.measured + SURE * self.deviation)

    @property
    def is_covered(self) -> bool:
        """Whether the synthetic count lies within what noise explains."""
        return abs(self.measured - self.synthetic) <= SURE * self.deviation


def finest_of(measurements: Iterable[Measurement], clique: Clique) -> Measurement | None:
    """The measurement of a marginal that tells the most groups apart, and of those the one with the least noise."""
    found = [m for m in measurements if m.clique == clique]
    return min(found, key=lambda m: (-m.partition.count, m.sigma), default=None)


def bars_of(released: Released, measurement: Measurement, synthetic: Floats) -> list[Bar]:
    """The groups of a measurement, in order of their first cell."""
    partition, columns = measurement.partition, released.columns
    sums = partition.sum_expected(synthetic)
    measured = sums + measurement.surprise(sums)
    by_group = np.argsort(partition.groups, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(partition.groups, minlength=partition.count))
    return [
        Bar(
            label=name_group(columns, measurement.clique, cells),
            measured=float(measured[group]),
            deviation=measurement.count_sigma,
            synthetic=float(sums[group]),
        )
        for group, cells in enumerate(np.split(by_group, ends[:-1]))
    ]


def attribute_cards(released: Released, counts: Mapping[Clique, Floats]) -> Iterator[Part]:
    """A card for each attribute that was measured alone."""
    for number, column in enumerate(released.manifest.table.columns):
        clique = (column.name,)
        measurement = finest_of(released.synthesis.measurements, clique)
        if measurement is None:
            continue
        bars = [
            Bar(bar.label.removeprefix(f"{column.name}: "), bar.measured, bar.deviation, bar.synthetic)
            for bar in bars_of(released, measurement, counts[clique])
        ]
        yield _card(f"attribute-{number}", column.name, bars, is_ordered=column.is_ordered)


def _card(name: str, title: str, bars: Sequence[Bar], *, is_ordered: bool) -> Markup:
    within = sum(bar.is_covered for bar in bars)
    told = (
        f"Counts of {title}",
        f"{plural(len(bars), 'group')} of values; the synthetic count of {within} lies within the error bar.",
    )
    spread = bars[0].deviation
    return tag(
        "figure",
        tag("h4", title),
        tag("p", f"{plural(len(bars), 'group')}, {within} within noise (sd {spread:,.0f})"),
        bar_chart(name, told, bars, is_ordered=is_ordered),
        fold("In numbers", bar_table(f"Counts of {title}", bars)),
        class_="card",
    )


def bar_chart(name: str, told: tuple[str, str], bars: Sequence[Bar], *, is_ordered: bool) -> Markup:
    """The groups of an attribute: a line for each, or a column where there are many and their order means something.

    Args:
        name: That no other picture of the page has.
        told: Title and description.
        bars: The groups.
        is_ordered: Whether neighbouring groups are neighbours in meaning.
    """
    if len(bars) <= _MOST_ROWS or not is_ordered:
        return _rows(name, told, _largest(bars, _MOST_ROWS) if len(bars) > _MOST_ROWS else bars)
    return _columns(name, told, bars)


def _largest(bars: Sequence[Bar], most: int) -> list[Bar]:
    """The groups with the largest counts, and all others as one."""
    ranked = sorted(bars, key=lambda bar: -bar.synthetic)
    rest = ranked[most - 1 :]
    return [*ranked[: most - 1], _sum(rest, f"{len(rest)} others")]


def _sum(bars: Sequence[Bar], label: str) -> Bar:
    """Several groups as one."""
    return Bar(
        label=label,
        measured=sum(bar.measured for bar in bars),
        deviation=sum(bar.deviation**2 for bar in bars) ** 0.5,
        synthetic=sum(bar.synthetic for bar in bars),
    )


def _rows(name: str, told: tuple[str, str], bars: Sequence[Bar]) -> Markup:
    """A line for each group, with its label."""
    top = max(max(bar.upper, bar.synthetic) for bar in bars) or 1.0
    scale = (_WIDTH - _LABELS - 6) / top
    parts: list[Part] = []
    for at, bar in enumerate(bars):
        y = at * _ROW + 3
        parts.append(text_at(_LABELS - 7, y + 10, cut(bar.label, _LABEL_LETTERS), anchor="end"))
        parts.append(tag("rect", x=_LABELS, y=y, width=bar.synthetic * scale, height=_ROW - 5, class_="s-pale"))
        middle, start, end = y + (_ROW - 5) / 2, _LABELS + bar.lower * scale, _LABELS + bar.upper * scale
        parts.append(line((start, middle), (end, middle), "l-orange"))
        x = _LABELS + max(bar.measured, 0.0) * scale
        parts.append(tag("circle", cx=x, cy=middle, r=2.2, class_="s-orange"))
    height = len(bars) * _ROW + 20
    parts.append(line((_LABELS, 0), (_LABELS, height - 17), "l-axis"))
    parts.append(text_at(_LABELS, height - 3, "0"))
    parts.append(text_at(_WIDTH - 2, height - 3, count(top), anchor="end"))
    return picture(name, told, (_WIDTH, height), parts)


def _columns(name: str, told: tuple[str, str], bars: Sequence[Bar]) -> Markup:
    """A column for each group, or for as many neighbours as it takes; only the first and the last have a label."""
    each = math.ceil(len(bars) / _MOST_COLUMNS)
    shown = [_sum(bars[at : at + each], "") for at in range(0, len(bars), each)]
    top = max(max(bar.upper, bar.synthetic) for bar in shown) or 1.0
    scale, slot = (_COLUMN_HEIGHT - 14) / top, (_WIDTH - 8) / len(shown)
    parts: list[Part] = [text_at(2, 9, count(top)), line((2, _COLUMN_HEIGHT), (_WIDTH - 2, _COLUMN_HEIGHT), "l-axis")]
    if each > 1:
        merged = f"a column is {each} neighbouring groups"
        parts.append(text_at(_WIDTH - 2, 9, merged, anchor="end"))
        told = (told[0], f"{told[1]} In this chart {merged}, {len(bars) - (len(shown) - 1) * each} in the last.")
    for at, bar in enumerate(shown):
        x, height = 4 + at * slot, bar.synthetic * scale
        wide = slot * 0.84
        parts.append(tag("rect", x=x, y=_COLUMN_HEIGHT - height, width=wide, height=height, class_="s-pale"))
        middle = x + wide / 2
        ends = (_COLUMN_HEIGHT - bar.lower * scale, _COLUMN_HEIGHT - bar.upper * scale)
        parts.append(line((middle, ends[0]), (middle, ends[1]), "l-orange"))
        y = _COLUMN_HEIGHT - max(bar.measured, 0.0) * scale
        parts.append(tag("circle", cx=middle, cy=y, r=1.6, class_="s-orange"))
    parts.append(text_at(2, _COLUMN_HEIGHT + 15, cut(bars[0].label, 22)))
    parts.append(text_at(_WIDTH - 2, _COLUMN_HEIGHT + 15, cut(bars[-1].label, 22), anchor="end"))
    return picture(name, told, (_WIDTH, _COLUMN_HEIGHT + 20), parts)


def bar_table(caption: str, bars: Sequence[Bar]) -> Markup:
    """Groups with their counts."""
    shown = bars[:_MOST_IN_TABLE]
    more = "" if len(shown) == len(bars) else f"; the first {len(shown)} of {len(bars)} groups"
    rows = [
        (bar.label, count(bar.measured), count(SURE * bar.deviation), count(bar.synthetic), _verdict(bar))
        for bar in shown
    ]
    heads = ("Values", "Measured", "\N{PLUS-MINUS SIGN} (95%)", "Synthetic", "Within")
    return table(f"{caption}{more}", heads, rows, numbers=(1, 2, 3))


def _verdict(bar: Bar) -> str:
    return "yes" if bar.is_covered else "no"
