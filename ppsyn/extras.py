"""What each extra of the package installs, and the sentence for those who lack one."""

from collections.abc import Mapping
from importlib.util import find_spec

from ppsyn.errors import MissingExtraError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "pipeline": (
        "click",
        "cryptography",
        "dp_accounting",
        "great_expectations",
        "jinja2",
        "markupsafe",
        "mbi",
        "prefect",
        "prefect_dask",
        "rich",
    ),
    "sql": ("psycopg", "sqlalchemy", "sqlglot"),
    "mbi": ("jax", "mbi"),
    "benchmark": ("matplotlib", "sklearn"),
}
"""By extra, the modules without which what it is for cannot run."""


def is_installed(extra: str) -> bool:
    """Whether all modules of an extra can be imported. Imports none."""
    return all(find_spec(name) is not None for name in EXTRAS[extra])


def require(extra: str, purpose: str) -> None:
    """Check that an extra is installed, before a module imports what it brings.

    Args:
        extra: One of `EXTRAS`.
        purpose: What needs it, as the subject of a sentence.

    Raises:
        MissingExtraError: If it is not.
    """
    if not is_installed(extra):
        raise MissingExtraError(extra, purpose)
