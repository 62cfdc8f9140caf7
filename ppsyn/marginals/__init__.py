"""Exact counts of an encoded table: private values, for the curator only."""

from ppsyn.marginals.counter import ROOM_MB, Rows, TableCounter

__all__ = ["ROOM_MB", "Rows", "TableCounter"]
