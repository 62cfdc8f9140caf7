"""Raw columns to integer codes, from the public schema alone."""

from ppsyn.data.encoding.table import REFUSED, EncodedTable, encode, encode_marked, refusal_of

__all__ = ["REFUSED", "EncodedTable", "encode", "encode_marked", "refusal_of"]
