"""Raw columns to integer codes and back, from the public schema alone."""

from ppsyn.discretize.encoding import REFUSED, refusal_of
from ppsyn.discretize.table import EncodedTable, decode, domain_of, encode, encode_marked

__all__ = ["REFUSED", "EncodedTable", "decode", "domain_of", "encode", "encode_marked", "refusal_of"]
