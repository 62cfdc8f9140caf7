"""The commands about schemas, as a person gives them."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from conftest import CREDENTIALS
from support.private_tables import CANARY
from support.small_release import table_text, write_release
from support.terminals import on_a_terminal

from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit
from ppsyn.schemas.locations import Location
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store

PPSYN = str(Path(sys.executable).parent / "ppsyn")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release file with its table and its schema, in the current folder."""
    write_release(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ppsyn(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def refused(result: Result, code: Exit, told: str) -> None:
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert (result.exit_code, result.stdout) == (code, "")
    assert told in result.stderr
    assert CANARY not in result.stderr


def test_a_draft_is_printed_or_written_and_says_what_is_left(folder: Path) -> None:
    printed = ppsyn("schema", "draft", "table.csv")
    assert (printed.exit_code, printed.stderr) == (0, "")
    written = ppsyn("schema", "draft", "table.csv", "--out", "draft.yaml")
    assert written.stdout == "draft.yaml: 8 to fill in\n"
    assert (folder / "draft.yaml").read_text(encoding="utf-8") == printed.stdout
    assert ppsyn("schema", "draft", "release.yaml").stdout == printed.stdout
    unfilled = ppsyn("release", "release.yaml", "--set", "schema=draft.yaml")
    refused(unfilled, Exit.MISTAKE, "column 'job': Expected kind, nullable to be filled in")


def test_a_file_that_is_there_is_replaced_only_if_asked(folder: Path) -> None:
    (folder / "mine.yaml").write_text("mine", encoding="utf-8")
    refused(ppsyn("schema", "draft", "table.csv", "--out", "mine.yaml"), Exit.MISTAKE, "--force")
    assert (folder / "mine.yaml").read_text(encoding="utf-8") == "mine"
    assert ppsyn("schema", "draft", "table.csv", "--out", "mine.yaml", "--force").exit_code == 0
    assert "age" in (folder / "mine.yaml").read_text(encoding="utf-8")


def test_a_draft_from_a_public_sample_is_a_schema(folder: Path) -> None:
    (folder / "public.csv").write_text(table_text(seed=1), encoding="utf-8")
    done = ppsyn("schema", "draft", "table.csv", "--public", "public.csv", "--out", "new.yaml")
    assert done.stdout == "new.yaml: nothing left to fill in; look it over\n"
    assert [column.kind for column in TableSchema.load(folder / "new.yaml").columns] == [
        "integer", "categorical", "boolean", "date",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["draft", "nowhere.csv"], Exit.MISTAKE, "Expected a file, or a folder"),
        (["draft", "nowhere"], Exit.MISTAKE, "neither kind"),
        (["draft", "mixed"], Exit.MISTAKE, "both kinds"),
        (["draft", "table.csv", "--delimiter", ""], Exit.MISTAKE, "delimiter"),
        (["draft", "table.csv", "--delimiter", "é"], Exit.MISTAKE, "ASCII"),
        (["draft", "gs://x"], Exit.MISTAKE, "s3://"),
        (["draft", "none.yaml"], Exit.MISTAKE, "none.yaml: Expected a readable file"),
        (["draft", "table.csv", "--public", "table.csv"], Exit.MISTAKE, "apart from the private table"),
        (["draft", "table.csv", "--out", "no/where.yaml"], Exit.STORE, "Cannot write no/where.yaml"),
        (["draft", "headless.csv"], Exit.MISTAKE, "Give the table a header"),
        (["check", "table.csv", "none.yaml", "--anywhere"], Exit.MISTAKE, "none.yaml: Expected a readable file"),
        (["check", "headless.csv", "schema.yaml", "--anywhere"], Exit.MISTAKE, "it has none of them"),
        (["check", "table.csv", "schema.yaml"], Exit.MISTAKE, "to be a terminal"),  # and not a pipe or a log
    ],
)
def test_a_mistake_is_told(folder: Path, arguments: list[str], code: Exit, told: str) -> None:
    (folder / "mixed").mkdir()
    for name in ("a.csv", "b.parquet"):
        (folder / "mixed" / name).touch()
    (folder / "headless.csv").write_text(f"31,{CANARY},true,2020-01-01\n", encoding="utf-8")
    before = sorted(folder.rglob("*"))
    refused(ppsyn("schema", *arguments), code, told)
    assert sorted(folder.rglob("*")) == before


def test_a_table_in_a_bucket_is_drafted_and_checked(s3: Location) -> None:
    open_store(s3).put("part-0.csv", table_text().encode())
    location = ["--endpoint", s3.endpoint or "", "--credentials", CREDENTIALS]
    assert "- name: joined" in ppsyn("schema", "draft", s3.url, *location).stdout
    assert "400 rows" in ppsyn("schema", "check", s3.url, "schema.yaml", "--anywhere", *location).stdout


def test_what_becomes_of_the_values_is_shown_on_a_terminal_with_a_warning_and_written_nowhere(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    seen = on_a_terminal([PPSYN, "schema", "check", "release.yaml", "schema.yaml"])
    assert "These numbers are private" in seen
    assert "400 rows" in seen
    assert "kept" in seen
    assert sorted(folder.rglob("*")) == before


def test_a_release_that_would_stop_is_told_with_its_exit_code(folder: Path) -> None:
    text = (folder / "table.csv").read_text(encoding="utf-8").replace("true", CANARY, 1)
    (folder / "table.csv").write_text(text, encoding="utf-8")
    result = ppsyn("schema", "check", "table.csv", "schema.yaml", "--anywhere")
    assert result.exit_code == Exit.MISTAKE
    assert "REFUSED: the release stops" in result.stdout
    assert CANARY not in result.output


def test_lines_that_cannot_be_read_are_told_where_values_are(folder: Path) -> None:
    text = (folder / "table.csv").read_text(encoding="utf-8") + f'1,"{CANARY}\n'
    (folder / "table.csv").write_text(text, encoding="utf-8")
    result = ppsyn("schema", "check", "table.csv", "schema.yaml", "--anywhere")
    assert "1 rows are lines that cannot be read" in result.stdout
    assert "401 rows" in result.stdout
    assert CANARY not in result.output
