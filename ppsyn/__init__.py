"""Differentially private synthetic tables from partitioned marginals."""

from ppsyn.api import synthesize
from ppsyn.errors import PPSynError
from ppsyn.files import load, save
from ppsyn.synthesis import Marginal, Synthesis
from schemas.table import TableSchema

__all__ = ["Marginal", "PPSynError", "Synthesis", "TableSchema", "load", "save", "synthesize"]
