"""The owner's own page: written elsewhere than any release, marked wherever one looks, and paid for by nobody."""

import io
import stat
from pathlib import Path

import pypdf
import pytest
from click.testing import CliRunner, Result
from support.browsers import chromium
from support.published import RUN, Published, copied, people, shared_release
from support.reports import Reader

from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.releases.layout import release_folder

MARK = "PRIVATE: exact numbers of the private table. Do not publish, send or keep with the release."


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


def write(release: Published, out: Path, *options: object) -> Result:
    arguments = ["private-report", release.folder, "--store", release.ref.root.url, "--out", out, *options]
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("owner") / "private-report.html"
    result = write(shared_release(tmp_path_factory), out, "--marginal", "sex,score", "--target", "is member")
    assert result.exit_code == 0, result.output
    return out


def test_it_tells_what_is_private_and_what_may_be_published(page: Path, release: Published) -> None:
    text = " ".join(Reader(page.read_bytes()).texts)
    for told in (MARK, f"{len(people())}", "requested", "ppsyn quality", RUN, "is member"):
        assert told in text
    assert b"<title>PRIVATE: " in page.read_bytes()


def test_nobody_but_its_owner_may_read_it(page: Path) -> None:
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert [path.name for path in page.parent.iterdir()] == [page.name]


def test_neither_the_release_nor_its_account_nor_its_store_change(release: Published, tmp_path: Path) -> None:
    before = contents(Path(release.ref.root.url))
    assert write(release, tmp_path / "page.html").exit_code == 0
    assert contents(Path(release.ref.root.url)) == before


def test_every_printed_page_bears_the_mark(page: Path) -> None:
    with chromium() as browser:
        opened = browser.new_page()
        opened.goto(page.as_uri())
        printed = pypdf.PdfReader(io.BytesIO(opened.pdf(format="A4")))
    assert len(printed.pages) > 2
    assert all("PRIVATE: do not publish" in sheet.extract_text() for sheet in printed.pages)


def test_the_mark_stays_in_sight(page: Path) -> None:
    with chromium() as browser:
        opened = browser.new_page(viewport={"width": 360, "height": 640})
        opened.goto(page.as_uri())
        for place in (0, 900, 10**6):
            opened.evaluate(f"window.scrollTo(0, {place})")
            box = opened.locator(".mark").bounding_box()
            assert box is not None
            assert 0 <= box["y"] < 10


@pytest.mark.parametrize(
    "place",
    ["store/releases/page.html", f"store/{release_folder('people', RUN)}/page.html", "store/staging/page.html",
     f"store/{release_folder('people', RUN)}/quality/page.html", "elsewhere/page.html", "link/page.html"],
)  # fmt: skip
def test_it_is_not_written_into_a_release(release: Published, tmp_path: Path, place: str) -> None:
    store = copied(Path(release.ref.root.url), tmp_path / "store")
    copied(release.folder, tmp_path / "elsewhere")  # a release that somebody took along
    (tmp_path / "link").symlink_to(store / "releases")
    for folder in (store / "staging", store / release_folder("people", RUN) / "quality"):
        folder.mkdir()
    before = contents(tmp_path)
    result = write(release, tmp_path / place)
    assert result.exit_code == Exit.MISTAKE
    assert "outside of releases" in result.stderr
    assert contents(tmp_path) == before


@pytest.mark.parametrize("place", ["no/folder/page.html", "."])
def test_it_is_written_to_a_file_in_a_folder_that_there_is(release: Published, tmp_path: Path, place: str) -> None:
    result = write(release, tmp_path / place)
    assert result.exit_code == Exit.MISTAKE
    assert "Traceback" not in result.output


@pytest.mark.parametrize("options", [("--marginal", "age,shoe"), ("--target", "shoe")])
def test_what_is_none_of_the_table_is_refused(release: Published, tmp_path: Path, options: tuple[str, str]) -> None:
    result = write(release, tmp_path / "page.html", *options)
    assert (result.exit_code, list(tmp_path.iterdir())) == (Exit.MISTAKE, [])
    assert "'shoe'" in result.stderr
