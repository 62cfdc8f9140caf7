"""Differentially private synthetic tables from partitioned marginals."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ppsyn.api import synthesize
    from ppsyn.errors import PPSynError
    from ppsyn.schemas.table import TableSchema
    from ppsyn.synthesis import Synthesis
    from ppsyn.synthesis_files import load, save

__all__ = ["PPSynError", "Synthesis", "TableSchema", "load", "save", "synthesize"]

_HOMES = {
    "synthesize": "ppsyn.api",
    "PPSynError": "ppsyn.errors",
    "load": "ppsyn.synthesis_files",
    "save": "ppsyn.synthesis_files",
    "Synthesis": "ppsyn.synthesis",
    "TableSchema": "ppsyn.schemas.table",
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for: all of it together takes seconds."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
