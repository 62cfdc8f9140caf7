"""Every round: which marginal, how its cells were merged, the noise, and how far the model moved."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ppsyn.domain import Clique
from ppsyn.reports.budget import Spending
from ppsyn.reports.elements import fold, legend, line, picture, section, table, text_at
from ppsyn.reports.markup import Markup, Part, tag
from ppsyn.reports.released import Released, measured_rounds
from ppsyn.reports.words import count, marginal, nice_above, plural, share

_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 340.0, 12.0, 150.0
_HEIGHT = 182.0
_MOST = 200
_FEW = 12
"""Rounds whose table is not folded away."""


@dataclass(frozen=True, slots=True)
class Told:
    """A round, in rows: half an L1 distance is how many rows would have to change their cell.

    Attributes:
        before: From the answer to what the model expected when it was asked.
        after: From the answer to the final model.
        noise: What the noise alone is expected to make of such a distance.
    """

    number: int
    clique: Clique
    cells: int
    groups: int
    sigma: float
    before: float
    after: float
    noise: float


def told_rounds(released: Released, spent: Spending) -> list[Told]:
    """The rounds whose measurement arrived."""
    model, found = released.synthesis.model, measured_rounds(released.synthesis)
    numbers = [turn.number for turn in spent.turns if turn.is_measured]
    if len(numbers) != len(found):  # rounds that were charged in another way
        numbers = list(range(1, len(found) + 1))
    told: list[Told] = []
    for number, (done, measurement) in zip(numbers, found, strict=True):
        now = measurement.partition.sum_expected(model.project(done.clique))
        after = float(np.abs(measurement.surprise(now)).sum()) / 2
        cells = measurement.partition.cells
        told.append(Told(number, done.clique, cells, done.groups, done.sigma, done.surprise / 2, after, done.noise / 2))
    return told


def rounds(released: Released, spent: Spending) -> Markup:
    """The section."""
    told = told_rounds(released, spent)
    lost = sum(turn.lost for turn in spent.turns) + spent.lost
    return section(
        "rounds",
        "Round by round",
        tag(
            "p",
            f"First every attribute was measured alone. Then, in {plural(len(spent.turns), 'round')}, a marginal (a "
            "table of counts over one or more attributes) was chosen, by a private draw that prefers the one the model "
            "gets most wrong beyond the noise of measuring it; its cells were merged into groups, so that each count "
            "stands out of the noise; the groups were counted with noise, and the model fitted again.",
        ),
        tag("p", f"{plural(lost, 'answer')} charged and lost on the way.") if lost else None,
        *(_shown(told, released.total) if told else (tag("p", "No round was measured."),)),
    )


def _shown(told: Sequence[Told], total: float) -> Iterator[Part]:
    yield tag(
        "figure",
        _chart(told, total),
        legend(
            [
                ("s-pale", "distance of the answer from the model when it was asked"),
                ("s-blue", "from the final model"),
                ("s-orange", "expected from noise alone"),
            ]
        ),
        tag(
            "figcaption",
            "Distances are rows that would have to change their cell, as a share of all rows. A long pale bar is a "
            "round that taught the model much; a dark one that ends near the mark of the noise says that the final "
            "model agrees with the answer as well as noise allows.",
        ),
    )
    more = len(told) - _MOST
    caption = "All rounds" + (f" but the last {more}, which measurements.parquet has" if more > 0 else "")
    heads = ("Round", "Marginal", "Cells", "Groups", "Noise (sd)", "Before", "Final model", "Noise alone")
    rows = [
        (
            str(one.number),
            marginal(one.clique),
            count(one.cells),
            count(one.groups),
            f"{one.sigma:,.1f}",
            *(share(rows / total) for rows in (one.before, one.after, one.noise)),
        )
        for one in told[:_MOST]
    ]
    whole = table(f"{caption}. Distances are shares of all rows.", heads, rows, numbers=(0, *range(2, 8)))
    yield whole if len(rows) <= _FEW else fold("Every round in numbers", whole, is_printed=True)


def _chart(told: Sequence[Told], total: float) -> Markup:
    shown = told[:_MOST]
    top = nice_above(max(1e-6, *(max(one.before, one.after, one.noise) / total for one in shown)))
    slot = (_RIGHT - _LEFT) / len(shown)
    parts: list[Part] = [*_axis(top)]
    for at, one in enumerate(shown):
        left, width = _LEFT + at * slot, min(slot * 0.8, 26)
        middle = left + slot / 2
        for rows, style, wide in ((one.before, "s-pale", width), (one.after, "s-blue", width * 0.5)):
            y = _at(rows / total, top)
            parts.append(tag("rect", x=middle - wide / 2, y=y, width=wide, height=_BOTTOM - y, class_=style))
        y = _at(one.noise / total, top)
        parts.append(line((middle - width / 2, y), (middle + width / 2, y), "l-orange"))
    parts += _numbers(shown, slot)
    first, last = shown[0], shown[-1]
    description = (
        f"In round {first.number} the answer lay {share(first.before / total)} of the rows away from the model, in "
        f"round {last.number} {share(last.before / total)}, of which noise explains {share(last.noise / total)}."
    )
    told_as = ("How far answers lay from the model, round by round", description)
    return picture("distances", told_as, (350, _HEIGHT), parts, style="middle")


def _at(part: float, top: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * part / top


def _axis(top: float) -> Iterator[Part]:
    for part in (0.0, top / 2, top):
        y = _at(part, top)
        yield line((_LEFT, y), (_RIGHT, y), "l-axis")
        yield text_at(_LEFT - 5, y + 4, share(part), anchor="end")
    yield text_at((_LEFT + _RIGHT) / 2, _HEIGHT - 4, "round", anchor="middle")


def _numbers(shown: Sequence[Told], slot: float) -> Iterator[Part]:
    step = max(1, -(-len(shown) // 12))
    for at, one in enumerate(shown):
        if at % step == 0:
            yield text_at(_LEFT + (at + 0.5) * slot, _BOTTOM + 14, str(one.number), anchor="middle")
