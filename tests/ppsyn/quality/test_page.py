"""The page about figures."""

from reports import HOSTILE, Reader

from ppsyn.quality.page import render
from schemas.quality import Quality

DIGEST = "5e" * 32

QUALITY = Quality.model_validate(
    {
        "asked": {
            "run": "20310203-040506-0a1b2c3d-q012345",
            "dataset": "people",
            "release": "20310203-040506-0a1b2c3d",
            "manifest": DIGEST,
            "rho": "1/1000",
            "delta": 1e-9,
            "person": None,
            "sets": [
                {"name": "workload", "marginals": [["age", HOSTILE[0]], [HOSTILE[1], HOSTILE[2]]]},
                {"name": HOSTILE[0], "marginals": [[HOSTILE[0]]]},
            ],
        },
        "measured_at": "2031-02-03T04:05:06Z",
        "guarantee": {"rho": "1/1000", "epsilon": 0.25, "delta": 1e-9, "unit": "a row"},
        "rows": {"noisy": 48_852, "sigma": 60.0},
        "sigma": 70_000.0,
        "figures": [
            {"about": "workload", "statistic": "mean", "noisy": 9, "distance": 0.05, "lower": 0.04, "upper": 0.06},
            {"about": "workload", "statistic": "worst", "noisy": 9, "distance": 1.0, "lower": 0.9, "upper": 1.0},
            {"about": HOSTILE[0], "statistic": "mean", "noisy": -9, "distance": 0.0, "lower": 0.0, "upper": 0.0},
        ],
        "account": {"first": 3, "last": 5, "before": DIGEST, "head": DIGEST, "cap": "1", "left": "1/2"},
        "entries": [],
    }
)


def test_it_tells_every_figure_with_its_bar_and_what_it_cost() -> None:
    page = Reader(render(QUALITY))
    text = " ".join(page.texts)
    for told in ("workload, mean", "5.00%", "4.00%", "6.00%", "48,852", "epsilon 0.25 at delta 1e-9", "Entries 3 to 5"):
        assert told in text
    assert len(page.named("circle")) == 3


def test_names_are_text_and_nothing_else() -> None:
    page = Reader(render(QUALITY))
    assert page.named("script", "img", "b", "link") == []
    assert any(HOSTILE[0] in text for text in page.texts)


def test_figures_of_nothing_are_drawn_too() -> None:
    zero = QUALITY.figures[2]
    assert render(QUALITY.model_copy(update={"figures": (zero,)}))
