"""How far all marginals are off: as a heat map, as a distribution, and in a list. All of it is private."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.domain import Clique
from ppsyn.evaluation.owner_report.findings import Findings
from ppsyn.reports.elements import fold, line, picture, section, table, text_at
from ppsyn.reports.heatmap import heat_legend, heat_map
from ppsyn.reports.markup import Markup, Part, tag
from ppsyn.reports.trust import Trust
from ppsyn.reports.words import count, finely, marginal, nice_above, plural, share

_BINS, _MOST_LISTED = 24, 150
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 350.0, 190.0, 34.0, 156.0, 10.0


def distances(found: Findings, names: Sequence[str]) -> Markup:
    """The section."""
    cliques: list[Clique] = [*((name,) for name in names), *combinations(names, 2)]
    trusts = [Trust(clique, found.distances.get(clique)) for clique in cliques]
    return section(
        "distances",
        "How far all marginals are off",
        tag(
            "p",
            "Of every attribute (the diagonal) and every pair: the share of rows that are in another cell than in the "
            "private table. Unlike the heat map of the public report, which tells what the noise is expected to do, "
            "this is the whole error, of merging and of dependencies that were never measured as well.",
        ),
        tag(
            "figure",
            heat_map(names, trusts, "compared"),
            heat_legend(trusts, "too many cells to be compared"),
            tag("figcaption", "A name stands for the row to its left and for the column below it."),
        ),
        tag("h3", f"The workload: {plural(len(found.workload), 'marginal')}"),
        tag("p", _summary(found.of(found.workload))),
        tag("figure", _histogram(found.of(found.workload))),
        *_lists(found),
    )


def _summary(errors: Floats) -> str:
    half, tenth = (float(np.quantile(errors, part)) for part in (0.5, 0.9))
    return (
        f"On average {finely(float(errors.mean()))} of the rows are misplaced, in half of the marginals at most "
        f"{finely(half)}, in nine of ten at most {finely(tenth)}, and in the worst {finely(float(errors.max()))}."
    )


def _histogram(errors: Floats) -> Markup:
    top = nice_above(max(1e-4, float(errors.max())))
    counts, _ = np.histogram(errors, _BINS, (0.0, top))
    most = int(counts.max())
    slot = (_WIDTH - _LEFT - 8) / _BINS
    parts: list[Part] = [*_axes(top, most)]
    for at, number in enumerate(counts.tolist()):
        height = (_BOTTOM - _TOP) * number / most
        parts.append(
            tag("rect", x=_LEFT + at * slot, y=_BOTTOM - height, width=slot * 0.86, height=height, class_="s-blue")
        )
    told = ("How many marginals of the workload are off by how much", _summary(errors))
    return picture("histogram", told, (_WIDTH, _HEIGHT), parts, style="middle")


def _axes(top: float, most: int) -> Iterator[Part]:
    for part in (0.0, top / 2, top):
        x = _LEFT + (_WIDTH - _LEFT - 8) * part / top
        yield text_at(x, _BOTTOM + 15, share(part), anchor="end" if part == top else "middle")
    yield line((_LEFT, _BOTTOM), (_WIDTH - 8, _BOTTOM), "l-axis")
    yield text_at(_LEFT - 5, _TOP + 8, count(most), anchor="end")
    yield text_at((_LEFT + _WIDTH) / 2, _HEIGHT - 4, "rows misplaced", anchor="middle")


def _lists(found: Findings) -> Iterator[Part]:
    singles = [one.clique for one in found.singles]
    for title, cliques in (("Attributes", singles), ("Pairs", found.pairs), ("The workload", list(found.workload))):
        ranked = sorted(cliques, key=lambda clique: -found.distances[clique])
        more = f"; the worst {_MOST_LISTED} of {len(ranked)}" if len(ranked) > _MOST_LISTED else ""
        rows = [(marginal(clique), finely(found.distances[clique])) for clique in ranked[:_MOST_LISTED]]
        if rows:
            heads = ("Marginal", "Rows misplaced")
            yield fold(f"{title} in numbers", table(f"{title}, worst first{more}", heads, rows, (1,)))
