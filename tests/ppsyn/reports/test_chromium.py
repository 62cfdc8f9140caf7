"""Reports in a real browser: they open alone, nothing overflows, and everybody can read them."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from support.browsers import CUT_OFF, FAINT, Theme, chromium
from support.overviews import overview_page
from support.published import shared_release
from support.reports import hostile_release, private_page, quality_page, wide_release

from ppsyn.releases.deployment_record import write_documents
from ppsyn.releases.layout import REPORT
from ppsyn.reports.deployment_record import People

WIDTHS = (360, 1440)
PICTURES = {
    "report.html": ("account", "spending", "distances", "heat", "graph", "attribute-0", "together-0"),
    "private-report.html": ("heat", "histogram", "attribute-0", "together-0", "ranges", "classifiers"),
    "quality.html": ("quality",),
    "overview.html": ("accounts", "history"),
    "privacy-statement.html": (),
    "disclosure-control.html": (),
}


def pictures(report: Path) -> tuple[str, ...]:
    return PICTURES[report.name]


TOO_WIDE = """() => {
  const inside = (element) => element.closest('.scroll') !== null;
  return [...document.querySelectorAll('body *')].filter((element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && !inside(element) && !element.closest('.skip')
      && (box.right > innerWidth + 0.5 || box.left < -0.5);
  }).map((element) => element.outerHTML.slice(0, 120));
}"""


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("plain", marks=pytest.mark.slow),
        "hostile",
        pytest.param("wide", marks=pytest.mark.slow),
        pytest.param("private", marks=pytest.mark.slow),
        pytest.param("private hostile", marks=pytest.mark.slow),
        pytest.param("private wide", marks=pytest.mark.slow),
        pytest.param("quality", marks=pytest.mark.slow),
        "overview",
        pytest.param("privacy-statement.html", marks=pytest.mark.slow),
        pytest.param("disclosure-control.html", marks=pytest.mark.slow),
    ],
)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages about a small table, about one with hostile names, and about one with many columns.

    They are the reports of releases, an owner's own, that of figures which were paid for, the overview of a store, and
    statements about a release.
    """
    folder = tmp_path_factory.mktemp("pages")
    if request.param == "overview":
        return overview_page(folder / "overview.html")
    if request.param in ("privacy-statement.html", "disclosure-control.html"):
        write_documents(hostile_release(folder).store, People(), folder / "record", with_csv=False)
        return folder / "record" / request.param
    if request.param in ("plain", "private", "quality"):
        release = shared_release(tmp_path_factory)
    elif "hostile" in request.param:
        release = hostile_release(folder)
    else:
        release = wide_release(folder, 26)
    if "private" in request.param:
        return private_page(release, folder / "private-report.html")
    return quality_page(folder / "quality.html") if request.param == "quality" else release.folder / REPORT


@contextmanager
def opened(browser: Browser, report: Path, width: int = 1440, theme: Theme = "light") -> Generator[Page]:
    """The page with everything unfolded."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    try:
        page = context.new_page()
        page.goto(report.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true; })")
        yield page
    finally:
        context.close()


def test_it_opens_from_disk_without_an_error_or_a_request(browser: Browser, report: Path) -> None:
    context = browser.new_context()
    page, said, asked = context.new_page(), list[str](), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    page.wait_for_load_state("networkidle")
    context.close()
    assert (said, asked) == ([], [report.as_uri()])


def test_the_charts_are_there(browser: Browser, report: Path) -> None:
    with opened(browser, report) as page:
        for name in pictures(report):
            box = page.locator(f"svg[aria-labelledby^='{name}-title']").bounding_box()
            assert box is not None, name
            assert box["width"] > 200, name
            assert box["height"] > 25, name


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows(browser: Browser, report: Path, width: int) -> None:
    with opened(browser, report, width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(TOO_WIDE) == []
        assert page.evaluate(CUT_OFF) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_stands_out(browser: Browser, report: Path, theme: Theme) -> None:
    with opened(browser, report, theme=theme) as page:
        texts, faint = page.evaluate(FAINT)
        assert texts > 30
        assert faint == []


def test_themes_differ(browser: Browser, report: Path) -> None:
    grounds = []
    for theme in ("light", "dark"):
        with opened(browser, report, theme=theme) as page:
            grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(255, 255, 255)", "rgb(18, 22, 28)"]


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (360, "light"),
        (1440, "dark"),
        pytest.param(360, "dark", marks=pytest.mark.slow),
        pytest.param(1440, "light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing(browser: Browser, report: Path, width: int, theme: Theme) -> None:
    with opened(browser, report, width, theme) as page:
        found = Axe().run(page)
        assert found.response["testEngine"]["name"] == "axe-core"
        assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found.response["violations"]] == []


def test_the_contrast_check_finds_faint_text(browser: Browser, report: Path) -> None:
    with opened(browser, report) as page:
        page.add_style_tag(content=".kicker { color: #aaaaaa; }")
        assert len(page.evaluate(FAINT)[1]) == 1


def test_everything_that_does_something_can_be_reached_by_keyboard(browser: Browser, report: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(report.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('nav a')")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('details').open")
    context.close()


def test_on_paper_the_theme_is_light_and_the_contents_are_left_out(browser: Browser, report: Path) -> None:
    with opened(browser, report, theme="dark") as page:
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not page.locator("nav").is_visible()
        assert page.pdf(format="A4").startswith(b"%PDF")
