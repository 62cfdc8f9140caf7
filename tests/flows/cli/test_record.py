"""The documents that go with a release: their form, their figures, and that nothing else is touched."""

import csv
import json
import math
import subprocess
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from support.published import RUN, SCHEMA, Published, copied, manifest_of, shared_release
from support.registry import SCHEMA as REGISTRY
from support.reports import HOSTILE, Reader, hostile_release

from ppsyn import load
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.reports.deployment_record import HEADINGS, belief, guess, small_cell

PEOPLE = ("--curator", "Office of Statistics", "--author", "A. N. Other", "--use", "Teaching", "--place", "Norway",
          "--sector", "Government")  # fmt: skip


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return shared_release(tmp_path_factory)


def record(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["record", *map(str, arguments)])


@pytest.fixture(scope="session")
def documents(release: Published, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("documents") / "record"
    done = record(release.folder, "--out", out, "--csv", *PEOPLE)
    assert done.exit_code == 0, done.output
    return out


def read(documents: Path, name: str) -> str:
    return (documents / name).read_text(encoding="utf-8")


def as_registered(text: str) -> dict[str, object]:
    document = yaml.safe_load(text)
    jsonschema.Draft7Validator(REGISTRY, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER).validate(document)
    return document


def test_the_record_has_the_form_of_the_registry_and_the_release_s_figures(documents: Path, release: Published) -> None:
    guarantee, found = manifest_of(release.folder).guarantee, as_registered(read(documents, "deployment_record.yaml"))
    assert found["deployment"]["privacy_loss"]["privacy_parameters"] == {
        "rho": float(guarantee.rho), "epsilon": guarantee.epsilon, "delta": guarantee.delta
    }  # fmt: skip
    assert found["deployment"]["basic"]["data_curators"] == ["Office of Statistics"]
    assert found["url_slug"] == (
        "people-differentially-private-synthetic-table-office-of-statistics-"
        f"{manifest_of(release.folder).published_at.year}"
    )


def test_the_form_tells_a_record_that_is_none(documents: Path) -> None:
    text = read(documents, "deployment_record.yaml")
    for broken in (
        text.replace("tier: 3", "tier: 4"),
        text.replace("actors:", "surprise:"),
        text.replace("-19'", "-99'"),
    ):
        if broken != text:
            with pytest.raises(jsonschema.ValidationError):
                as_registered(broken)


def test_what_no_release_says_is_left_to_be_filled_in(release: Published, tmp_path: Path) -> None:
    done = record(release.folder, "--out", tmp_path / "r", "--json")
    told = json.loads(done.stdout)
    assert told["to_fill_in"] == [
        "data_curators", "registry_authors", "intended_use", "data_product_region", "data_product_sector"
    ]  # fmt: skip
    assert "synthetic.csv" not in told["files"]
    assert read(tmp_path / "r", "deployment_record.yaml").count("To be filled in by the curator.") == 4
    as_registered(read(tmp_path / "r", "deployment_record.yaml"))


def test_sha256sum_agrees(documents: Path, release: Published) -> None:
    for folder, sums in ((documents, "SHA256SUMS"), (release.folder, str(documents / "release.sha256"))):
        done = subprocess.run(
            ["sha256sum", "--check", "--strict", sums], cwd=folder, capture_output=True, text=True, check=True
        )
        assert "FAILED" not in done.stdout
    told = {line.split("  ")[1] for line in read(documents, "SHA256SUMS").splitlines()}
    assert told == {path.name for path in documents.iterdir()} - {"SHA256SUMS"}


def test_the_csv_holds_the_published_rows(documents: Path, release: Published) -> None:
    published = pd.read_parquet(release.folder / "synthetic.parquet")
    written = pd.read_csv(documents / "synthetic.csv")
    assert list(written.columns) == list(published.columns)
    assert written["age"].tolist() == published["age"].tolist()
    assert written["sex"].tolist() == published["sex"].tolist()


def test_the_dictionary_describes_every_column(documents: Path) -> None:
    rows = list(csv.DictReader(read(documents, "data-dictionary.csv").splitlines()))
    assert list(rows[0]) == list(HEADINGS)
    assert [(row["column"], row["kind"], row["codes"]) for row in rows] == [
        (column.name, column.kind, str(column.size)) for column in SCHEMA.columns
    ]
    assert all(int(row["times measured"]) >= 1 for row in rows)


def test_the_citation_names_who_what_and_which(documents: Path, release: Published) -> None:
    cff = yaml.safe_load(read(documents, "CITATION.cff"))
    assert (cff["cff-version"], cff["type"], cff["authors"]) == ("1.2.0", "dataset", [{"name": "Office of Statistics"}])
    digest = (release.folder / "manifest.sha256").read_text().split()[0]
    assert cff["identifiers"][0]["value"] == f"sha256:{digest}"
    assert all(part in read(documents, "citation.txt") for part in ("Office of Statistics", RUN, digest, "epsilon 2"))


@given(prior=st.floats(0.001, 0.999), epsilon=st.floats(1e-6, 8))
def test_odds_grow_by_exactly_the_factor(prior: float, epsilon: float) -> None:
    after = belief(prior, epsilon)
    assert after / (1 - after) == pytest.approx(prior / (1 - prior) * math.exp(epsilon), rel=1e-6)


def test_the_examples_of_small_cells_are_those_of_the_noise() -> None:
    cell = small_cell(3, 10.0)
    assert (cell.lower, cell.upper) == (-17, 23)
    assert cell.as_zero == pytest.approx(0.4013, abs=1e-4)  # P(Z < -0.25)
    assert small_cell(50, 1.0).as_zero < 1e-12
    assert guess(2) == 1.0


def test_the_statements_show_their_figures(documents: Path, release: Published) -> None:
    answers = [m for m in load(release.folder).measurements if not m.partition.axes]
    legal = " ".join(Reader((documents / "privacy-statement.html").read_bytes()).texts)
    control = " ".join(Reader((documents / "disclosure-control.html").read_bytes()).texts)
    assert "88.08%" in legal  # exp(2) / (1 + exp(2)), rounded up
    assert f"{min(m.sigma for m in answers):.1f}." in control.partition("standard deviation of")[2][:9]
    assert all(column.name in control for column in SCHEMA.columns)


def test_names_are_text_and_nothing_else(tmp_path: Path) -> None:
    release = hostile_release(tmp_path / "hostile")
    done = record(release.folder, "--out", tmp_path / "r", "--curator", HOSTILE[0], "--place", HOSTILE[1])
    assert done.exit_code == 0, done.output
    for name in ("privacy-statement.html", "disclosure-control.html"):
        page = Reader((tmp_path / "r" / name).read_bytes())
        assert page.named("script", "img", "b", "link") == []
    found = as_registered(read(tmp_path / "r", "deployment_record.yaml"))
    assert found["deployment"]["basic"]["data_curators"] == [HOSTILE[0]]
    rows = csv.DictReader(read(tmp_path / "r", "data-dictionary.csv").splitlines())
    assert next(rows)["column"] == HOSTILE[0]


def test_nothing_is_written_into_a_release_or_over_anything(release: Published, tmp_path: Path) -> None:
    store = copied(Path(release.ref.root.url), tmp_path / "store")
    folder = store / "releases" / "people" / RUN
    before = sorted(str(path) for path in store.rglob("*"))
    for out in (folder / "record", folder, store / "releases" / "record"):
        refused = record(folder, "--out", out)
        assert (refused.exit_code, "lie outside of releases" in refused.stderr) == (Exit.MISTAKE, True)
    (tmp_path / "there").mkdir()
    refused = record(folder, "--out", tmp_path / "there")
    assert (refused.exit_code, "not to exist" in refused.stderr) == (Exit.MISTAKE, True)
    assert record(folder, "--out", tmp_path / "no" / "folder").exit_code == Exit.STORE
    assert sorted(str(path) for path in store.rglob("*")) == before
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize("name", ["synthetic.parquet", "report.html", "manifest.json", "model.npz"])
def test_a_changed_release_gets_no_record(release: Published, tmp_path: Path, name: str) -> None:
    folder = copied(release.folder, tmp_path / "changed")
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    done = record(folder, "--out", tmp_path / "r")
    assert done.exit_code == Exit.MISTAKE, done.output
    assert not (tmp_path / "r").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["changed"]
