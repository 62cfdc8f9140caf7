"""The package as it is built, and a project of a user beside it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"


def build(target: str, out: Path, source: Path = ROOT) -> Path:
    """Build `wheel` or `sdist` from a folder of sources into `out`; nothing else is written."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=120)
    (built,) = out.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


def unpack(wheel: Path, folder: Path) -> Path:
    """The wheel's files, as they would lie in site-packages."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def write_project(folder: Path) -> Path:
    """A project whose own packages have the names of our folders, and would be noticed."""
    for name in ("flows", "tasks", "schemas"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"raise RuntimeError('the project\\'s own {name}')\n")
    return folder


_BLOCK = """
import importlib.util, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

_find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {names!r} else _find_spec(name, package)
sys.meta_path.insert(0, Blocked())
"""


def run_python(
    code: str, project: Path, *, site: Path | None = None, without: set[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run code in a project, whose folder comes first on the path.

    Args:
        code: What to run.
        project: Where.
        site: Where ppsyn is; by default where this Python has it.
        without: Modules that are made to look as if they were not installed.
    """
    blocked = _BLOCK.format(names=without) if without else ""
    path = os.pathsep.join(str(part) for part in (project, site) if part is not None)
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", f"{blocked}\n{code}"]
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
