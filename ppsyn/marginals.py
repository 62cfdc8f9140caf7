"""Exact counts of an encoded table: private values, for the curator only."""

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.discretize import EncodedTable
from ppsyn.domain import Clique


class TableCounter:
    """Exact marginals of an encoded table in memory, each counted once."""

    def __init__(self, private_table: EncodedTable) -> None:
        """Count `private_table`."""
        self._table = private_table
        self._known: dict[Clique, Ints] = {}

    def __repr__(self) -> str:
        """Show nothing of the table."""
        return "TableCounter()"

    def counts(self, clique: Clique) -> Ints:
        """Exact counts of the clique's cells, flat in C order."""
        if clique not in self._known:
            domain, columns = self._table.domain, self._table.columns
            cells = np.zeros(len(columns[clique[0]]), np.int64)
            for name in clique:
                cells *= domain[name].size
                cells += columns[name]
            self._known[clique] = np.bincount(cells, minlength=domain.size(clique)).astype(np.int64)
        return self._known[clique]
