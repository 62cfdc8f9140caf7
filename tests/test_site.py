"""The site: built without a warning, complete, and readable by everybody without a network."""

import html
import json
import re
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from pydantic import BaseModel
from support.browsers import CUT_OFF, FAINT, Theme, chromium
from support.docs_site import ROOT, build, shared_site

from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import MEANINGS
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.table import TableSchema

pytestmark = pytest.mark.slow

WIDTHS = (360, 1440)
THEMES: tuple[Theme, ...] = ("light", "dark")
NOTEBOOK = ROOT / "docs" / "ten-minutes.ipynb"
PAGES = sorted(path.stem for path in (*ROOT.glob("docs/*.md"), NOTEBOOK))
VARIED = "choosing-epsilon"
"""A page with pictures and a wide table."""

TOO_WIDE = """() => [...document.querySelectorAll('article *')].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && !element.parentElement.closest('.table-wrapper, .output')
    && (box.right > innerWidth + 0.5 || box.left < -0.5);
}).map((element) => element.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_site(tmp_path_factory, has_results=True)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site without the results of the notebook, which take as long as all the rest."""
    return shared_site(tmp_path_factory, has_results=False)


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as started:
        yield started


@contextmanager
def opened(browser: Browser, path: Path, width: int = 1440, theme: Theme = "light") -> Generator[Page]:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    try:
        page = context.new_page()
        page.goto(path.as_uri())
        yield page
    finally:
        context.close()


def text_of(path: Path) -> str:
    """What the page says, without its markup."""
    article = path.read_text(encoding="utf-8").split("<article", 1)[1].split("</article>")[0]
    return html.unescape(re.sub(r"<[^>]+>", "", article))


def names_in(model: type[BaseModel]) -> Iterator[str]:
    schema = model.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        yield from part["properties"]


def options_of(group: click.Group) -> Iterator[str]:
    for command in group.commands.values():
        yield from (option for parameter in command.params for option in parameter.opts if option.startswith("--"))
        if isinstance(command, click.Group):
            yield from options_of(command)


def test_every_setting_is_in_the_reference(pages: Path) -> None:
    told = re.findall(
        r"<tr class=\"row-\w+\"><td><p><code[^>]*><span class=\"pre\">([\w-]+)", page_of(pages, "settings")
    )
    assert {*names_in(ReleaseConfig), *names_in(TableSchema)} <= set(told)


def page_of(site: Path, name: str) -> str:
    return (site / f"{name}.html").read_text(encoding="utf-8")


def test_every_command_option_and_exit_code_is_in_the_reference(pages: Path) -> None:
    told = text_of(pages / "commands.html")
    assert [name for name in main.commands if f"ppsyn {name}" not in told] == []
    assert [option for option in options_of(main) if option not in told] == []
    assert [meaning for meaning in MEANINGS.values() if meaning not in told] == []


def test_the_proofs_are_a_page(pages: Path) -> None:
    assert "Known limits" in text_of(pages / "proofs.html")


def test_the_notebook_is_kept_without_results() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


def test_the_notebook_is_shown_with_results(site: Path) -> None:
    shown = page_of(site, "ten-minutes")
    assert "rho=0.0149731" in shown
    assert "<img" in shown


def test_what_the_site_cannot_vouch_for_is_an_error(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs)
    for name in ("README.md", "CHANGELOG.md", "ppsyn", "deployments", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (docs / "forgotten.md").write_text("# A page that nothing leads to\n", encoding="utf-8")
    with (docs / "report.md").open("a", encoding="utf-8") as page:
        page.write("\n[a](schema.md#no-such-heading) [b](no-such-page.md)\n")
    done = build(docs, tmp_path / "site", "-D", "nb_execution_mode=off")
    assert done.returncode != 0
    for fault in ("forgotten.md", "no-such-heading", "no-such-page.md"):
        assert fault in done.stderr


def test_a_page_opens_from_disk_without_an_error_or_the_network(browser: Browser, pages: Path) -> None:
    assert_opens_alone(browser, pages, VARIED)


@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_from_disk_without_an_error_or_the_network(browser: Browser, site: Path, name: str) -> None:
    assert_opens_alone(browser, site, name)


def assert_opens_alone(browser: Browser, site: Path, name: str) -> None:
    context = browser.new_context()
    page, said, asked = context.new_page(), list[str](), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_load_state("networkidle")
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith((site.as_uri(), "data:"))] == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows(browser: Browser, site: Path, name: str, width: int) -> None:
    with opened(browser, site / f"{name}.html", width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(TOO_WIDE) == []
        assert page.evaluate(CUT_OFF) == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("theme", THEMES)
def test_everybody_can_read_it(browser: Browser, site: Path, name: str, theme: Theme) -> None:
    with opened(browser, site / f"{name}.html", theme=theme) as page:
        found = Axe().run(page)
        assert found.response["testEngine"]["name"] == "axe-core"
        assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found.response["violations"]] == []
        assert page.evaluate(FAINT)[1] == []


def test_there_is_a_picture_for_each_question_about_epsilon(browser: Browser, pages: Path) -> None:
    with opened(browser, pages / f"{VARIED}.html", 360) as page:
        for name in ("belief", "guess", "errors", "releases"):
            box = page.locator(f"svg[aria-labelledby^='{name}-title']").bounding_box()
            assert box is not None, name
            assert box["width"] > 250, name


def test_search_finds_a_page_from_disk(browser: Browser, pages: Path) -> None:
    with opened(browser, pages / "search.html") as page:
        page.goto(f"{(pages / 'search.html').as_uri()}?q=abandon")
        page.locator("#search-results a").first.wait_for()
