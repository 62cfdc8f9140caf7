"""Raw columns to integer codes and back, from the public schema alone."""

from ppsyn.discretize.table import EncodedTable, decode, domain_of, encode

__all__ = ["EncodedTable", "decode", "domain_of", "encode"]
