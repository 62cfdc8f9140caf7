"""Raw columns to integer codes, from the public schema alone."""

from ppsyn.data.encoding.columns import REFUSED, refusal_of
from ppsyn.data.encoding.table import EncodedTable, encode, encode_marked

__all__ = ["REFUSED", "EncodedTable", "encode", "encode_marked", "refusal_of"]
