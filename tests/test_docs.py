"""The pages say what the code does."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from flows.cli import main
from flows.exits import Exit
from ppsyn.benchmark.results import Row
from schemas.benchmark import METRICS
from schemas.columns import KINDS
from schemas.config import AlgorithmConfig, PrivacyConfig
from schemas.release import (
    CsvSource,
    GenerationConfig,
    ParquetSource,
    ReleaseConfig,
    SqlSource,
    StoresConfig,
    load_release,
)
from schemas.table import TableSchema

ROOT = Path(__file__).resolve().parent.parent


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("config", [PrivacyConfig, AlgorithmConfig])
def test_every_setting_has_its_row(config: type[BaseModel]) -> None:
    assert all(f"`{name}`" in page("docs/settings.md") for name in config.model_fields)


def test_the_defaults_on_the_page_are_the_defaults() -> None:
    rows = {
        line.split("|")[1].strip(" `"): line.split("|")[3].strip()
        for line in page("docs/settings.md").splitlines()
        if line.startswith("| `")
    }
    for name in ("initial", "coarse", "coarse_groups", "select", "rounds", "eta", "model_mb", "iterations"):
        assert float(rows[name]) == AlgorithmConfig.model_fields[name].default
    assert rows["partition"].strip("`") == AlgorithmConfig.model_fields["partition"].default


def test_every_kind_of_column_has_its_row() -> None:
    assert all(f"| `{kind}` |" in page("docs/schema.md") for kind in KINDS)


def blocks(name: str) -> list[str]:
    return [block.split("```")[0] for block in page(name).split("```yaml\n")[1:]]


@pytest.mark.parametrize("name", ["README.md", "docs/schema.md"])
def test_schemas_on_the_pages_load(name: str, tmp_path: Path) -> None:
    schemas = [block for block in blocks(name) if "\ncolumns:" in block]
    assert schemas
    for block in schemas:
        (tmp_path / "schema.yaml").write_text(block, encoding="utf-8")
        assert TableSchema.load(tmp_path / "schema.yaml").columns


@pytest.mark.parametrize("name", ["README.md", "docs/release-file.md"])
def test_release_files_on_the_pages_load(name: str, tmp_path: Path) -> None:
    files = [block for block in blocks(name) if "\nsource:" in block]
    assert files
    for block in files:
        (tmp_path / "release.yaml").write_text(block, encoding="utf-8")
        assert load_release(tmp_path / "release.yaml").source


def test_stores_on_the_page_load() -> None:
    (block,) = [block for block in blocks("docs/release-file.md") if block.startswith("stores:")]
    assert StoresConfig.model_validate(yaml.safe_load(block)["stores"]).private is not None


@pytest.mark.parametrize("config", [ReleaseConfig, StoresConfig, CsvSource, ParquetSource, SqlSource, GenerationConfig])
def test_every_field_of_a_release_file_is_on_its_page(config: type[BaseModel]) -> None:
    names = {field.alias or name for name, field in config.model_fields.items()}
    text = page("docs/release-file.md")
    assert [name for name in sorted(names) if f"`{name}" not in text and name not in ("kind", "account")] == []


def test_every_command_and_exit_code_is_on_its_page() -> None:
    text = page("docs/commands.md")
    assert set(re.findall(r"^\| `ppsyn (\w+)", text, re.MULTILINE)) == set(main.commands)
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {0, 1, *Exit}


def test_the_page_on_benchmarks_names_every_option_metric_and_column() -> None:
    text = page("docs/benchmark.md")
    options = [option for parameter in main.commands["benchmark"].params for option in parameter.opts]
    assert [option for option in options if f"| `{option}` |" not in text] == []
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
            assert re.fullmatch(r"[a-z-]+(:\w+=[\w.-]+)?", name)


def test_the_commands_of_the_readme_exist() -> None:
    assert set(re.findall(r"^    ppsyn (\w+)", page("README.md"), re.MULTILINE)) <= set(main.commands)


@pytest.mark.parametrize("path", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("ppsyn/*.md")]))
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    targets = [part.split(")")[0] for part in path.read_text(encoding="utf-8").split("](")[1:]]
    for target in targets:
        if "://" not in target:
            assert (path.parent / target.split("#")[0]).exists(), target
