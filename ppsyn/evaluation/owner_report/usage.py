"""What the synthetic table is good for: range queries, and classifiers that learn from it. All of it is private."""

from collections.abc import Iterator, Mapping

import numpy as np

from ppsyn.evaluation.owner_report.findings import Classified, Findings, Ranges
from ppsyn.evaluation.queries import RangeQuery
from ppsyn.reports.elements import fold, legend, picture, section, table, text_at
from ppsyn.reports.labels import name_codes
from ppsyn.reports.marginals import scatter
from ppsyn.reports.markup import Markup, Part, tag
from ppsyn.reports.words import count, cut, finely, nice_above
from ppsyn.schemas.columns import ColumnSchema

_MOST_POINTS, _MOST_LISTED = 160, 15
_WIDTH, _ROW = 350.0, 66.0


def ranges(found: Ranges, rows: int, columns: Mapping[str, ColumnSchema]) -> Markup:
    """Range queries."""
    errors = found.errors
    half, tenth = (float(np.quantile(errors, part)) for part in (0.5, 0.9))
    worst = [int(at) for at in np.argsort(-errors, kind="stable")[:_MOST_LISTED]]
    listed = [
        (_told(found.queries[at], columns), finely(float(found.private[at])), finely(float(found.synthetic[at])))
        for at in worst
    ]
    return section(
        "ranges",
        "Range queries",
        tag(
            "p",
            f"Which share of the rows has values in three given ranges? {count(len(found.queries))} such questions, "
            f"drawn at random, were put to both tables. The answers differ by {finely(float(errors.mean()))} of all "
            f"rows on average, by at most {finely(half)} for half of them and {finely(tenth)} for nine of ten, and by "
            f"{finely(float(errors.max()))} at worst.",
        ),
        tag("div", _card(found, rows), class_="grid"),
        fold(
            "The questions that differ most",
            table("Shares of all rows", ("Rows with", "Private", "Synthetic"), listed, (1, 2)),
        ),
    )


def _told(query: RangeQuery, columns: Mapping[str, ColumnSchema]) -> str:
    parts = [
        f"{name}: {name_codes(columns[name], list(range(low, high + 1)))}"
        for name, low, high in zip(query.clique, query.lows, query.highs, strict=True)
        if high - low + 1 < columns[name].size
    ]
    return "; ".join(parts) or "any values"


def _card(found: Ranges, rows: int) -> Markup:
    shown = np.linspace(0, len(found.queries) - 1, min(_MOST_POINTS, len(found.queries))).astype(int)
    told = (
        "Answers of both tables to range queries",
        f"{len(shown)} questions; the mean difference of all is {finely(float(found.errors.mean()))}.",
    )
    more = "" if len(shown) == len(found.queries) else f" {len(shown)} of them are shown."
    return tag(
        "figure",
        tag("p", f"Each dot is a question; on the line both tables answer it alike. Square-root scale.{more}"),
        scatter("ranges", told, (found.private[shown] * rows, found.synthetic[shown] * rows), 0.0, "private"),
        class_="card",
    )


def classifiers(found: Findings) -> Markup:
    """Classifiers that learned from synthetic rows, tested on real ones."""
    rows = [
        (f"{one.target.attribute}: {one.target.name}", *(finely(x) for x in (one.synthetic, one.private, one.constant)))
        for one in found.classified
    ]
    return section(
        "classifiers",
        "Classifiers that learned from synthetic rows",
        tag(
            "p",
            "A classifier (a linear support vector machine) learns from synthetic rows to tell one attribute from all "
            f"others, and is tested on {count(found.tested)} rows of the private table. Beside it, one that learned "
            "from as many other rows of the private table, and one that always says what is commoner. Attributes with "
            "more than two values were cut in two by the synthetic table.",
        ),
        tag(
            "figure",
            _bars(found.classified),
            legend(
                [
                    ("s-blue", "learned from synthetic rows"),
                    ("s-pale", "learned from private rows"),
                    ("s-grey", "always the commoner"),
                ]
            ),
        ),
        table(
            "Share of private rows that are classified wrongly",
            ("Is it", "Synthetic", "Private", "Constant"),
            rows,
            (1, 2, 3),
        ),
    )


def _bars(classified: tuple[Classified, ...]) -> Markup:
    top = nice_above(max(0.01, *(max(one.synthetic, one.private, one.constant) for one in classified)))
    parts = [part for at, one in enumerate(classified) for part in _judged(at * _ROW, one, top)]
    height = len(classified) * _ROW
    description = "; ".join(
        f"{one.target.attribute}: {finely(one.synthetic)} wrong after synthetic rows, {finely(one.private)} after real"
        for one in classified
    )
    return picture("classifiers", ("Errors of classifiers", description), (_WIDTH, height), parts, style="middle")


def _judged(y: float, one: Classified, top: float) -> Iterator[Part]:
    yield text_at(0, y + 12, cut(f"{one.target.attribute}: {one.target.name}", 52), style="strong")
    for at, (error, style) in enumerate(((one.synthetic, "s-blue"), (one.private, "s-pale"), (one.constant, "s-grey"))):
        width = (_WIDTH - 60) * error / top
        yield tag("rect", x=0, y=y + 18 + at * 14, width=max(width, 0.5), height=11, class_=style)
        yield text_at(width + 5, y + 27 + at * 14, finely(error))
