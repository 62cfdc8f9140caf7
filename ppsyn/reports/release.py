"""The report of a release: what its page shows, made from released values alone."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from markupsafe import Markup
from pydantic import JsonValue

from ppsyn.arrays import Floats
from ppsyn.domain import Clique
from ppsyn.mechanisms.loop import Round
from ppsyn.model.graphical_model import GraphicalModel
from ppsyn.model.measurement import Measurement
from ppsyn.reports import charts
from ppsyn.reports.charts import Bar, Caption
from ppsyn.reports.formatting import amount, join_names, marginal_name, percent, plural
from ppsyn.reports.pages import render_page
from ppsyn.reports.released import (
    MAX_COUNTED_ROWS,
    Released,
    RoundStats,
    Spending,
    expected_errors,
    finest_measurement,
    measured_bars,
    measured_rounds,
    model_edges,
    round_stats,
    split_spending,
    synthetic_counts,
)
from ppsyn.schemas.columns import BooleanColumn, CategoricalColumn, ColumnSchema
from ppsyn.schemas.manifest import Guarantee, ValidationResult

_LARGE_FACTOR = 1000
"""From here on the digits of a factor mean nothing."""
_MAX_EPSILON = 700.0
"""Beyond it, the factor is no number."""
_CARDS, _WORST_GROUPS, _GROUPS_IN_TABLE, _LISTED = 24, 8, 60, 150
_SMALLEST_ERROR = 0.005
"""Two refits settle nothing below it."""


@dataclass(frozen=True, slots=True)
class Legend:
    """What a colour of a chart means: the class of a swatch, and a text."""

    style: str
    text: str


@dataclass(frozen=True, slots=True)
class Card:
    """A chart of a marginal, with its numbers.

    Attributes:
        bars: The groups that the table below the chart lists.
        groups: How many groups there are.
        within: How many of them noise explains.
        sigma: Standard deviation of the noise of a count.
    """

    title: str
    chart: Markup
    bars: Sequence[Bar]
    groups: int
    within: int
    sigma: float


@dataclass(frozen=True, slots=True)
class Trust:
    """Errors to be expected of attributes and pairs.

    Attributes:
        known: Titles with marginals and their errors, smallest first, and how many there are.
        unknown: Pairs that were never measured together.
    """

    chart: Markup
    legend: Sequence[Legend]
    known: Sequence[tuple[str, Sequence[tuple[Clique, str]], int]]
    unknown: Sequence[Clique]


@dataclass(frozen=True, slots=True)
class Page:
    """What the template shows. Fractions are of all rows."""

    released: Released
    report: str
    factor: str | None
    column_values: Mapping[str, str]
    rules: Sequence[tuple[str, str, bool]]
    spending: Spending
    account_bar: Markup
    account_legend: Sequence[Legend]
    release_bar: Markup
    release_legend: Sequence[Legend]
    most_rounds: int
    rounds: Sequence[RoundStats]
    round_chart: Markup | None
    most_counted: int
    attributes: Sequence[Card]
    together: Sequence[Card]
    more_together: int
    trust: Trust
    last_round_error: tuple[float, float] | None
    edges: Sequence[charts.Edge]
    independent: Sequence[str]
    graph: Markup
    checks: Sequence[tuple[str, str, bool]]
    passed: int
    most_listed: int = _LISTED

    @property
    def max_rows(self) -> int | None:
        """How many rows of a person count, where persons are protected."""
        person = self.released.manifest.privacy.person
        return None if person is None else person.max_rows


def render(released: Released, name: str) -> bytes:
    """The report of a release.

    Privacy:
        Claim C6. It is a function of the files that are published beside it.

    Args:
        released: The release.
        name: The file that it becomes, whose digest it cannot hold.
    """
    manifest, synthesis = released.manifest, released.synthesis
    spending = split_spending(released.charges)
    rounds = round_stats(released, spending)
    shown, rest = _most_informative(measured_rounds(synthesis))
    singles: list[Clique] = [(name,) for name in synthesis.domain.names]
    counts = synthetic_counts(released, dict.fromkeys([*singles, *(m.clique for m in shown)]))
    edges = model_edges(synthesis.model)
    related = {name for edge in edges for name in (edge.first, edge.second)}
    account_legend, account_bar = _account_bar(manifest.account.cap, manifest.guarantee.rho)
    release_legend, release_bar = _release_bar(spending, manifest.guarantee.rho)
    kept = [one for one in released.validation.results if one.about in ("rules", "follows")]
    checks = [(one.column or "the table", _expectation(one), one.success) for one in released.validation.results]
    page = Page(
        released=released,
        report=name,
        factor=_factor(manifest.together),
        column_values={column.name: _describe_values(column) for column in manifest.table.columns},
        rules=[(one.column or "", _rule(one), one.success) for one in kept],
        spending=spending,
        account_bar=account_bar,
        account_legend=account_legend,
        release_bar=release_bar,
        release_legend=release_legend,
        most_rounds=charts.MOST_ROUNDS,
        rounds=rounds,
        round_chart=_round_chart(rounds, released.total) if rounds else None,
        most_counted=MAX_COUNTED_ROWS,
        attributes=list(_attribute_cards(released, counts)),
        together=[_joint_card(released, f"together-{at}", m, counts[m.clique]) for at, m in enumerate(shown)],
        more_together=rest,
        trust=_trust(synthesis.domain.names, expected_errors(synthesis)),
        last_round_error=_last_round_error(rounds, released.total),
        edges=edges,
        independent=[name for name in synthesis.domain.names if name not in related],
        graph=charts.model_graph(_around_tree(synthesis.model), edges),
        checks=checks,
        passed=sum(passed for _, _, passed in checks),
    )
    return render_page("release.html.j2", page)


# The guarantee


def _factor(guarantee: Guarantee) -> str | None:
    """By how much the probability of an outcome may change: the exponential of epsilon."""
    if guarantee.epsilon is None:
        return None
    factor = math.exp(min(guarantee.epsilon, _MAX_EPSILON))
    return f"{factor:.3g}" if factor < _LARGE_FACTOR else f"{factor:.1e}"


def _describe_values(column: ColumnSchema) -> str:
    if isinstance(column, CategoricalColumn | BooleanColumn):
        return plural(column.value_count, "value")
    return f"{column.rule.removeprefix('expected values from ')}, in {plural(column.value_count, 'bin')}"


# The budget


def _account_bar(cap: Fraction, rho: Fraction) -> tuple[list[Legend], Markup]:
    """This release beside all others together: a release says nothing of what others have spent."""
    others = cap - rho
    parts = [
        ("s-blue", f"This release: {amount(rho)} ({percent(rho / cap)})", rho),
        ("s-line", f"All other releases, past and future: {amount(others)} ({percent(others / cap)})", others),
    ]
    shown = [part for part in parts if part[2] > 0]
    caption = Caption(
        "The account of this dataset", f"Of rho {amount(cap)}: {'; '.join(text for _, text, _ in shown)}."
    )
    bar = charts.stacked_bar("account", caption, [(style, part) for style, _, part in shown])
    return [Legend(style, text) for style, text, _ in shown], bar


def _release_bar(spending: Spending, rho: Fraction) -> tuple[list[Legend], Markup]:
    parts = (
        ("s-blue", "Initialization, single attributes", spending.initial),
        ("s-orange", "Selections", spending.select),
        ("s-pale", "Measurements of the rounds", spending.measure),
    )
    legend = [Legend(style, f"{text}: {amount(part)} ({percent(part / rho)})") for style, text, part in parts]
    bars = [("s-blue", spending.initial)]
    bars += [bar for one in spending.rounds for bar in (("s-orange", one.select), ("s-pale", one.measure))]
    description = f"{'; '.join(one.text for one in legend)}; {plural(len(spending.rounds), 'round')}."
    return legend, charts.stacked_bar("spending", Caption("This release, question by question", description), bars)


# Rounds


def _round_chart(rounds: Sequence[RoundStats], total: float) -> Markup:
    return charts.round_chart(
        [charts.RoundBar(one.number, one.before / total, one.after / total, one.noise / total) for one in rounds]
    )


def _last_round_error(rounds: Sequence[RoundStats], total: float) -> tuple[float, float] | None:
    """Between which fractions the marginal was wrong that the last selection took for the worst."""
    if not rounds:
        return None
    last = rounds[-1]
    return max(0.0, last.before - last.noise) / total, last.before / total


# Counts


def _most_informative(rounds: Sequence[tuple[Round, Measurement]]) -> tuple[list[Measurement], int]:
    """The measurements of several attributes that changed the model most, in their order; and how many others."""
    joint = [(done.distance, measurement) for done, measurement in rounds if len(measurement.clique) > 1]
    ranked = sorted(range(len(joint)), key=lambda at: -joint[at][0])[:_CARDS]
    return [joint[at][1] for at in sorted(ranked)], len(joint) - len(ranked)


def _attribute_cards(released: Released, counts: Mapping[Clique, Floats]) -> Iterator[Card]:
    """A card for each attribute that was measured alone."""
    for number, column in enumerate(released.manifest.table.columns):
        measurement = finest_measurement(released.synthesis.measurements, (column.name,))
        if measurement is None:
            continue
        bars = [
            Bar(bar.label.removeprefix(f"{column.name}: "), bar.measured, bar.deviation, bar.synthetic)
            for bar in measured_bars(released.columns, measurement, counts[column.name,])
        ]
        within = sum(bar.is_covered for bar in bars)
        caption = Caption(
            f"Counts of {column.name}",
            f"{plural(len(bars), 'group')} of values; noise explains the difference in {within} of them.",
        )
        chart = charts.bar_chart(f"attribute-{number}", caption, bars, is_ordered=column.is_ordered)
        yield Card(column.name, chart, bars[:_GROUPS_IN_TABLE], len(bars), within, measurement.count_sigma)


def _joint_card(released: Released, name: str, measurement: Measurement, synthetic: Floats) -> Card:
    bars = measured_bars(released.columns, measurement, synthetic)
    within = sum(bar.is_covered for bar in bars)
    title = marginal_name(measurement.clique)
    caption = Caption(
        f"Counts of {title}", f"{plural(len(bars), 'group')}; noise explains the difference in {within} of them."
    )
    counts = (np.array([bar.measured for bar in bars]), np.array([bar.synthetic for bar in bars]))
    chart = charts.scatter(name, caption, counts, measurement.count_sigma, "measured")
    worst = sorted(bars, key=lambda bar: -abs(bar.measured - bar.synthetic))[:_WORST_GROUPS]
    return Card(title, chart, worst, len(bars), within, measurement.count_sigma)


# Errors to be expected


def heat_legend(errors: Mapping[Clique, float | None], unknown_as: str) -> list[Legend]:
    """What the colours of a heat map mean, and what is said of pairs that are not known."""
    edges = [f"{limit:.0%}" for limit in charts.ERROR_LIMITS]
    between = [f"{low} to {high}" for low, high in pairwise(edges)]
    texts = [f"under {edges[0]}", *between, f"{edges[-1]} or more"]
    legend = [Legend(f"e{level}", text) for level, text in enumerate(texts)]
    return [*legend, Legend("unknown", f"struck out: {unknown_as}")] if None in errors.values() else legend


def _trust(names: Sequence[str], errors: Mapping[Clique, float | None]) -> Trust:
    known = sorted(((clique, error) for clique, error in errors.items() if error is not None), key=lambda one: one[1])
    lists: list[tuple[str, list[tuple[Clique, str]], int]] = []
    for title, degree in (("Attributes", 1), ("Pairs that were measured together", 2)):
        rows = [(clique, _error(error)) for clique, error in known if len(clique) == degree]
        if rows:
            lists.append((title, rows[:_LISTED], len(rows)))
    return Trust(
        chart=charts.heat_map(names, errors, "measured together"),
        legend=heat_legend(errors, "never measured together"),
        known=lists,
        unknown=[clique for clique, error in errors.items() if error is None],
    )


def _error(misplaced: float) -> str:
    """A fraction of rows, unless it is so small that two refits do not settle it."""
    return percent(misplaced) if misplaced >= _SMALLEST_ERROR else f"under {percent(_SMALLEST_ERROR)}"


# The model, and the checks


def _around_tree(model: GraphicalModel) -> list[str]:
    """The attributes in the order of the junction tree, so that related ones stand near each other."""
    return list(dict.fromkeys(name for node in model.tree.nodes for name in node))


def _expectation(result: ValidationResult) -> str:
    match result.about:
        case "columns":
            return "It has the columns of the schema, in order"
        case "dtype":
            return f"Its type is {join_names(_texts(result.kwargs.get('value_set')))}"
        case "nulls":
            return "No value is missing"
        case "rules" | "follows":
            return f"No row breaks the rule: {_rule(result)}"
        case "values" if "value_set" in result.kwargs:
            return f"Every value is one of {join_names(_texts(result.kwargs['value_set']))}"
        case "values":
            return f"Every value lies from {result.kwargs.get('min_value')} to {result.kwargs.get('max_value')}"


def _rule(result: ValidationResult) -> str:
    words = str(result.kwargs.get("rule"))
    return f"{result.column} {words}" if result.about == "follows" else words


def _texts(values: JsonValue) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else [str(values)]
