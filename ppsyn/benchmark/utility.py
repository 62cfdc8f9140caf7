"""Workload error and time of whole releases of benchmark tables.

python -m ppsyn.benchmark.utility --data-dir DIR --datasets br2000,adult --epsilons 0.1 --seeds 5
"""

import argparse
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from ppsyn.benchmark.tables import random_workload, read_table
from ppsyn.discretize import EncodedTable
from ppsyn.domain import Clique
from ppsyn.dp.budget import rho_from
from ppsyn.dp.curator import TableCurator
from ppsyn.dp.ledger import MemoryAccount
from ppsyn.generate import generate
from ppsyn.marginals import TableCounter
from ppsyn.metrics import workload_error
from ppsyn.synthesizer import make_plan, run, start
from schemas.config import AlgorithmConfig, WorkloadConfig

DELTA = 1e-9


def release_error(
    table: EncodedTable, workload: tuple[Clique, ...], rho: Fraction, config: AlgorithmConfig, seed: int
) -> tuple[float, int]:
    """One release's workload error and its number of rounds."""
    plan = make_plan(table.domain, rho, 1, config)
    state = run(TableCurator(TableCounter(table), MemoryAccount(rho)), start(plan))
    codes = generate(state.model.steps(), table.domain, round(state.model.total), seed)
    return workload_error(table, EncodedTable(table.domain, codes), workload), len(state.rounds)


def main() -> None:
    """Print one line for each dataset and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--datasets", default="br2000,adult")
    parser.add_argument("--epsilons", default="0.1")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--model-mb", type=float, default=1.0)
    parser.add_argument("--partition", default="balanced", choices=["balanced", "merge-split", "cells"])
    options = parser.parse_args()
    for name in options.datasets.split(","):
        table = read_table(options.data_dir, name)
        workload = random_workload(table.domain)
        config = AlgorithmConfig(
            partition=options.partition, model_mb=options.model_mb, workload=WorkloadConfig(cliques=workload)
        )
        for epsilon in map(float, options.epsilons.split(",")):
            errors, seconds, rounds = list[float](), list[float](), list[int]()
            for seed in range(options.seeds):
                begun = time.perf_counter()
                error, count = release_error(table, workload, rho_from(epsilon, DELTA), config, seed)
                seconds.append(time.perf_counter() - begun)
                errors.append(error)
                rounds.append(count)
            sys.stdout.write(
                f"{name} epsilon={epsilon:g} partition={options.partition}: workload error "
                f"{np.mean(errors):.4f} (sd {np.std(errors, ddof=1):.4f}, {options.seeds} runs: "
                f"{' '.join(f'{error:.4f}' for error in errors)}), {np.mean(rounds):.0f} rounds, "
                f"{np.median(seconds):.1f} s a run\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
