"""The owner's report: a page that compares a release with its private table. All of it is private."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from markupsafe import Markup

from ppsyn.arrays import Floats
from ppsyn.domain import Clique
from ppsyn.evaluation.comparison import (
    ClassifierErrors,
    Comparison,
    MarginalComparison,
    RangeComparison,
    scale_counts,
)
from ppsyn.evaluation.metrics import RangeQuery
from ppsyn.quality.questions import expected_reach, sets_of
from ppsyn.reports import charts
from ppsyn.reports.charts import Bar, Caption
from ppsyn.reports.formatting import exact_percent, marginal_name, name_codes, name_group, plural
from ppsyn.reports.pages import render_page
from ppsyn.reports.release import Legend, heat_legend
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.manifest import Manifest
from ppsyn.synthesis import Synthesis

_COST_DIVISOR = 50
"""The paid figures that the page offers cost this part of what the release cost."""
_VALUES_IN_TABLE, _WORST_CELLS, _WORST_QUERIES, _LISTED, _DOTS = 60, 12, 15, 150, 160


@dataclass(frozen=True, slots=True, repr=False)
class Card:
    """A chart of a marginal, with its numbers.

    Attributes:
        cells: How many there are.
        why: What it is shown for.
        bars: The cells that the table below the chart lists.
    """

    title: str
    cells: int
    distance: float
    why: str
    chart: Markup
    bars: Sequence[Bar]


@dataclass(frozen=True, slots=True, repr=False)
class Summary:
    """Errors in short: fractions of rows."""

    mean: float
    median: float
    ninth: float
    worst: float


@dataclass(frozen=True, slots=True, repr=False)
class Ranges:
    """Range queries.

    Attributes:
        queries: How many there are.
        shown: How many of them are drawn.
        worst: Queries with the fraction of rows in the private and in the synthetic table.
    """

    queries: int
    shown: int
    errors: Summary
    chart: Markup
    worst: Sequence[tuple[str, float, float]]


@dataclass(frozen=True, slots=True, repr=False)
class Offer:
    """Figures that may be published.

    Attributes:
        rho: What they would cost.
        part: That is which fraction of the release's cost.
        reach: How far their error bars would reach.
        release: Where the release is, as the owner calls it.
    """

    rho: float
    part: float
    reach: float
    release: str


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """What the template shows."""

    manifest: Manifest
    rows: int
    offer: Offer
    attributes: Sequence[Card]
    attribute_errors: Summary
    together: Sequence[Card]
    heat_map: Markup
    heat_legend: Sequence[Legend]
    workload: int
    workload_errors: Summary
    histogram: Markup
    lists: Sequence[tuple[str, Sequence[tuple[str, float]], int]]
    ranges: Ranges | None
    classifiers: Sequence[ClassifierErrors]
    classifier_chart: Markup | None
    tested: int

    @property
    def most_errors_added(self) -> float:
        """By how much a classifier errs more after synthetic rows than after private ones, at most."""
        return max(one.synthetic - one.private for one in self.classifiers)


def render(manifest: Manifest, synthesis: Synthesis, found: Comparison, release: str) -> bytes:
    """The page.

    Privacy:
        It holds exact counts of the private table, and is for the eyes of the data's owner.

    Args:
        manifest: Of the release.
        synthesis: The release, for the unit and the cost of what is offered.
        found: The comparison.
        release: Where the release is, as the owner calls it.
    """
    columns = {column.name: column for column in manifest.table.columns}
    cliques: list[Clique] = [*((name,) for name in columns), *combinations(columns, 2)]
    errors = {clique: found.distances.get(clique) for clique in cliques}
    goal = _summarize(found.of(found.workload))
    page = Page(
        manifest=manifest,
        rows=found.rows,
        offer=_offer(manifest, synthesis, found, release),
        attributes=[_attribute(f"attribute-{at}", columns, one) for at, one in enumerate(found.singles)],
        attribute_errors=_summarize(found.of([one.clique for one in found.singles])),
        together=[_joint(f"together-{at}", columns, one) for at, one in enumerate(found.shown)],
        heat_map=charts.heat_map(list(columns), errors, "compared"),
        heat_legend=heat_legend(errors, "too many cells to be compared"),
        workload=len(found.workload),
        workload_errors=goal,
        histogram=_histogram(found.of(found.workload), goal),
        lists=list(_lists(found)),
        ranges=None if found.ranges is None else _ranges(found.ranges, found.rows, columns),
        classifiers=found.classified,
        classifier_chart=_classifier_chart(found.classified) if found.classified else None,
        tested=found.tested,
    )
    return render_page("owner_report.html.j2", page, "ppsyn.evaluation")


def _offer(manifest: Manifest, synthesis: Synthesis, found: Comparison, release: str) -> Offer:
    person = manifest.privacy.person
    figures = sum(len(one.statistics) for one in sets_of(synthesis.domain, manifest.algorithm.workload))
    rho = float(manifest.guarantee.rho) / _COST_DIVISOR
    reach = expected_reach(rho, figures, 1 if person is None else person.max_rows, found.rows)
    return Offer(rho, 1 / _COST_DIVISOR, reach, release)


def _summarize(errors: Floats) -> Summary:
    median, ninth = (float(np.quantile(errors, part)) for part in (0.5, 0.9))
    return Summary(float(errors.mean()), median, ninth, float(errors.max()))


# Marginals


def _attribute(name: str, columns: Mapping[str, ColumnSchema], one: MarginalComparison) -> Card:
    column, made = columns[one.clique[0]], scale_counts(one.synthetic, int(one.private.sum()))
    bars = [
        Bar(name_codes(column, [code]), float(real), 0.0, float(synthetic))
        for code, (real, synthetic) in enumerate(zip(one.private.tolist(), made.tolist(), strict=True))
    ]
    caption = Caption(
        f"Counts of {column.name}", f"{plural(len(bars), 'value')}; {exact_percent(one.distance)} of the rows differ."
    )
    chart = charts.bar_chart(name, caption, bars, is_ordered=column.is_ordered)
    return Card(column.name, len(bars), one.distance, one.why, chart, bars[:_VALUES_IN_TABLE])


def _joint(name: str, columns: Mapping[str, ColumnSchema], one: MarginalComparison) -> Card:
    real, made = one.private.astype(np.float64), scale_counts(one.synthetic, int(one.private.sum()))
    title, cells = marginal_name(one.clique), one.private.size
    caption = Caption(
        f"Counts of {title}", f"{plural(cells, 'cell')}; {exact_percent(one.distance)} of the rows differ."
    )
    worst = np.argsort(-np.abs(real - made), kind="stable")[:_WORST_CELLS]
    bars = [
        Bar(name_group(columns, one.clique, np.array([cell], np.int32)), float(real[cell]), 0.0, float(made[cell]))
        for cell in worst.tolist()
    ]
    chart = charts.scatter(name, caption, (real, made), 0.0, "private")
    return Card(title, cells, one.distance, one.why, chart, bars)


def _histogram(errors: Floats, summary: Summary) -> Markup:
    caption = Caption(
        "How many marginals of the workload have which error",
        f"The mean error is {exact_percent(summary.mean)}, the median {exact_percent(summary.median)}, the largest "
        f"{exact_percent(summary.worst)}.",
    )
    return charts.histogram("histogram", caption, errors, "error")


def _lists(found: Comparison) -> Iterator[tuple[str, list[tuple[str, float]], int]]:
    """Titles with marginals and their errors, largest first, and how many there are."""
    singles = [one.clique for one in found.singles]
    for title, cliques in (("Attributes", singles), ("Pairs", found.pairs), ("The workload", list(found.workload))):
        ranked = sorted(cliques, key=lambda clique: -found.distances[clique])
        if ranked:
            rows = [(marginal_name(clique), found.distances[clique]) for clique in ranked[:_LISTED]]
            yield title, rows, len(ranked)


# Uses


def _ranges(found: RangeComparison, rows: int, columns: Mapping[str, ColumnSchema]) -> Ranges:
    errors, queries = _summarize(found.errors), len(found.queries)
    drawn = np.linspace(0, queries - 1, min(_DOTS, queries)).astype(int)
    caption = Caption(
        "Answers of both tables to range queries",
        f"{len(drawn)} queries; the mean difference of all is {exact_percent(errors.mean)}.",
    )
    counts = (found.private[drawn] * rows, found.synthetic[drawn] * rows)
    worst = [int(at) for at in np.argsort(-found.errors, kind="stable")[:_WORST_QUERIES]]
    return Ranges(
        queries=queries,
        shown=len(drawn),
        errors=errors,
        chart=charts.scatter("ranges", caption, counts, 0.0, "private"),
        worst=[
            (_describe(found.queries[at], columns), float(found.private[at]), float(found.synthetic[at]))
            for at in worst
        ],
    )


def _describe(query: RangeQuery, columns: Mapping[str, ColumnSchema]) -> str:
    parts = [
        f"{name}: {name_codes(columns[name], list(range(low, high + 1)))}"
        for name, low, high in zip(query.clique, query.lows, query.highs, strict=True)
        if high - low + 1 < columns[name].size
    ]
    return "; ".join(parts) or "any values"


def _classifier_chart(classified: Sequence[ClassifierErrors]) -> Markup:
    description = "; ".join(
        f"{one.target.attribute}: {exact_percent(one.synthetic)} wrong after synthetic rows, "
        f"{exact_percent(one.private)} after private rows"
        for one in classified
    )
    groups = [
        (
            f"{one.target.attribute}: {one.target.name}",
            ((one.synthetic, "s-blue"), (one.private, "s-pale"), (one.constant, "s-grey")),
        )
        for one in classified
    ]
    return charts.grouped_bars("classifiers", Caption("Errors of classifiers", description), groups)
