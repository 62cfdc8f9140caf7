"""Sphinx configuration of the site (`make docs`). Every warning is an error."""

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE / "extensions"), str(_HERE.parent)]

from pictures import PICTURES  # noqa: E402  # sys.path must be set first
from reference import REFERENCES  # noqa: E402
from texts import TEXTS, linked  # noqa: E402

project = "ppsyn"
version = release = version_of("ppsyn")
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["extensions", "static", "results"]

myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"

html_theme = "furo"
html_title = "ppsyn"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"

_GENERATED = re.compile(r"^<!-- (reference|picture|text): ([\w -]+) -->$", re.MULTILINE)
"""A line that is replaced by text generated from code."""


def _fill(_: Sphinx, __: str, source: list[str]) -> None:
    """Insert generated text and rewrite links for the site."""
    makers = {"reference": REFERENCES, "picture": PICTURES, "text": TEXTS}
    source[0] = _GENERATED.sub(lambda found: makers[found[1]][found[2]](), linked(source[0], "../"))


_AMENDED = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<div class="output text_html">': '<div tabindex="0" class="output text_html">',
    "<th></th>": "<td></td>",
}
"""Markup for keyboards and screen readers that neither the theme nor pandas provides."""


def _amend(app: Sphinx, error: Exception | None) -> None:
    """Rewrite the pages after the build."""
    for path in app.outdir.glob("*.html") if error is None else ():
        text = path.read_text(encoding="utf-8")
        for found, better in _AMENDED.items():
            text = text.replace(found, better)
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the handlers for reading a page and for the end of the build."""
    app.connect("source-read", _fill)
    app.connect("build-finished", _amend)
