"""The pages say what the code does."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from schemas.columns import KINDS
from schemas.config import AlgorithmConfig, PrivacyConfig
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


@pytest.mark.parametrize("name", ["README.md", "docs/schema.md"])
def test_schemas_on_the_pages_load(name: str, tmp_path: Path) -> None:
    blocks = [block.split("```")[0] for block in page(name).split("```yaml\n")[1:]]
    assert blocks
    for block in blocks:
        (tmp_path / "schema.yaml").write_text(block, encoding="utf-8")
        assert TableSchema.load(tmp_path / "schema.yaml").columns


@pytest.mark.parametrize("path", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("ppsyn/*.md")]))
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    targets = [part.split(")")[0] for part in path.read_text(encoding="utf-8").split("](")[1:]]
    for target in targets:
        if "://" not in target:
            assert (path.parent / target.split("#")[0]).exists(), target
