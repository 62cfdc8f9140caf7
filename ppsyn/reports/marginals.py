"""The measured marginals beside the synthetic table's: attributes alone, and together."""

from collections.abc import Mapping, Sequence

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.domain import Clique
from ppsyn.model.inference_plan import Measurement
from ppsyn.reports.attributes import SURE, attribute_cards, bar_table, bars_of
from ppsyn.reports.elements import fold, legend, line, picture, section, text_at
from ppsyn.reports.markup import Markup, Part, tag
from ppsyn.reports.released import MOST_ROWS, Released, measured_rounds, synthetic_counts
from ppsyn.reports.words import count, marginal, plural

_MOST_CARDS, _MOST_POINTS, _LISTED = 24, 160, 8
_SIZE, _EDGE = 300.0, 26.0


def marginals(released: Released) -> Markup:
    """The section."""
    synthesis = released.synthesis
    chosen = _telling(measured_rounds_of(released))
    singles = [(name,) for name in synthesis.domain.names]
    counts = synthetic_counts(released, dict.fromkeys([*singles, *(m.clique for _, m in chosen)]))
    return section(
        "marginals",
        "What was measured, beside the synthetic table",
        tag("p", _explained(released)),
        legend(
            [
                ("s-pale", "synthetic table"),
                ("s-orange", "noisy count, with the range that holds 95% of its noise"),
            ]
        ),
        tag("h3", "Attributes, one by one"),
        tag("div", *attribute_cards(released, counts), class_="packed"),
        *_together(released, chosen, counts),
    )


def measured_rounds_of(released: Released) -> list[tuple[float, Measurement]]:
    """What the rounds measured of several attributes, with how much each answer differed from the model."""
    return [(done.surprise, m) for done, m in measured_rounds(released.synthesis) if len(m.clique) > 1]


def _telling(measured: Sequence[tuple[float, Measurement]]) -> list[tuple[float, Measurement]]:
    """Those that taught the model most, in the order they were asked."""
    ranked = sorted(range(len(measured)), key=lambda at: -measured[at][0])[:_MOST_CARDS]
    return [measured[at] for at in sorted(ranked)]


def _explained(released: Released) -> str:
    rows = released.manifest.rows
    scaled = ""
    if rows > MOST_ROWS:
        scaled = f" The first {count(MOST_ROWS)} rows are counted, and scaled."
    elif released.manifest.generation.rows is not None:
        scaled = f" Its counts are scaled to the {count(released.total)} rows that the noisy counts tell of."
    return (
        "The synthetic table should agree with a noisy count about as well as the noise allows; one in twenty may lie "
        "outside its range by chance. It may even be closer to the truth than the noisy count, because the model "
        f"reconciles all of them.{scaled}{bias(released)}"
    )


def bias(released: Released) -> str:
    """What bounded persons do to shares, and no error bar shows; nothing where a row is protected."""
    person = released.manifest.privacy.person
    if person is None:
        return ""
    return (
        f" Both count at most {plural(person.max_rows, 'row')} of a person. Where people with more rows differ from "
        "the others, the shares here differ from those of all rows; the ranges show noise alone, not this bias."
    )


def _together(
    released: Released, chosen: Sequence[tuple[float, Measurement]], counts: Mapping[Clique, Floats]
) -> list[Part]:
    if not chosen:
        return []
    rest = len(measured_rounds_of(released)) - len(chosen)
    more = (
        f" The {len(chosen)} that taught the model most are shown; {rest} others are in measurements.parquet."
        if rest
        else ""
    )
    cards = [_card(released, f"together-{at}", m, counts[m.clique]) for at, (_, m) in enumerate(chosen)]
    return [
        tag("h3", "Attributes together"),
        tag(
            "p",
            "Each dot is a group of cells: its noisy count from left to right, the synthetic table's count from bottom "
            "to top, both on a square-root scale. On the line they are equal; between the curves they differ by no "
            "more than 95% of the noise. Where the groups form a grid, only what they tell beyond single attributes "
            f"was measured; the rest of a noisy count is then the synthetic table's own.{more}",
        ),
        tag("div", *cards, class_="grid"),
    ]


def _card(released: Released, name: str, measurement: Measurement, synthetic: Floats) -> Markup:
    sums, sigma = measurement.partition.sum_expected(synthetic), measurement.count_sigma
    noisy = sums + measurement.surprise(sums)
    within = int((np.abs(noisy - sums) <= SURE * sigma).sum())
    title, groups = marginal(measurement.clique), measurement.partition.count
    told = (f"Counts of {title}", f"{plural(groups, 'group')}; {within} within what noise explains.")
    return tag(
        "figure",
        tag("h4", title),
        tag("p", f"{plural(groups, 'group')}, {within} within noise (sd {sigma:,.0f})"),
        scatter(name, told, (noisy, sums), sigma, "measured"),
        fold("The groups that differ most", _worst(released, measurement, synthetic)),
        class_="card",
    )


def _worst(released: Released, measurement: Measurement, synthetic: Floats) -> Markup:
    bars = bars_of(released, measurement, synthetic)
    ranked = sorted(bars, key=lambda bar: -abs(bar.measured - bar.synthetic))[:_LISTED]
    return bar_table(f"{marginal(measurement.clique)}: the groups that differ most", ranked)


def scatter(name: str, told: tuple[str, str], counts: tuple[Floats, Floats], sigma: float, across: str) -> Markup:
    """Counts of cells or groups against the synthetic table's, on a square-root scale: the largest, and it says so.

    Args:
        name: That no other picture of the page has.
        told: Title and description.
        counts: From left to right, and the synthetic table's from bottom to top.
        sigma: Of the noise of the former; without any, no curves show how much of it there is.
        across: What the former are.
    """
    noisy, sums = counts
    largest = np.argsort(-np.maximum(noisy, sums), kind="stable")[:_MOST_POINTS]
    top = float(max(noisy.max(), sums.max(), SURE * sigma)) or 1.0
    left_out = f"the {_MOST_POINTS} largest of {count(noisy.size)}" if noisy.size > _MOST_POINTS else ""
    parts: list[Part] = [
        line((_EDGE, _SIZE - _EDGE), (_SIZE - 4, _SIZE - _EDGE), "l-axis"),
        line((_EDGE, 4), (_EDGE, _SIZE - _EDGE), "l-axis"),
        line((_EDGE, _SIZE - _EDGE), (_SIZE - 4, 4), "l-axis"),
        *(
            tag("path", d=_band(top, sigma, is_upper=is_upper), class_="l-soft", stroke_dasharray="3 3")
            for is_upper in ((True, False) if sigma else ())
        ),
        *(
            tag("circle", cx=_x(x, top), cy=_y(y, top), r=2.6, class_="s-blue", fill_opacity="0.7")
            for x, y in zip(noisy[largest].tolist(), sums[largest].tolist(), strict=True)
        ),
        text_at(_EDGE, _SIZE - 10, "0"),
        text_at(_SIZE - 4, _SIZE - 10, f"{across} {count(top)}", anchor="end"),
        text_at(_EDGE + 6, 13, f"synthetic {count(top)}"),
        *((text_at(_SIZE - 4, _SIZE - _EDGE - 6, left_out, anchor="end"),) if left_out else ()),
    ]
    shown = f" Drawn are {left_out}." if left_out else ""
    return picture(name, (told[0], told[1] + shown), (_SIZE, _SIZE), parts)


def _x(rows: float, top: float) -> float:
    return _EDGE + (_SIZE - 4 - _EDGE) * (max(rows, 0.0) / top) ** 0.5


def _y(rows: float, top: float) -> float:
    return _SIZE - _EDGE - (_SIZE - 4 - _EDGE) * (max(rows, 0.0) / top) ** 0.5


def _band(top: float, sigma: float, *, is_upper: bool) -> str:
    """The curve on which counts differ by as much as noise explains."""
    most = SURE * sigma
    least = [share**2 * (top - most) for share in np.linspace(0, 1, 24).tolist()]
    points = [(rows, rows + most) if is_upper else (rows + most, rows) for rows in least]
    return "M" + " ".join(f"{_x(x, top):.1f} {_y(y, top):.1f}" for x, y in points)
