import importlib.util
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from ppsyn.code_version import code_version
from ppsyn.schemas.run import CodeVersion

ROOT = Path(__file__).parents[2]
_NOT_COUNTED = ("benchmark", "evaluation", "flows", "quality", "schema_draft", "selftest", "tasks")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is installed, to be changed."""
    folder = tmp_path_factory.mktemp("sources")
    shutil.copytree(ROOT / "ppsyn", folder / "ppsyn", ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    return folder


def digest(sources: Path) -> str:
    """What the copy says of itself, read anew."""
    spec = importlib.util.spec_from_file_location("copied_version", sources / "ppsyn" / "code_version.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.code_version().source


def files(sources: Path) -> Iterator[Path]:
    return iter(sorted(path for path in (sources / "ppsyn").rglob("*") if path.suffix in {".py", ".j2", ".css"}))


def is_counted(path: Path) -> bool:
    return not set(_NOT_COUNTED) & set(path.parts[:-1])


def test_a_copy_has_the_digest_of_the_original(sources: Path) -> None:
    assert digest(sources) == digest(sources) == digest(ROOT)


def test_the_digest_changes_with_every_file_that_counts(sources: Path) -> None:
    before, seen = digest(sources), set[str]()
    counted = [path for path in files(sources) if is_counted(path)]
    for path in counted:
        text = path.read_bytes()
        path.write_bytes(text + b"\n")
        seen.add(digest(sources))
        path.write_bytes(text)
    assert len(seen - {before}) == len(counted) > 60


def test_the_templates_and_the_style_of_the_report_count_and_those_of_the_owners_report_do_not(sources: Path) -> None:
    templates = {path.name: is_counted(path) for path in files(sources) if path.suffix != ".py"}
    assert templates == {
        "base.html.j2": True,
        "disclosure-control.html.j2": True,
        "overview.html.j2": True,
        "owner_report.html.j2": False,
        "parts.html.j2": True,
        "privacy-statement.html.j2": True,
        "quality.html.j2": True,
        "release.html.j2": True,
        "style.css": True,
    }


def test_the_digest_changes_with_any_line(sources: Path) -> None:
    path = sources / "ppsyn" / "privacy" / "requests.py"
    text, before = path.read_text(encoding="utf-8"), digest(sources)
    lines = text.splitlines(keepends=True)
    for number in range(0, len(lines), 7):
        path.write_text("".join([*lines[:number], "# \n", *lines[number:]]), encoding="utf-8")
        assert digest(sources) != before
    path.write_text(text, encoding="utf-8")
    assert digest(sources) == before


def test_the_digest_does_not_change_with_what_no_release_can_reach(sources: Path) -> None:
    before = digest(sources)
    others = [path for path in files(sources) if not is_counted(path)]
    assert others
    for path in others:
        path.write_bytes(path.read_bytes() + b"\n")
    (sources / "ppsyn" / "notes.txt").write_text("x", encoding="utf-8")
    (sources / "ppsyn" / "benchmark" / "more.py").write_text("x", encoding="utf-8")
    assert digest(sources) == before


def test_the_digest_changes_when_a_module_is_added_removed_or_renamed(sources: Path) -> None:
    added, seen = sources / "ppsyn" / "added.py", {digest(sources)}
    added.write_text("A = 1\n", encoding="utf-8")
    seen.add(digest(sources))
    added.rename(sources / "ppsyn" / "added2.py")
    seen.add(digest(sources))
    (sources / "ppsyn" / "added2.py").rename(sources / "ppsyn" / "schemas" / "added2.py")
    seen.add(digest(sources))
    assert len(seen) == 4
    (sources / "ppsyn" / "schemas" / "added2.py").unlink()
    assert digest(sources) in seen


def test_a_line_that_moves_from_one_module_to_the_next_changes_the_digest(sources: Path) -> None:
    first, second = sources / "ppsyn" / "zz1.py", sources / "ppsyn" / "zz2.py"
    first.write_text("A = 1\nB = 2\n", encoding="utf-8")
    second.write_text("C = 3\n", encoding="utf-8")
    before = digest(sources)
    first.write_text("A = 1\n", encoding="utf-8")
    second.write_text("B = 2\nC = 3\n", encoding="utf-8")
    assert digest(sources) != before
    first.unlink()
    second.unlink()


def test_the_version_names_what_computes_the_answer() -> None:
    code = code_version()
    assert code.ppsyn == version("ppsyn")
    assert code.libraries["numpy"] == version("numpy")
    assert code.source == digest(ROOT)
    assert code.machine


def test_the_version_is_the_same_twice_and_survives_json() -> None:
    code = code_version()
    assert code_version() == code
    assert CodeVersion.model_validate_json(code.model_dump_json()) == code
