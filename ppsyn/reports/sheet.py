"""The sheet that a page is written on: its head, its style, and what it forbids itself."""

from ppsyn.reports.markup import Markup, Part, tag
from ppsyn.reports.style import STYLE


def sheet(title: str, *body: Part, style: str = "") -> bytes:
    """A whole page that needs no other file, no script and no network.

    Args:
        title: Of the window.
        body: What is to be seen.
        style: Rules of this page, besides those of all pages; a constant.
    """
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("title", title),
        tag("style", Markup(STYLE + style)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en').text}\n".encode()
