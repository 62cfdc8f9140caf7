"""Templates: found with the package, complete, and without a way around escaping."""

import re
from importlib.resources import files

import pytest
from jinja2 import UndefinedError
from support.reports import FIGURES

from ppsyn.reports.pages import render_page
from ppsyn.reports.quality import Page

TEMPLATES = {
    f"{package}/{file.name}": file.read_text(encoding="utf-8")
    for package in ("ppsyn.reports", "ppsyn.evaluation")
    for file in (files(package) / "templates").iterdir()
}


def test_the_owners_template_lies_with_what_reads_the_private_table() -> None:
    assert [name for name in TEMPLATES if "owner" in name] == ["ppsyn.evaluation/owner_report.html.j2"]


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_template_goes_around_escaping(name: str) -> None:
    assert not re.search(r"\|\s*safe\b|autoescape|\bMarkup\b", TEMPLATES[name])


def test_texts_are_escaped() -> None:
    figure = FIGURES.figures[0]
    page = render_page("quality.html.j2", Page(FIGURES, [("<b>&", 1, figure)], "<svg>")).decode()  # pyright: ignore[reportArgumentType]  # a chart that is no markup
    assert "&lt;b&gt;&amp;" in page
    assert "&lt;svg&gt;" in page
    assert "<b>" not in page
    assert "<svg>" not in page


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render_page("quality.html.j2", object())
