"""Exact counts of an encoded table: private values, for the curator only."""

from ppsyn.data.marginals.counter import ROOM_MB, Rows, TableCounter

__all__ = ["ROOM_MB", "Rows", "TableCounter"]
