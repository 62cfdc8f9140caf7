"""The report of a release: what it says, what it is made from, and that it needs nothing else."""

import re
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from support.published import LOST, SCHEMA, Published, in_memory, make_release, manifest_of, people, shared_release
from support.reports import HOSTILE, Reader, hostile_release, wide_release

from ppsyn.releases.layout import FILES, REPORT, SYNTHETIC
from ppsyn.releases.reader import make_report
from ppsyn.storage import Store

SECTIONS = ("guarantee", "budget", "rounds", "marginals", "trust", "model", "checks", "audit")


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


@pytest.fixture(scope="module")
def page(release: Published) -> bytes:
    return (release.folder / REPORT).read_bytes()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return (hostile_release(tmp_path_factory.mktemp("hostile")).folder / REPORT).read_bytes()


def text_of(page: bytes) -> str:
    """All texts, with one space where there are several or a line ends."""
    return " ".join("".join(Reader(page).texts).split())


def made_again(release: Published, name: str, without: str | None = None) -> bytes:
    store: Store = in_memory(release.folder, name)
    if without is not None:
        store.delete(without)
    return make_report(store, manifest_of(release.folder))


# What it is made from


def test_the_released_folder_alone_gives_the_same_bytes(release: Published, page: bytes) -> None:
    assert made_again(release, "alone") == made_again(release, "alone-again") == page


def test_the_synthetic_table_need_not_be_read(release: Published, page: bytes) -> None:
    assert made_again(release, "without-rows", SYNTHETIC) == page


def test_the_hour_of_publication_has_no_part_in_it(release: Published, page: bytes) -> None:
    later = manifest_of(release.folder).model_copy(update={"published_at": datetime(2040, 1, 1, tzinfo=UTC)})
    assert make_report(release.store, later) == page


def test_other_answers_give_another_report(release: Published, page: bytes, tmp_path: Path) -> None:
    other = make_release(tmp_path, run=release.ref.run)
    digests = re.compile(rb"[0-9a-f]{64}")
    assert digests.sub(b"", (other.folder / REPORT).read_bytes()) != digests.sub(b"", page)


# That it needs nothing else


@pytest.mark.parametrize("source", ["page", "hostile"])
def test_it_asks_for_nothing_from_outside(source: str, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue(source)
    read = Reader(page)
    attributes = [item for _, given in read.elements for item in given.items()]
    assert not {name for name, _ in attributes} & {
        "src",
        "srcset",
        "data",
        "action",
        "poster",
        "background",
        "xlink:href",
    }
    assert all(value and value.startswith("#") for name, value in attributes if name == "href")
    assert not [name for name, _ in attributes if name.startswith("on")]
    assert not read.named("script", "link", "img", "iframe", "object", "embed", "base", "form", "image", "use")
    style = page.split(b"<style>")[1].split(b"</style>")[0]
    assert not re.search(rb"url\(|@import|https?:", style)


def test_a_browser_may_load_nothing(page: bytes) -> None:
    (policy,) = [meta for meta in Reader(page).named("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_links_lead_to_places_on_the_page_and_names_are_given_once(page: bytes) -> None:
    read = Reader(page)
    names = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(set(names)) == len(names)
    assert {str(link["href"])[1:] for link in read.named("a")} <= set(names)
    assert set(SECTIONS) <= set(names)


def test_hostile_names_are_text(hostile: bytes) -> None:
    read = Reader(hostile)
    text = "".join(read.texts)
    assert all(name in text for name in HOSTILE)
    assert "<b>secret</b>" in text
    assert not read.named("script", "img", "b")
    assert len(read.named("h1")) == len(read.named("style")) == 1


# For those who do not see it


def test_every_picture_says_what_it_shows(page: bytes) -> None:
    read = Reader(page)
    names = {attributes.get("id") for _, attributes in read.elements}
    pictures = [svg for svg in read.named("svg") if svg.get("aria-hidden") != "true"]
    assert len(pictures) >= 8
    for svg in pictures:
        assert svg["role"] == "img"
        assert set(str(svg["aria-labelledby"]).split()) <= names
    assert len(read.named("desc")) == len(pictures)


def test_every_table_has_a_caption_and_heads(page: bytes) -> None:
    read = Reader(page)
    assert len(read.named("caption")) == len(read.named("table")) > 8
    assert all(head["scope"] in ("row", "col") for head in read.named("th"))


def test_headings_follow_each_other_without_a_gap(page: bytes) -> None:
    levels = [int(tag[1]) for tag, _ in Reader(page).elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


# What it says


def test_the_guarantee_is_that_of_the_manifest(release: Published, page: bytes) -> None:
    text = text_of(page)
    assert "differential privacy with epsilon 2 and delta 1e-6" in text
    assert f"{manifest_of(release.folder).rows:,}" in text


def test_it_shows_what_the_account_allows_all_releases_and_not_what_others_have_spent(
    release: Published, page: bytes
) -> None:
    said, text = manifest_of(release.folder), text_of(page)
    assert f"rho {float(said.account.cap):.4g} for all releases together" in text
    assert f"All other releases, past and future: {float(said.account.cap - said.guarantee.rho):.4g}" in text
    assert f"{float(release.account.state.left):.4g}" not in text


def test_there_is_no_word_of_bias_where_rows_are_protected(page: bytes) -> None:
    text = text_of(page)
    assert "bias" not in text
    assert "weigh less" not in text


def test_lost_answers_are_counted(page: bytes) -> None:
    assert f"{len(LOST)} answers were charged but never arrived." in text_of(page)


def test_a_guarantee_for_persons_in_rho(tmp_path: Path) -> None:
    frame, schema = people().assign(who=np.arange(200) % 70), SCHEMA.model_copy(update={"excluded": ("who",)})
    person = {"column": "who", "max_rows": 2}
    changes = {"privacy": {"rho": 0.2, "person": person}, "account": {"cap": {"rho": 1.0}}}
    made = make_release(tmp_path, frame, schema, changes=changes)
    text = text_of((made.folder / REPORT).read_bytes())
    assert "zero-concentrated differential privacy with rho 0.2" in text
    assert "If any one person had not been in the private table, every possible outcome" in text
    assert "The release uses at most 2 rows of each person, chosen at random." in text
    assert "The ranges cover the noise, not this bias." in text
    assert "people with more rows weigh less here than in the private table" in text
    assert "epsilon" not in text


def test_the_other_files_have_their_digests(release: Published, page: bytes) -> None:
    files = manifest_of(release.folder).files
    assert set(files) == set(FILES)
    assert all((said.sha256.encode() in page) == (name != REPORT) for name, said in files.items())


def test_a_wide_table_has_a_report_of_moderate_size(tmp_path: Path) -> None:
    data = (wide_release(tmp_path).folder / REPORT).read_bytes()
    assert len(data) < 1_500_000
    assert Reader(data).named("svg")


def test_a_table_of_one_column_has_a_report(tmp_path: Path) -> None:
    schema = SCHEMA.model_copy(update={"columns": SCHEMA.columns[:1]})
    changes = {"algorithm": {"workload": {"degree": 1}, "rounds": 2, "max_fit_steps": 10}}
    made = make_release(tmp_path, people()[["sex"]], schema, changes=changes)
    assert Reader((made.folder / REPORT).read_bytes()).named("svg")
