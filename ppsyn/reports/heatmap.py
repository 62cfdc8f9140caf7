"""Expected error per attribute and per pair, as a heat map: which tables to trust."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ppsyn.reports.elements import fold, legend, picture, section, table, text_at
from ppsyn.reports.markup import Markup, Part, join, tag
from ppsyn.reports.released import Released
from ppsyn.reports.rounds import Told
from ppsyn.reports.trust import Trust, trusts
from ppsyn.reports.words import marginal, plural, share, shortened

_LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""The same in every report, so that reports can be compared."""
_SPACE, _WIDE_CELL, _WIDTH = 106.0, 13.0, 340.0
_MOST_NARROW = 18
"""Attributes that fit the width of a phone."""
_MOST_LISTED = 150
_SETTLED = 0.005


def trust(released: Released, rounds: Sequence[Told]) -> Markup:
    """The section."""
    found = trusts(released.synthesis)
    return section(
        "trust",
        "Which tables to trust",
        tag(
            "p",
            "For every attribute (the diagonal) and every pair of attributes: the share of rows that the noise added "
            "for privacy is expected to put into wrong cells of their table of counts. The smaller the share, the "
            "finer the detail that can be trusted.",
        ),
        tag(
            "figure",
            heat_map(released.synthesis.domain.names, found, "measured together"),
            heat_legend(found, "never measured together"),
            tag("figcaption", "A name stands for the row to its left and for the column below it."),
        ),
        tag("h3", "What these figures cover, and what they do not"),
        tag("ul", *(tag("li", text) for text in _coverage(released, rounds, found))),
        *_lists(found),
    )


def heat_map(names: Sequence[str], found: Sequence[Trust], known_as: str) -> Markup:
    """Shares of misplaced rows, of every attribute and pair.

    Args:
        names: The attributes.
        found: In any order; what is not known is struck out.
        known_as: What is said of the pairs that are known.
    """
    is_wide = len(names) > _MOST_NARROW
    cell = _WIDE_CELL if is_wide else (_WIDTH - _SPACE - 2) / len(names)
    cell = min(cell, 26.0)
    side = cell * len(names)
    at = {name: number for number, name in enumerate(names)}
    parts: list[Part] = [*_names(names, cell)]
    for one in found:
        row, column = at[one.clique[-1]], at[one.clique[0]]
        parts += _cell(column * cell, row * cell, cell, one.misplaced)
    known = [one for one in found if one.misplaced is not None and len(one.clique) > 1]
    description = (
        f"{plural(len(names), 'attribute')}; of {plural(len(found) - len(names), 'pair')}, {len(known)} were "
        f"{known_as}. The lists below have the figures."
    )
    told = ("Expected error per attribute and per pair", description)
    drawn = picture("heat", told, (max(side + _SPACE, _WIDTH), side), parts, style="fixed" if is_wide else "middle")
    if not is_wide:
        return drawn
    return tag("div", drawn, class_="scroll", tabindex="0", role="group", aria_label=told[0])


def _names(names: Sequence[str], cell: float) -> Iterator[Part]:
    """Each beside the diagonal: it names the row to its left and the column below it."""
    for number, name in enumerate(names):
        yield text_at((number + 1) * cell + 4, (number + 0.5) * cell + 4, shortened(name), style="strong")


def _cell(x: float, y: float, cell: float, misplaced: float | None) -> Iterator[Part]:
    side = cell - 1
    if misplaced is None:
        yield tag("rect", x=x + 0.5, y=y + 0.5, width=side - 1, height=side - 1, class_="unknown")
        yield tag("path", d=f"M{x + 3:.1f} {y + side - 3:.1f}L{x + side - 3:.1f} {y + 3:.1f}", class_="l-soft")
    else:
        yield tag("rect", x=x, y=y, width=side, height=side, class_=f"e{_level(misplaced)}")


def _level(misplaced: float) -> int:
    return sum(misplaced >= limit for limit in _LIMITS)


def heat_legend(found: Sequence[Trust], unknown_as: str) -> Markup:
    """What the colours mean, and what is said of pairs that are not known."""
    edges = [f"{limit:.0%}" for limit in _LIMITS]
    texts = [
        f"under {edges[0]}",
        *(f"{a} to {b}" for a, b in pairwise(edges)),
        f"{edges[-1]} or more",
    ]
    entries = [(f"e{level}", text) for level, text in enumerate(texts)]
    if any(one.misplaced is None for one in found):
        entries.append(("unknown", f"struck out: {unknown_as}"))
    return legend(entries)


def _coverage(released: Released, rounds: Sequence[Told], found: Sequence[Trust]) -> Iterator[str]:
    yield (
        "They cover the noise that was added for privacy: the model was fitted again to its own answers under fresh "
        "noise of the same size, and the rows that changed their cell were counted."
    )
    yield (
        "They do not cover what merging hides: within a group of cells the table follows the model, not a measurement "
        "of its own. True errors are therefore larger, as a rule, and most so where many cells were merged into few."
    )
    if any(one.misplaced is None for one in found):
        yield (
            "They say nothing of the pairs that are struck out. Those follow from other measurements, as if the two "
            "were related in no further way. Use them with care, and never as evidence that two attributes are "
            f"unrelated.{_yardstick(released, rounds)}"
        )
    if person := released.manifest.privacy.person:
        yield (
            f"They do not cover what bounding people does. At most {plural(person.max_rows, 'row')} of a person were "
            "counted, so that people with more rows weigh less here than in the private table. A share of rows can be "
            "wrong by far more than its noise where such people differ from the others. How many they are is private."
        )
    yield (
        "They do not cover errors of the private table itself, nor, if it is a sample, how it was drawn; and not the "
        "rounding to whole rows, which moves a cell by about one row."
    )


def _yardstick(released: Released, rounds: Sequence[Told]) -> str:
    """How wrong the marginal was that the last selection took for the worst."""
    if not rounds:
        return ""
    last = rounds[-1]
    least = max(0.0, last.before - last.noise) / released.total
    return (
        " As a yardstick: every round looked for the marginal that the model got most wrong beyond the noise of "
        f"measuring it. What the last one took, {marginal(last.clique)}, was wrong by about {share(least)} to "
        f"{share(last.before / released.total)} of the rows."
    )


def _figure(misplaced: float) -> str:
    """A share, unless it is so small that two refits do not settle it."""
    return share(misplaced) if misplaced >= _SETTLED else f"under {share(_SETTLED)}"


def _lists(found: Sequence[Trust]) -> Iterator[Part]:
    known = [(one.clique, one.misplaced) for one in found if one.misplaced is not None]
    ranked = sorted(known, key=lambda pair: pair[1])
    for title, length in (("Attributes", 1), ("Pairs that were measured together", 2)):
        rows = [(marginal(clique), _figure(misplaced)) for clique, misplaced in ranked if len(clique) == length]
        if rows:
            more = f"; the best {_MOST_LISTED} of {len(rows)}" if len(rows) > _MOST_LISTED else ""
            heads = ("Table", "Rows misplaced by noise")
            yield fold(f"{title} in numbers", table(f"{title}, best first{more}", heads, rows[:_MOST_LISTED], (1,)))
    unknown = [marginal(one.clique) for one in found if one.misplaced is None]
    if unknown:
        shown = join([tag("li", text) for text in unknown[:_MOST_LISTED]])
        more = f" (the first {_MOST_LISTED})" if len(unknown) > _MOST_LISTED else ""
        yield fold(f"{plural(len(unknown), 'pair')} never measured together{more}", tag("ul", shown))
