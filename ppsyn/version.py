"""Which code computes the answer, to the last bit."""

import hashlib
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm

from schemas.run import CodeVersion

_LIBRARIES = ("jax", "mbi", "numba", "numpy", "opendp", "pandas", "pyarrow", "scipy")
_ROOT = Path(__file__).resolve().parent
_OTHER = {"benchmark", "private_report", "research"}
"""Parts that no release can reach."""


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
    for package in (_ROOT, _ROOT.parent / "schemas"):
        for path in sorted(package.rglob("*.py")):
            if _OTHER.isdisjoint(path.relative_to(package).parts):
                content = path.read_bytes()
                hashed.update(f"{package.name}/{path.relative_to(package).as_posix()} {len(content)}\n".encode())
                hashed.update(content)
    return hashed.hexdigest()
