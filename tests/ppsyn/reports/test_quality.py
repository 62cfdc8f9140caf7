"""The page of paid figures."""

from support.reports import FIGURES, HOSTILE, Reader

from ppsyn.reports.quality import render


def test_it_shows_every_figure_with_its_bar_and_what_it_cost() -> None:
    page = Reader(render(FIGURES))
    text = " ".join(" ".join(page.texts).split())
    for text_of_figure in (
        "workload, mean",
        "5.00%",
        "4.00%",
        "6.00%",
        "48,852",
        "epsilon 0.25 at delta 1e-9",
        "rho 1 together",
    ):
        assert text_of_figure in text
    assert len(page.named("circle")) == 3


def test_names_are_text_and_nothing_else() -> None:
    page = Reader(render(FIGURES))
    assert page.named("script", "img", "b", "link") == []
    assert any(HOSTILE[0] in text for text in page.texts)


def test_figures_of_nothing_are_drawn_too() -> None:
    zero = FIGURES.figures[2]
    assert render(FIGURES.model_copy(update={"figures": (zero,)}))
