"""One run of a benchmark: a mechanism on a table, measured. Every number here is as private as the table."""

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ppsyn.benchmark.classify import FOLDS, cross_validate, targets_of
from ppsyn.benchmark.contenders import Made, contender
from ppsyn.benchmark.results import Row
from ppsyn.benchmark.tables import digest_of, open_table, random_workload
from ppsyn.code_version import code_version
from ppsyn.data.encoding import EncodedTable
from ppsyn.domain import Clique
from ppsyn.evaluation import workload_error
from ppsyn.evaluation.queries import all_marginals, range_error, range_queries
from ppsyn.schemas.benchmark import BenchmarkRun

_ROOT = Path(__file__).resolve().parents[1]
_NO_PART = {
    "asked.py",
    "engine.py",
    "generation.py",
    "plots.py",
    "processes.py",
    "report.py",
    "summary.py",
    "writing.py",
}
"""Modules of this folder that change no number of a run."""


@cache
def code_digest() -> str:
    """By which the code of a run is known again: what a release runs, and what measures it."""
    hashed = hashlib.sha256(code_version().model_dump_json().encode())
    hashed.update(version("scikit-learn").encode())
    for folder in ("benchmark", "research"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            if path.name not in _NO_PART:
                content = path.read_bytes()
                hashed.update(f"{path.relative_to(_ROOT).as_posix()} {len(content)}\n".encode() + content)
    return hashed.hexdigest()[:16]


@dataclass(slots=True)
class _Mechanism:
    """A mechanism that notes what it takes."""

    run: BenchmarkRun
    workload: tuple[Clique, ...]
    made: list[Made] = field(default_factory=list[Made])
    seconds: list[float] = field(default_factory=list[float])

    def make(self, table: EncodedTable, seed: int) -> EncodedTable:
        run, began = self.run, time.perf_counter()
        made = contender(run.mechanism)(table, self.workload, run.epsilon, run.delta, run.model_mb, seed)
        self.seconds.append(time.perf_counter() - began)
        self.made.append(made)
        return made.synthetic


def measure(run: BenchmarkRun) -> Row:
    """Run the mechanism and measure what it makes."""
    table = open_table(run.data_dir, run.dataset)
    mechanism = _Mechanism(run, random_workload(table.domain, run.degree, seed=run.workload_seed))
    errors: dict[str, float | None] = {}
    if set(run.metrics) != {"classification"}:
        errors |= _distances(run, table, mechanism.make(table, run.seed), mechanism.workload)
    rates = _classify(run, table, mechanism) if "classification" in run.metrics else {}
    return Row(
        dataset=run.dataset,
        mechanism=run.mechanism,
        epsilon=run.epsilon,
        seed=run.seed,
        workload_error=errors.get("workload_error"),
        range_3_error=errors.get("range_3_error"),
        range_5_error=errors.get("range_5_error"),
        classification_error=_mean(rates.values()),
        one_way_error=errors.get("one_way_error"),
        two_way_error=errors.get("two_way_error"),
        three_way_error=errors.get("three_way_error"),
        seconds=_mean(mechanism.seconds),
        rounds=_mean(made.rounds for made in mechanism.made),
        model_size_mb=_mean(made.model_mb for made in mechanism.made),
        is_private=all(made.is_private for made in mechanism.made),
        degree=run.degree,
        workload_seed=run.workload_seed,
        model_mb=run.model_mb,
        delta=run.delta,
        metrics=",".join(run.metrics),
        classification_errors=json.dumps(rates),
        table=digest_of(table),
        code=run.code,
    )


def _distances(
    run: BenchmarkRun, table: EncodedTable, synthetic: EncodedTable, workload: tuple[Clique, ...]
) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    if "workload" in run.metrics:
        found["workload_error"] = workload_error(table, synthetic, workload)
    if "ways" in run.metrics:
        for degree, name in ((1, "one_way_error"), (2, "two_way_error"), (3, "three_way_error")):
            cliques = all_marginals(table.domain, degree)
            found[name] = workload_error(table, synthetic, cliques) if cliques else None
    if "ranges" in run.metrics:
        for degree in (3, 5):
            queries = range_queries(table.domain, degree, run.workload_seed)
            found[f"range_{degree}_error"] = range_error(table, synthetic, queries)
    return found


def _classify(run: BenchmarkRun, table: EncodedTable, mechanism: _Mechanism) -> dict[str, float]:
    """Every fold's rows are made with a seed of their own."""
    targets = targets_of(run.dataset, table.domain)
    if not targets:
        return {}
    return cross_validate(table, targets, lambda rows, fold: mechanism.make(rows, FOLDS * run.seed + fold), run.seed)


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(np.mean(found)) if found else None
