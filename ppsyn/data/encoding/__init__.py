"""Raw columns to integer codes, from the public schema alone."""

from ppsyn.data.encoding.rules import encode, encode_rows, rows_broken
from ppsyn.data.encoding.table import REFUSED, EncodedTable, check_refusals, encode_marked, refusal_of

__all__ = [
    "REFUSED",
    "EncodedTable",
    "check_refusals",
    "encode",
    "encode_marked",
    "encode_rows",
    "refusal_of",
    "rows_broken",
]
