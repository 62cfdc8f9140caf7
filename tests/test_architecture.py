"""The claims, their tests and the code hold together."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import get_args

import click
import grimp
import pytest

import ppsyn
from ppsyn.flows.cli.main import main
from ppsyn.mechanisms import MECHANISMS
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.release import CsvSource
from ppsyn.schemas.types import Outside

ROOT = Path(__file__).parents[1]
PRIVACY = (ROOT / "ppsyn" / "PRIVACY.md").read_text(encoding="utf-8")
PACKAGES = ("ppsyn", "flows", "tasks", "schemas")
SOURCES = sorted({path.resolve() for package in PACKAGES for path in (ROOT / package).rglob("*.py")})

CLAIMS = re.findall(r"^## (C\d+)\.", PRIVACY, re.MULTILINE)
PARTS = ("Statement.", "Assumptions.", "Proof.", "Pseudo-code.", "Functions.", "Tests.")
NAMES = sorted(set(re.findall(r"`([^`\n]+)`", PRIVACY)))
FOREIGN = {"make_noisy_max"}
"""Of OpenDP."""

WORDS = {
    *FOREIGN, *ppsyn.__all__, *MECHANISMS, *PersonUnit.model_fields, *CsvSource.model_fields,
    *get_args(get_args(Outside)[0]),
}  # fmt: skip

LOOP = ("ppsyn.mechanisms", "ppsyn.model", "ppsyn.generation")
PRIVATE = ("ppsyn.privacy.curator", "ppsyn.privacy.noise", "ppsyn.data", "ppsyn.evaluation", "ppsyn.benchmark")

SEEDED = {"Generator", "PCG64", "SeedSequence", "BitGenerator", "default_rng"}
"""What may be had of numpy.random: streams that are given their seed."""


def privacy_tests() -> dict[str, list[str]]:
    """The names of the tests in each file of tests/privacy that is named after a claim."""
    return {
        path.name: [
            node.name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        ]
        for path in sorted((ROOT / "tests" / "privacy").glob("test_c*.py"))
    }


def claim_of(name: str) -> str | None:
    found = re.match(r"test_(c\d+)_", name)
    return found.group(1).upper() if found else None


def forbidden(source: str) -> list[str]:
    """What a module does that it must not, told by its syntax."""
    return [fault for node in ast.walk(ast.parse(source)) for fault in _faults(node)]


def _faults(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Assert():
            yield "assert"
        case ast.Call(func=ast.Name(id="print" | "eval" | "exec" as name)):
            yield name
        case ast.Call(func=ast.Attribute(attr="default_rng" | "PCG64" | "SeedSequence" as name), args=[], keywords=[]):
            yield f"{name} without a seed"
        case ast.Import(names=names):
            yield from (alias.name for alias in names if alias.name in ("pickle", "random", "marshal", "shelve"))
        case ast.ImportFrom(module="pickle" | "random" | "numpy.random" | "marshal" | "shelve" as module):
            yield module
        case ast.Attribute(value=ast.Attribute(attr="random", value=ast.Name(id="np" | "numpy")), attr=name):
            yield from {f"np.random.{name}"} - {f"np.random.{allowed}" for allowed in SEEDED}
        case ast.keyword(arg="allow_pickle", value=ast.Constant(value=True)):
            yield "allow_pickle"
        case _:
            pass


def test_the_claims_are_numbered_from_one_without_a_gap() -> None:
    assert [f"C{number}" for number in range(1, len(CLAIMS) + 1)] == CLAIMS
    assert len(CLAIMS) >= 8


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_has_all_its_parts(claim: str) -> None:
    section = PRIVACY.split(f"\n## {claim}.")[1].split("\n## ")[0]
    assert [part for part in PARTS if f"**{part}**" not in section] == []


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_has_tests(claim: str) -> None:
    assert claim in {claim_of(name) for names in privacy_tests().values() for name in names}


@pytest.mark.parametrize(("file", "names"), privacy_tests().items(), ids=privacy_tests())
def test_a_privacy_test_names_a_claim_that_exists_and_that_its_file_is_about(file: str, names: list[str]) -> None:
    assert names
    assert {claim_of(name) for name in names} == {claim_of(file)} <= set(CLAIMS)


def part_of(claim: str, part: str) -> list[str]:
    """What a part of a claim names."""
    section = PRIVACY.split(f"\n## {claim}.")[1].split("\n## ")[0]
    return re.findall(r"`([^`\n]+)`", section.split(f"**{part}**")[1].split("\n**")[0].split("\n\n")[0])


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_functions_of_a_claim_are_code(claim: str) -> None:
    functions = part_of(claim, "Functions.")
    assert functions
    assert [name for name in functions if not callable(code_named(name))] == []


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_tests_of_a_claim_begin_with_its_own(claim: str) -> None:
    files = part_of(claim, "Tests.")
    own = [f"tests/privacy/{file}" for file in privacy_tests() if claim_of(file) == claim]
    assert own
    assert set(own) <= set(files)
    assert files[0] in own


@pytest.mark.parametrize("name", NAMES)
def test_what_the_claims_name_exists(name: str) -> None:
    assert is_known(name)


@pytest.mark.parametrize(
    "name",
    [
        "privacy.noise.add_gaussian",
        "Crowd",
        "ppsyn nothing",
        "make nothing",
        "docs/nothing.md",
        "nothing: true",
        "held",
    ],
)
def test_what_does_not_exist_is_found_out(name: str) -> None:
    assert not is_known(name)


@pytest.mark.parametrize(("page", "told"), [("SECURITY.md", "(L1 to L{})"), ("CHANGELOG.md", "- L1 to L{} in ")])
def test_pages_that_count_the_limits_know_all(page: str, told: str) -> None:
    limits = re.findall(r"^- \*\*L(\d+)\.", PRIVACY, re.MULTILINE)
    assert limits == [str(number) for number in range(1, len(limits) + 1)]
    assert told.format(limits[-1]) in (ROOT / page).read_text(encoding="utf-8")


def test_the_page_of_claims_fits_the_width_of_the_code() -> None:
    assert [line for line in PRIVACY.splitlines() if len(line) > 120] == []


def is_known(name: str) -> bool:
    """Whether there is such code, such a file, command, mechanism, or setting."""
    first, *rest = name.split(" ")
    if "/" in name or name.endswith(".toml"):
        return (ROOT / name).exists()
    if first == "make":
        return re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE) is not None
    if first == "ppsyn" and rest:
        return command_named(rest) is not None
    return first.removesuffix(":") in WORDS or ("." in name and code_named(name) is not None)


def command_named(words: list[str]) -> object:
    """The command of these words."""
    command: object = main
    for word in words:
        command = command.commands.get(word) if isinstance(command, click.Group) else None
    return command


def code_named(name: str) -> object:
    """What has this name below ppsyn."""
    *above, last = f"ppsyn.{name}".split(".")
    for depth in range(len(above), 0, -1):
        try:
            found: object = importlib.import_module(".".join(above[:depth]))
        except ModuleNotFoundError:
            continue
        for attribute in above[depth:]:
            found = getattr(found, attribute, None)
        if depth == len(above) and not hasattr(found, last):
            with suppress(ModuleNotFoundError):
                return importlib.import_module(f"ppsyn.{name}")
        return getattr(found, last, None)
    return None


def test_claims_and_limits_that_the_code_cites_exist() -> None:
    cited = {found for path in SOURCES for found in re.findall(r"\b(?:[Cc]laims? |limit )([CL]\d+)", path.read_text())}
    limits = re.findall(r"^- \*\*(L\d+)\.", PRIVACY, re.MULTILINE)
    assert cited
    assert cited <= {*CLAIMS, *limits}


FIRST = """
import importlib, sys
for name in sys.argv[1:]:
    for loaded in [known for known in sys.modules if known.split(".")[0] == "ppsyn"]:
        del sys.modules[loaded]
    importlib.import_module(name)
"""


def test_every_module_that_sees_private_values_can_be_imported_before_all_others() -> None:
    paths = sorted(path for folder in ("privacy", "data", "runs") for path in (ROOT / "ppsyn" / folder).rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    done = subprocess.run([sys.executable, "-c", FIRST, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("ppsyn", include_external_packages=True, cache_dir=None)


@pytest.mark.parametrize("private", PRIVATE)
@pytest.mark.parametrize("public", LOOP)
def test_the_loop_cannot_reach_a_private_value(graph: grimp.ImportGraph, public: str, private: str) -> None:
    assert graph.find_shortest_chain(public, private, as_packages=True) is None


@pytest.mark.parametrize(
    "unsafe", ["ppsyn.benchmark.paper", "ppsyn.benchmark", "ppsyn.evaluation", "ppsyn.evaluation.schema_check"]
)
def test_a_release_cannot_reach_what_reads_the_table_without_noise(graph: grimp.ImportGraph, unsafe: str) -> None:
    for module in ("ppsyn", "ppsyn.api", "ppsyn.synthesis_files", "ppsyn.synthesis", "ppsyn.privacy.curator"):
        assert graph.find_shortest_chain(module, unsafe) is None


def test_only_the_mechanisms_know_the_noise_library_and_only_persons_and_the_server_draw_keys(
    graph: grimp.ImportGraph,
) -> None:
    assert graph.find_modules_that_directly_import("opendp") == {"ppsyn.privacy.noise"}
    assert graph.find_modules_that_directly_import("secrets") == {
        "ppsyn.data.contributions",
        "ppsyn.flows.ephemeral_server",
    }
    assert graph.find_modules_that_directly_import("ppsyn.privacy.noise") == {"ppsyn.privacy.curator"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_prints_pickles_asserts_nothing_and_has_no_global_randomness(path: Path) -> None:
    assert forbidden(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "assert x",
        "print(1)",
        "import pickle",
        "from pickle import loads",
        "import random",
        "np.random.seed(0)",
        "x = np.random.normal()",
        "rng = numpy.random.default_rng()",
        "from numpy.random import normal",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_the_search_for_forbidden_syntax_finds_it(source: str) -> None:
    assert forbidden(source)


def test_there_is_no_package_marker_under_tests_to_shadow_the_library() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []
