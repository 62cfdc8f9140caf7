"""The head of the page: what was released, and under which guarantee, in plain words."""

import math
from collections.abc import Iterator

from ppsyn.reports.elements import paragraphs, section, table
from ppsyn.reports.markup import Markup, Part, tag
from ppsyn.reports.released import Released
from ppsyn.reports.words import amount, count, marginal, plural, small
from ppsyn.schemas.columns import BooleanColumn, CategoricalColumn, ColumnSchema
from ppsyn.schemas.manifest import Guarantee

_LARGE_FACTOR = 1000
"""From here on the digits of a factor mean nothing."""


def headline(released: Released) -> Markup:
    """The title, and the facts at a glance."""
    manifest, hold = released.manifest, released.granted
    begun = "" if hold is None else f", begun on {hold.at.date().isoformat()}"
    return tag(
        "div",
        tag("p", "Differentially private synthetic table", class_="kicker"),
        tag("h1", manifest.dataset),
        tag("p", f"Release {manifest.run}{begun}.", class_="lead"),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", *told)) for name, told in _facts(released)), class_="facts"),
    )


def _facts(released: Released) -> Iterator[tuple[str, list[Part]]]:
    manifest, guarantee = released.manifest, released.manifest.guarantee
    yield "Synthetic rows", [count(manifest.rows), tag("small", _origin_of_rows(released))]
    yield "Columns", [str(len(manifest.table.columns)), tag("small", "described from public knowledge")]
    if guarantee.epsilon is not None and guarantee.delta is not None:
        note = f"at delta {small(guarantee.delta)}; zCDP rho {amount(guarantee.rho)}"
        yield "Privacy spent", [f"epsilon {guarantee.epsilon:.3g}", tag("small", note)]
    else:
        yield "Privacy spent", [f"rho {amount(guarantee.rho)}", tag("small", "zero-concentrated")]
    yield "Protects", [*_unit(released)]
    results = released.validation.results
    held = sum(result.success for result in results)
    yield "Checks of the table", [f"{held} of {len(results)} hold", tag("small", "against its schema")]


def _origin_of_rows(released: Released) -> str:
    return "estimated from noisy counts" if released.manifest.generation.rows is None else "as many as were asked for"


def _unit(released: Released) -> Iterator[Part]:
    person = released.manifest.privacy.person
    yield "each row" if person is None else "each person"
    yield tag("small", "of the private table" if person is None else f"with at most {plural(person.max_rows, 'row')}")


def guarantee(released: Released) -> Markup:
    """What was released, what is promised and what is not."""
    return section(
        "guarantee",
        "What this is, and what it promises",
        paragraphs(
            "Every row of the released table is made up. Rows were drawn from a statistical model, and the model was "
            "fitted to counts of the private table to which random noise had been added. What to count was decided by "
            "noisy draws, too. Nothing else about the private table was used, not even its number of rows. This page "
            "is computed from the released files alone."
        ),
        tag("div", tag("p", _promise(released.manifest.guarantee, _who(released))), class_="promise"),
        tag("h3", "What it does not promise"),
        tag("ul", *(tag("li", text) for text in _limits(released))),
        tag("h3", "The columns"),
        _columns(released),
    )


def _who(released: Released) -> str:
    person = released.manifest.privacy.person
    if person is None:
        return "any one row"
    kept = "" if person.max_rows == 1 else f" (of a person with more rows, {person.max_rows} chosen at random count)"
    return f"all rows of any one person{kept}"


def _promise(promised: Guarantee, who: str) -> str:
    if promised.epsilon is None or promised.delta is None:
        return (
            f"Had {who} not been in the private table, every outcome of this release would have been nearly as "
            f"likely: it satisfies zero-concentrated differential privacy with rho {amount(promised.rho)}."
        )
    factor = math.exp(min(promised.epsilon, 700.0))
    told = f"{factor:.3g}" if factor < _LARGE_FACTOR else f"{factor:.1e}"
    return (
        f"Had {who} not been in the private table, nothing that can be seen in this release would have been more than "
        f"{told} times as likely, or less likely by more than the same factor, give or take a probability of "
        f"{small(promised.delta)}. This is differential privacy with epsilon {promised.epsilon:.4g} and delta "
        f"{small(promised.delta)}."
    )


def _limits(released: Released) -> Iterator[str]:
    yield (
        "It does not hide what is true of many: if a trait goes with another in the population, the synthetic table "
        "may show it, and so may a table without any one of its members."
    )
    if released.manifest.privacy.person is None:
        yield "It protects a row. Somebody with several rows in the private table is protected less, as is a group."
    else:
        yield "It protects one person. A family, or a person under several names, is protected less."
    yield (
        "A synthetic row may equal a real one by chance. That tells no more about the real row than the promise allows."
    )
    yield "Other releases from the same people add to what is spent; see what is left of their account below."
    yield "It is about privacy. How far the numbers can be trusted is the second half of this page."


def _columns(released: Released) -> Markup:
    schema, workload = released.manifest.table, released.manifest.method.workload
    rows = [
        (column.name, column.kind, _values(column), "yes" if column.nullable else "no") for column in schema.columns
    ]
    left_out = f" Left out on purpose: {', '.join(schema.excluded)}." if schema.excluded else ""
    goal = "" if workload.cliques is None else f" Meant to be right about: {_cliques(workload.cliques)}."
    return table(
        f"The columns, as the public schema describes them.{left_out}{goal}",
        ("Column", "Kind", "Values", "May be missing"),
        rows,
    )


def _cliques(cliques: tuple[tuple[str, ...], ...]) -> str:
    shown = "; ".join(marginal(clique) for clique in cliques[:8])
    return shown if len(cliques) <= 8 else f"{shown}; and {len(cliques) - 8} more"


def _values(column: ColumnSchema) -> str:
    if isinstance(column, CategoricalColumn | BooleanColumn):
        return plural(column.value_count, "value")
    return f"{column.rule.removeprefix('expected values from ')}, in {plural(column.value_count, 'bin')}"
