"""Benchmark tables: integer codes in `NAME.csv.gz` beside domain sizes in `NAME-domain.json`."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from ppsyn.discretize import EncodedTable
from ppsyn.domain import Attribute, Clique, Domain


def read_table(folder: Path, name: str) -> EncodedTable:
    """The table called `name` in `folder`."""
    sizes: dict[str, int] = json.loads((folder / f"{name}-domain.json").read_text(encoding="utf-8"))
    domain = Domain(tuple(Attribute(attribute, size) for attribute, size in sizes.items()))
    frame = pd.read_csv(folder / f"{name}.csv.gz")
    return EncodedTable(domain, {attribute: frame[attribute].to_numpy(np.int32) for attribute in sizes})


def random_workload(
    domain: Domain, degree: int = 3, count: int = 64, max_cells: int = 10_000, seed: int = 0
) -> tuple[Clique, ...]:
    """`count` marginals drawn from all of `degree` attributes with at most `max_cells` cells."""
    fits = [clique for clique in combinations(domain.names, degree) if domain.size(clique) <= max_cells]
    chosen = np.random.default_rng(seed).choice(len(fits), min(count, len(fits)), replace=False)
    return tuple(fits[int(index)] for index in chosen.tolist())
