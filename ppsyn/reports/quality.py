"""The page of figures about a release that its account has paid for."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ppsyn.reports.charts import Interval, interval_chart
from ppsyn.reports.formatting import marginal_name
from ppsyn.reports.pages import render_page
from ppsyn.schemas.quality import MarginalSet, Quality, QualityFigure


@dataclass(frozen=True, slots=True)
class Page:
    """What the template shows.

    Attributes:
        figures: What each figure is about, of how many marginals, and the figure.
    """

    quality: Quality
    figures: Sequence[tuple[str, int, QualityFigure]]
    chart: Markup


def render(quality: Quality) -> bytes:
    """The page.

    Privacy:
        Claim C6. It is a function of the published figures.
    """
    figures = name_figures(quality)
    intervals = [Interval(name, one.distance, one.lower, one.upper) for name, _, one in figures]
    chart = interval_chart("quality", "Distances with their error bars", intervals)
    return render_page("quality.html.j2", Page(quality, figures, chart))


def name_figures(quality: Quality) -> list[tuple[str, int, QualityFigure]]:
    """What each figure is about, of how many marginals, and the figure."""
    sets = {one.name: one for one in quality.request.sets}
    return [(_name(one, sets[one.about]), len(sets[one.about].marginals), one) for one in quality.figures]


def _name(figure: QualityFigure, about: MarginalSet) -> str:
    if len(about.marginals) == 1:
        return marginal_name(about.marginals[0])
    return f"{about.name}, {figure.statistic}"
