"""What is installed is one package, which needs little, runs beside other projects, and names the extra it lacks."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.wheels import ROOT, UV, build, run_python, unpack, write_project

from ppsyn.extras import EXTRAS

DATA = (
    "ppsyn/PRIVACY.md", "ppsyn/py.typed", "ppsyn/schemas/tables/adult.yaml", "ppsyn/reports/templates/release.html.j2",
    "ppsyn/reports/templates/style.css", "ppsyn/evaluation/templates/owner_report.html.j2",
)  # fmt: skip
OPTIONAL = {name for names in EXTRAS.values() for name in names}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(wheel, tmp_path_factory.mktemp("site"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project")


def files_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def sources() -> set[str]:
    """What of the sources under version control belongs into the wheel, by where it is there."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    ours = {name: f"ppsyn/{name}" for name in listed if name.split("/")[0] in ("flows", "tasks", "schemas")}
    ours |= {name: name for name in listed if name.startswith("ppsyn/")}
    return {inside for name, inside in ours.items() if not (ROOT / name).is_symlink() and (ROOT / name).is_file()}


def unpacked_sdist(folder: Path) -> Path:
    """The sources of an sdist, which is built in `folder`."""
    with tarfile.open(build("sdist", folder)) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    return source


def test_the_wheel_has_every_source_file_in_one_package_and_nothing_else(wheel: Path) -> None:
    inside = {name for name in files_in(wheel) if ".dist-info/" not in name}
    assert {name for name in inside if name.split("/")[0] != "ppsyn"} == set()
    assert sources() <= inside
    assert {Path(name).suffix for name in inside - sources()} <= {".py", ".j2", ".css", ".yaml", ".md"}  # not added yet
    assert set(DATA) <= inside


def test_a_wheel_built_from_the_sdist_is_the_same(wheel: Path, tmp_path: Path) -> None:
    source = unpacked_sdist(tmp_path)
    tops = {path.name for path in source.iterdir()}
    assert {"ppsyn", "flows", "tasks", "schemas"} <= tops
    assert tops.isdisjoint({"tests", "docs", "examples", "deployments"})
    assert files_in(build("wheel", tmp_path / "again", source)) == files_in(wheel)


def test_an_editable_installation_puts_no_folder_of_ours_among_the_packages() -> None:
    files = distribution("ppsyn").files or ()
    assert {str(file).split("/")[0] for file in files}.isdisjoint({"flows", "tasks", "schemas"})


def test_the_installed_library_is_found_beside_packages_of_the_same_names(site: Path, project: Path) -> None:
    code = "import json, sys; from ppsyn import *; import ppsyn; print(json.dumps([ppsyn.__file__, *sys.modules]))"
    done = run_python(code, project, site=site)
    assert (done.returncode, done.stderr) == (0, "")
    place, *modules = json.loads(done.stdout)
    assert Path(place).is_relative_to(site)
    assert {name.partition(".")[0] for name in modules}.isdisjoint({*OPTIONAL, "flows", "tasks", "schemas"})


def test_importing_the_package_imports_nothing_of_others(site: Path, project: Path) -> None:
    done = run_python("import sys, ppsyn; print('numpy' in sys.modules, 'pydantic' in sys.modules)", project, site=site)
    assert done.stdout == "False False\n"


LIBRARY = """
import json
import pandas as pd
import ppsyn
columns = [{"name": name, "kind": "integer", "lower": 0, "upper": 3} for name in "abc"]
schema = ppsyn.TableSchema.model_validate({"name": "t", "columns": columns})
frame = pd.DataFrame({name: [0, 1, 2, 3] * 25 for name in "abc"})
release = ppsyn.synthesize(frame, schema, rho=1.0, rounds=1)
ppsyn.save(release, "saved")
assert ppsyn.load("saved").table.equals(release.table)
"""
MISSING: Mapping[str, tuple[str, str]] = {
    "a flow": ("import ppsyn.flows.release", "pipeline"),
    "a task": ("import ppsyn.tasks.release", "pipeline"),
    "a progress bar": ("ppsyn.synthesize(frame, schema, rho=1.0, rounds=1, progress=True)", "pipeline"),
    "another estimator": ("ppsyn.synthesize(frame, schema, rho=1.0, estimator='mbi')", "mbi"),
    "a model for mbi": ("release.to_mbi()", "mbi"),
    "a query": (
        "from ppsyn.data.sources import names_of; from ppsyn.schemas.release import SqlSource; "
        "names_of(SqlSource(kind='sql', url='sqlite:///t.db', query='SELECT 1'))",
        "sql",
    ),
    "the benchmark": ("import ppsyn.benchmark.runs", "benchmark"),
    "the self-test": ("import ppsyn.selftest.suite", "benchmark"),
    "a classifier": (
        "from ppsyn.data.encoding import encode; from ppsyn.evaluation.metrics import Target, misclassified; "
        "table = encode(frame, schema); misclassified(table, table, Target('a', 'a', 1))",
        "benchmark",
    ),
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What each of `MISSING` says where there is no extra, after the library has made a release there."""
    attempts = f"""{LIBRARY}
said = {{}}
for name, code in {[(name, code) for name, (code, _) in MISSING.items()]!r}:
    try:
        exec(code)
    except ppsyn.PPSynError as error:
        said[name] = str(error)
print(json.dumps(said))
"""
    done = run_python(attempts, write_project(tmp_path_factory.mktemp("bare")), without=OPTIONAL)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize(("name", "extra"), [(name, extra) for name, (_, extra) in MISSING.items()], ids=MISSING)
def test_what_lacks_an_extra_says_so_in_a_sentence(name: str, extra: str, refusals: Mapping[str, str]) -> None:
    assert refusals[name].endswith(f" needs the extra {extra!r} of ppsyn. Run: pip install 'ppsyn[{extra}]'")


def test_the_command_without_its_extra_prints_the_sentence_alone(project: Path) -> None:
    done = run_python("from ppsyn.__main__ import main; main()", project, without=set(EXTRAS["pipeline"]))
    assert done.returncode == 2
    assert done.stderr == "The command line needs the extra 'pipeline' of ppsyn. Run: pip install 'ppsyn[pipeline]'\n"


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_installs_the_modules_that_it_is_known_by(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = distributions(extra, project["optional-dependencies"])
    modules = {name.replace("_", "-").replace("sklearn", "scikit-learn") for name in EXTRAS[extra]}
    assert modules <= installed
    assert modules.isdisjoint(Requirement(text).name for text in project["dependencies"])


def pythons() -> list[str]:
    """The first version of each Python that the project says it runs on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    minors = (text.removeprefix("Programming Language :: Python :: 3.") for text in project["classifiers"])
    return [f"3.{minor}.0" for minor in minors if minor.isdecimal()]


@pytest.mark.slow
@pytest.mark.parametrize("python", pythons())
def test_the_pinned_versions_install_on_the_first_version_of_each_python(python: str) -> None:
    """Systems keep early ones for years: Debian 12 has 3.11.2. A version that is not pinned may break tomorrow."""
    compiling = (UV, "pip", "compile", "--quiet", "--python-version", python, "--only-binary", ":all:", "--no-annotate")
    asked = ("--no-header", "--all-extras", "--group", "dev", "--constraint", "constraints.txt", "pyproject.toml")
    done = subprocess.run((*compiling, *asked), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pinned = set((ROOT / "constraints.txt").read_text(encoding="utf-8").split())
    assert {line.split(" ;")[0] for line in done.stdout.splitlines() if not line.startswith("ppsyn")} <= pinned


def distributions(extra: str, extras: Mapping[str, list[str]]) -> set[str]:
    """What an extra asks for, with what the extras ask for that it names."""
    found: set[str] = set()
    for requirement in map(Requirement, extras[extra]):
        named = requirement.extras if requirement.name == "ppsyn" else ()
        found |= {requirement.name}.union(*(distributions(other, extras) for other in named))
    return found


def execute(*command: object, home: Path, is_checked: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program in a user's project, whose own packages come first on the path."""
    environment = {**os.environ, "PYTHONPATH": str(home), "PREFECT_HOME": str(home / "prefect")}
    words = [str(word) for word in command]
    return subprocess.run(
        words, cwd=home, env=environment, check=is_checked, capture_output=True, text=True, timeout=500
    )


@pytest.mark.slow
@pytest.mark.parametrize("origin", ["checkout", "sdist"])
def test_an_installed_wheel_releases_the_example_beside_a_project_with_our_names(origin: str, tmp_path: Path) -> None:
    """What is installed is all that is used: the environment is empty but for the wheel and what it asks for."""
    built = build("wheel", tmp_path / "dist", ROOT if origin == "checkout" else unpacked_sdist(tmp_path))
    project, programs = write_project(tmp_path / "project"), tmp_path / "venv" / "bin"
    execute(UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv", home=tmp_path)
    pip = (UV, "pip", "install", "--quiet", "--python", programs / "python", "--constraint", ROOT / "constraints.txt")
    execute(*pip, built, home=tmp_path)
    frozen = execute(UV, "pip", "freeze", "--quiet", "--python", programs / "python", home=tmp_path).stdout.splitlines()
    assert len(frozen) <= 25, frozen
    refused = execute(programs / "ppsyn", home=project, is_checked=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    execute(*pip, f"{built}[pipeline]", home=tmp_path)
    packages = next((tmp_path / "venv" / "lib").glob("python*")) / "site-packages"
    assert {path.name for path in packages.iterdir()}.isdisjoint({"flows", "tasks", "schemas"})
    shutil.copytree(ROOT / "examples" / "adult", project / "example")
    schema = packages / "ppsyn" / "schemas" / "tables" / "adult.yaml"
    changed = (f"schema={schema}", f"stores.root={project / 'out'}", "algorithm.rounds=5")
    settings = [word for setting in changed for word in ("--set", setting)]
    execute(programs / "ppsyn", "release", "example/release.yaml", *settings, "--quiet", home=project)
    (manifest,) = project.glob("out/releases/adult/*/manifest.json")
    execute(programs / "ppsyn", "audit", manifest.parent, "--account", project / "out", home=project)
