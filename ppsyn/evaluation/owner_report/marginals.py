"""True counts beside the synthetic table's: attributes alone and together. All of it is private."""

from collections.abc import Mapping, Sequence

import numpy as np

from ppsyn.evaluation.owner_report.findings import Findings, Shown
from ppsyn.evaluation.owner_report.tables import scaled
from ppsyn.reports.attributes import Bar, bar_chart
from ppsyn.reports.elements import fold, legend, section, table
from ppsyn.reports.labels import name_codes, name_group
from ppsyn.reports.marginals import scatter
from ppsyn.reports.markup import Markup, tag
from ppsyn.reports.words import count, finely, marginal, plural
from ppsyn.schemas.columns import ColumnSchema

_MOST_LISTED, _MOST_IN_TABLE = 12, 60


def attributes(found: Findings, columns: Mapping[str, ColumnSchema]) -> Markup:
    """Attributes, one by one."""
    cards = [_attribute(f"attribute-{at}", columns[one.clique[0]], one) for at, one in enumerate(found.singles)]
    return section(
        "attributes",
        "Attributes, one by one",
        legend([("s-pale", "synthetic table"), ("s-orange", "private table, exactly")]),
        tag("div", *cards, class_="packed"),
    )


def _attribute(name: str, column: ColumnSchema, one: Shown) -> Markup:
    made = scaled(one.synthetic, int(one.private.sum()))
    bars = [
        Bar(name_codes(column, [code]), float(real), 0.0, float(synthetic))
        for code, (real, synthetic) in enumerate(zip(one.private.tolist(), made.tolist(), strict=True))
    ]
    told = (f"Counts of {column.name}", f"{plural(len(bars), 'value')}; {finely(one.distance)} of the rows differ.")
    return tag(
        "figure",
        tag("h3", column.name),
        tag("p", f"{plural(len(bars), 'value')}; {finely(one.distance)} of the rows differ"),
        bar_chart(name, told, bars, is_ordered=column.is_ordered),
        fold("In numbers", _numbers(f"Counts of {column.name}", bars[:_MOST_IN_TABLE], len(bars))),
        class_="card",
    )


def _numbers(caption: str, bars: Sequence[Bar], of: int) -> Markup:
    more = "" if len(bars) == of else f"; {len(bars)} of {count(of)}"
    rows = [
        (bar.label, count(bar.measured), count(bar.synthetic), f"{bar.synthetic - bar.measured:+,.0f}") for bar in bars
    ]
    return table(f"{caption}{more}", ("Values", "Private", "Synthetic", "Difference"), rows, numbers=(1, 2, 3))


def together(found: Findings, columns: Mapping[str, ColumnSchema]) -> Markup:
    """Marginals of several attributes."""
    cards = [_card(f"together-{at}", columns, one) for at, one in enumerate(found.shown)]
    return section(
        "together",
        "Attributes together",
        tag(
            "p",
            "Each dot is a cell: its count in the private table from left to right, in the synthetic table from bottom "
            "to top, both on a square-root scale. On the line they are equal. Shown are the marginals that were asked "
            "for, the worst, and pairs that much of the workload holds.",
        ),
        tag("div", *cards, class_="grid"),
    )


def _card(name: str, columns: Mapping[str, ColumnSchema], one: Shown) -> Markup:
    real, made = one.private.astype(np.float64), scaled(one.synthetic, int(one.private.sum()))
    title, cells = marginal(one.clique), one.private.size
    told = (f"Counts of {title}", f"{plural(cells, 'cell')}; {finely(one.distance)} of the rows differ.")
    worst = np.argsort(-np.abs(real - made), kind="stable")[:_MOST_LISTED]
    bars = [
        Bar(name_group(columns, one.clique, np.array([cell], np.int32)), float(real[cell]), 0.0, float(made[cell]))
        for cell in worst.tolist()
    ]
    return tag(
        "figure",
        tag("h3", title),
        tag("p", f"{plural(cells, 'cell')}; {finely(one.distance)} of the rows differ; {one.why}"),
        scatter(name, told, (real, made), 0.0, "private"),
        fold("The cells that differ most", _numbers(f"{title}: the cells that differ most", bars, cells)),
        class_="card",
    )
