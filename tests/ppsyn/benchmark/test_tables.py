import json
from pathlib import Path

import numpy as np
import pandas as pd

from ppsyn.benchmark.tables import random_workload, read_table
from ppsyn.benchmark.utility import release_error
from ppsyn.dp.budget import rho_from
from schemas.config import AlgorithmConfig, WorkloadConfig

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}


def write_table(folder: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, size, 3_000) for name, size in SIZES.items()})
    frame.to_csv(folder / "toy.csv.gz", index=False)
    (folder / "toy-domain.json").write_text(json.dumps(SIZES), encoding="utf-8")


def test_a_table_comes_with_its_domain(tmp_path: Path) -> None:
    write_table(tmp_path)
    table = read_table(tmp_path, "toy")
    assert table.domain.shape(table.domain.names) == (3, 4, 2, 5)
    assert table.columns["d"].dtype == np.int32


def test_the_workload_depends_on_its_seed_alone(tmp_path: Path) -> None:
    write_table(tmp_path)
    domain = read_table(tmp_path, "toy").domain
    assert random_workload(domain, seed=1) == random_workload(domain, seed=1)
    assert all(len(clique) == 3 and domain.size(clique) <= 40 for clique in random_workload(domain, max_cells=40))


def test_a_release_of_a_benchmark_table_has_a_small_error_at_a_large_epsilon(tmp_path: Path) -> None:
    write_table(tmp_path)
    table = read_table(tmp_path, "toy")
    workload = random_workload(table.domain)
    config = AlgorithmConfig(workload=WorkloadConfig(cliques=workload), rounds=8)
    error, rounds = release_error(table, workload, rho_from(20.0, 1e-9), config, seed=0)
    assert error < 0.06
    assert rounds > 0
