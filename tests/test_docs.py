"""The pages say what the code does."""

import re
import shlex
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from ppsyn.benchmark.contenders import contender
from ppsyn.benchmark.results import Row
from ppsyn.errors import CapExceededError, ModelTooLargeError
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import MEANINGS, Exit
from ppsyn.privacy.policy import contradictions, exactly
from ppsyn.schemas.benchmark import METRICS
from ppsyn.schemas.columns import KINDS
from ppsyn.schemas.policy import PolicyFile, load_policy
from ppsyn.schemas.release import CsvSource, StoresConfig, load_release
from ppsyn.schemas.table import TableSchema

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("ppsyn/*.md"), *ROOT.glob("examples/*/*.md")])

FOLDERS = ("deployments", "docs", "examples", "flows", "ppsyn", "schemas", "tasks", "tests")


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str) -> list[str]:
    return [block.split("```")[0] for block in page(name).split("```yaml\n")[1:]]


def test_every_kind_of_column_has_its_row() -> None:
    assert all(f"| `{kind}` |" in page("docs/schema.md") for kind in KINDS)


@pytest.mark.parametrize("name", ["docs/quick-start.md", "docs/schema.md"])
def test_schemas_on_the_pages_load(name: str, tmp_path: Path) -> None:
    schemas = [block for block in blocks(name) if "\ncolumns:" in block]
    assert schemas
    for block in schemas:
        (tmp_path / "schema.yaml").write_text(block, encoding="utf-8")
        assert TableSchema.load(tmp_path / "schema.yaml").columns


@pytest.mark.parametrize("name", ["docs/quick-start.md", "docs/release-file.md"])
def test_release_files_on_the_pages_load(name: str, tmp_path: Path) -> None:
    files = [block for block in blocks(name) if "\nsource:" in block]
    assert files
    for block in files:
        (tmp_path / "release.yaml").write_text(block, encoding="utf-8")
        assert load_release(tmp_path / "release.yaml").source


def test_the_csv_source_on_the_page_loads_with_every_setting() -> None:
    (block,) = blocks("docs/sources.md")
    told = yaml.safe_load(block)
    assert set(CsvSource.model_fields) == {*told, "batch_rows", "newlines_in_values"}
    assert CsvSource.model_validate(told).trues == ("ja",)


def test_stores_on_the_page_load() -> None:
    (block,) = [block for block in blocks("docs/release-file.md") if block.startswith("stores:")]
    assert StoresConfig.model_validate(yaml.safe_load(block)["stores"]).private is not None


def test_errors_on_the_pages_are_those_of_the_code() -> None:
    cap = CapExceededError("people", Fraction("0.300312"), Fraction("0.29672"), Fraction("0.311693"))
    size = ModelTooLargeError(1.541, 1.0, {"zip": 100_000, "income": 100_000, "city": 1_000})
    assert str(cap) in " ".join(page("docs/quick-start.md").split())
    assert str(size) in " ".join(page("docs/scale.md").split())


def test_sentences_of_commands_on_the_quick_start_are_those_of_the_code() -> None:
    text = " ".join(page("docs/quick-start.md").split())
    for heading in ("run state charges rho epsilon", "column values rows outcome"):
        assert heading in text


def test_the_readme_lists_the_folders_as_they_are() -> None:
    tree = page("README.md").split("## Folders")[1].split("\n## ")[0]
    listed = {name for found in re.findall(r"^ {4,6}((?:[a-z_]+/ ?)+)", tree, re.M) for name in found.split()}
    inside = {f"{path.name}/" for path in (ROOT / "ppsyn").iterdir() if (path / "__init__.py").exists()}
    outside = {f"{name}/" for name in FOLDERS}
    assert listed == inside | outside


def test_every_exit_code_has_a_meaning() -> None:
    assert list(MEANINGS) == [0, 1, *Exit]


def test_the_page_on_benchmarks_names_every_metric_and_column() -> None:
    text = page("docs/benchmark.md")
    assert [metric for metric in METRICS if f"`{metric}`" not in text] == []
    assert [column.name for column in fields(Row) if f"`{column.name}`" not in text] == []


def test_the_commands_for_the_figures_can_be_given() -> None:
    commands = [
        shlex.split(line) for line in re.findall(r"^    ppsyn (benchmark .+)$", page("docs/benchmark.md"), re.M)
    ]
    assert len(commands) >= 7
    for _, *options in commands:
        parsed = main.commands["benchmark"].make_context("benchmark", options).params
        assert {"datasets", "mechanisms", "epsilons"} <= set(parsed)
        for name in parsed["mechanisms"].split(","):
            assert contender(name)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_on_the_pages_exist(path: Path) -> None:
    told = re.findall(r"(?:^    |`)ppsyn ([a-z]+(?:-[a-z]+)*)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(told) <= set(main.commands)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_the_pages_name_exist(path: Path) -> None:
    told = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[a-z0-9_./-]+)`", path.read_text(encoding="utf-8"))
    assert [name for name in told if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    targets = [part.split(")")[0] for part in path.read_text(encoding="utf-8").split("](")[1:]]
    for target in targets:
        if "://" not in target:
            assert (path.parent / target.split("#")[0]).exists(), target


def test_the_policy_on_the_page_has_every_field_and_no_contradiction(tmp_path: Path) -> None:
    (block,) = [block for block in blocks("docs/governance.md") if block.startswith("cap:")]
    (tmp_path / "policy.yaml").write_text(block, encoding="utf-8")
    found = load_policy(tmp_path / "policy.yaml")
    assert set(yaml.safe_load(block)) == set(PolicyFile.model_fields)
    assert list(contradictions(exactly(found))) == []
