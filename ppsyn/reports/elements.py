"""The elements that the page is built of: pictures that tell what they show, tables, legends."""

from collections.abc import Container, Iterable, Mapping, Sequence

from ppsyn.reports.markup import Markup, Part, join, tag

Named = tuple[str, str]
"""A title, and what there is to see."""


def section(name: str, title: str, *parts: Part) -> Markup:
    """A part of the page that the list of contents leads to."""
    return tag("section", tag("h2", title, id=f"{name}-heading"), *parts, id=name, aria_labelledby=f"{name}-heading")


def contents(links: Mapping[str, str]) -> Markup:
    """The list of contents: the names of sections, and how they are called there."""
    entries = (tag("li", tag("a", text, href=f"#{name}")) for name, text in links.items())
    return tag("nav", tag("ul", *entries), aria_label="Contents")


def picture(
    name: str, told: Named, size: tuple[float, float], parts: Iterable[Part], *, style: str | None = None
) -> Markup:
    """A chart, with its title and what it shows for those who do not see it.

    Args:
        name: That no other picture of the page has.
        told: Title and description.
        size: Width and height.
        parts: What is drawn.
        style: Class of the picture: `strip` may be stretched, `middle` stays of middle size, `fixed` keeps its size.
    """
    width, height = size
    return tag(
        "svg",
        tag("title", told[0], id=f"{name}-title"),
        tag("desc", told[1], id=f"{name}-desc"),
        *parts,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        preserveAspectRatio="none" if style == "strip" else None,
        width=width if style == "fixed" else None,
        class_=style,
    )


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Part]], numbers: Container[int] = ()) -> Markup:
    """A table that scrolls by itself if it is too wide; the first cell of a row is its head.

    Args:
        caption: What it holds.
        heads: Of the columns.
        rows: Their cells.
        numbers: Which columns hold numbers.
    """
    head = tag("tr", *(tag("th", text, scope="col", class_=_kind(at, numbers)) for at, text in enumerate(heads)))
    body = [
        tag(
            "tr",
            tag("th", cells[0], scope="row", class_=_kind(0, numbers)),
            *(tag("td", cell, class_=_kind(at, numbers)) for at, cell in enumerate(cells[1:], 1)),
        )
        for cells in rows
    ]
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", whole, class_="scroll", tabindex="0", role="group", aria_label=caption)


def _kind(at: int, numbers: Container[int]) -> str | None:
    return "number" if at in numbers else None


def fold(summary: str, *parts: Part, is_printed: bool = False) -> Markup:
    """What is shown on demand, and on paper only if it is said so."""
    return tag("details", tag("summary", summary), *parts, class_="printed" if is_printed else None)


def legend(entries: Iterable[tuple[str, str]]) -> Markup:
    """What the colours of a picture mean: the class of each, and a text."""
    return tag("ul", *(tag("li", _swatch(style), text) for style, text in entries), class_="legend")


def _swatch(style: str) -> Markup:
    return tag("svg", tag("rect", width=10, height=10, class_=style), viewBox="0 0 10 10", aria_hidden="true")


def text_at(x: float, y: float, text: str, *, anchor: str | None = None, style: str | None = None) -> Markup:
    """A line of text in a picture."""
    return tag("text", text, x=x, y=y, text_anchor=anchor, class_=style)


def line(start: tuple[float, float], end: tuple[float, float], style: str) -> Markup:
    """A straight line in a picture."""
    return tag("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=style)


def paragraphs(*texts: str) -> Markup:
    """One paragraph after the other."""
    return join([tag("p", text) for text in texts])
