"""Which code computes the answer, to the last bit."""

import hashlib
import platform
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm

from ppsyn.schemas.run import CodeVersion

_LIBRARIES = ("jax", "jinja2", "markupsafe", "mbi", "numba", "numpy", "opendp", "pandas", "pyarrow", "scipy")
_ROOT = Path(__file__).resolve().parent
_OTHER = {"benchmark", "evaluation", "flows", "quality", "schema_draft", "selftest", "tasks"}
"""Folders that compute nothing of a release. `reports` does: an audit compares the bytes of the page, so a run that is
resumed has to be finished by the code that its record names."""
_KINDS = {".py", ".j2", ".css"}
"""The report of a release is made from templates and a style sheet as well."""


@cache
def code_version() -> CodeVersion:
    """The code that runs here."""
    return CodeVersion(
        ppsyn=version("ppsyn"),
        source=_source_digest(),
        python=platform.python_version(),
        libraries={name: version(name) for name in _LIBRARIES},
        machine=f"{platform.machine()} {llvm.get_host_cpu_name()}",
    )


def _source_digest() -> str:
    hashed = hashlib.sha256()
    for path in _sources():
        content = path.read_bytes()
        hashed.update(f"{path.relative_to(_ROOT).as_posix()} {len(content)}\n".encode())
        hashed.update(content)
    return hashed.hexdigest()


def _sources() -> Iterator[Path]:
    """The files that compute a release; `schemas` may be a link, into which a search from above would not go."""
    yield from sorted(_ROOT.glob("*.py"))
    for folder in sorted(path for path in _ROOT.iterdir() if path.is_dir() and path.name not in _OTHER):
        yield from sorted(path for path in folder.rglob("*") if path.suffix in _KINDS)
