"""The figures as a page: one file that needs no other, no script and no network."""

from collections.abc import Iterator, Sequence

from ppsyn.reports.elements import contents, fold, line, picture, section, table, text_at
from ppsyn.reports.markup import Markup, Part, tag
from ppsyn.reports.sheet import sheet
from ppsyn.reports.words import amount, count, cut, finely, listed, marginal, nice_above, plural, share, small
from ppsyn.schemas.manifest import Guarantee
from ppsyn.schemas.quality import MarginalSet, Quality, QualityFigure

_WIDTH, _LABELS, _ROW = 340.0, 158.0, 24.0
_MOST_LISTED = 500


def render(quality: Quality) -> bytes:
    """The page.

    Privacy:
        Claim C6. It is a function of the published figures.
    """
    asked = quality.asked
    return sheet(
        f"{asked.dataset}: quality of release {asked.release}",
        tag("a", "Skip to the figures", href="#figures", class_="skip"),
        tag(
            "header",
            tag("p", "Quality of a differentially private synthetic table", class_="kicker"),
            tag("h1", asked.dataset),
            tag("p", f"Release {asked.release}, measured on {quality.measured_at.date().isoformat()}.", class_="lead"),
            contents({"figures": "The figures", "meaning": "How to read them", "cost": "What they cost"}),
        ),
        tag("main", _figures(quality), _meaning(quality), _cost(quality)),
        tag("footer", f"Run {asked.run}. Made from the published figures alone."),
    )


def told(figure: QualityFigure, one: MarginalSet) -> str:
    """What a figure is about."""
    if len(one.marginals) == 1:
        return marginal(one.marginals[0])
    return f"{one.name}, {figure.statistic}"


def sets_by_name(quality: Quality) -> dict[str, MarginalSet]:
    """What figures are about, by name."""
    return {one.name: one for one in quality.asked.sets}


def _figures(quality: Quality) -> Markup:
    sets = sets_by_name(quality)
    rows = [
        (
            told(f, sets[f.about]),
            count(len(sets[f.about].marginals)),
            finely(f.distance),
            finely(f.lower),
            finely(f.upper),
        )
        for f in quality.figures
    ]
    return section(
        "figures",
        "How far the synthetic table is from the private one",
        tag(
            "p",
            "The share of rows that would have to change their cell for a table of counts to be that of the private "
            "table. 0% is a perfect copy of the counts, 100% has nothing in common with them. The bar is where the "
            "true share lies with a probability of at least 95%.",
        ),
        tag("figure", _chart([(told(f, sets[f.about]), f) for f in quality.figures])),
        table("The same in numbers", ("Tables of counts", "How many", "Share", "From", "To"), rows, range(1, 5)),
        *(_listed(one) for one in quality.asked.sets if len(one.marginals) > 1),
    )


def _listed(one: MarginalSet) -> Markup:
    shown = [marginal(clique) for clique in one.marginals]
    return fold(f"{one.name}: {plural(len(shown), 'table')} of counts", tag("p", listed(shown, _MOST_LISTED)))


def _chart(rows: Sequence[tuple[str, QualityFigure]]) -> Markup:
    top = min(1.0, nice_above(max(figure.upper for _, figure in rows) or 0.01))
    height = len(rows) * _ROW + 24
    parts: list[Part] = [*_axis(top, height)]
    for at, (label, figure) in enumerate(rows):
        y = at * _ROW + _ROW / 2
        parts.append(text_at(_LABELS - 8, y + 4, cut(label, 26), anchor="end"))
        parts.append(line((_x(figure.lower, top), y), (_x(figure.upper, top), y), "l-orange"))
        for end in (figure.lower, figure.upper):
            parts.append(line((_x(end, top), y - 5), (_x(end, top), y + 5), "l-orange"))
        parts.append(tag("circle", cx=_x(figure.distance, top), cy=y, r=2.6, class_="s-blue"))
    description = "; ".join(
        f"{label}: {finely(f.distance)} ({finely(f.lower)} to {finely(f.upper)})" for label, f in rows
    )
    return picture("quality", ("Distances with their error bars", description), (_WIDTH, height), parts, style="middle")


def _axis(top: float, height: float) -> Iterator[Part]:
    for part in (0.0, top / 2, top):
        x = _x(part, top)
        yield line((x, 0), (x, height - 18), "l-axis")
        yield text_at(x, height - 4, share(part), anchor="end" if part == top else "middle")


def _x(part: float, top: float) -> float:
    return _LABELS + (_WIDTH - _LABELS - 6) * min(part, top) / top


def _meaning(quality: Quality) -> Markup:
    rows = quality.rows
    texts = (
        "The private table was compared as it was when the figures were measured. If it has changed since the release, "
        "they tell how far the release is from the table as it is now.",
        "A mean says how good the tables are together; the worst says that none of them is further off. Which one is "
        "the worst is not told: that would cost more.",
        f"The private table has about {count(rows.noisy)} rows; that number has noise of its own, with a standard "
        f"deviation of {count(rows.sigma)}, which the bars take into account.",
        "Each bar holds by itself. Of twenty such bars, one may miss.",
    )
    return section("meaning", "How to read them", tag("ul", *(tag("li", text) for text in texts)))


def _cost(quality: Quality) -> Markup:
    asked, account = quality.asked, quality.account
    folder = f"releases/{asked.dataset}/{asked.release}"
    return section(
        "cost",
        "What they cost, and how to check them",
        tag(
            "p",
            f"Noise was added to every figure before it was published, and the dataset's account was charged first: "
            f"{_amounts(quality.guarantee)}, besides what the release itself had cost. This protects "
            f"{quality.guarantee.unit}. All releases of the dataset may spend rho {amount(account.cap)} together. The "
            f"charges are in the file beside this page; "
            f"{plural(len(quality.figures), 'figure')} and the number of rows were drawn.",
        ),
        tag("pre", tag("code", f"ppsyn audit {folder}")),
    )


def _amounts(guarantee: Guarantee) -> str:
    rho = f"rho {amount(guarantee.rho)}"
    if guarantee.epsilon is None or guarantee.delta is None:
        return rho
    return f"{rho}, which is epsilon {guarantee.epsilon:.3g} at delta {small(guarantee.delta)}"
