"""Runs of a benchmark: a mechanism on a table, measured, in this process or in others.

Every number here is as private as the table.
"""

import hashlib
import json
import multiprocessing
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.benchmark.contenders import Made, contender
from ppsyn.benchmark.results import Row, read_row
from ppsyn.benchmark.tables import digest_of, open_table, random_workload
from ppsyn.code_version import code_version
from ppsyn.data.encoding import EncodedTable
from ppsyn.domain import Clique, Domain
from ppsyn.errors import ConfigError, InvariantError, PPSynError
from ppsyn.evaluation import workload_error
from ppsyn.evaluation.metrics import Target, all_marginals, misclassified, range_error, range_queries, rows_of
from ppsyn.schemas.benchmark import BenchmarkRun, BenchmarkSettings
from ppsyn.worker_process import prepare

_ROOT = Path(__file__).resolve().parents[1]
_OUTSIDE_RUNS = {"options.py", "plots.py", "summary.py"}
"""Modules of this folder that change no number of a run."""
_STARTED: dict[str, Future[Row]] = {}


@cache
def code_digest() -> str:
    """By which the code of a run is known again: what a release runs, and what measures it."""
    hashed = hashlib.sha256(code_version().model_dump_json().encode())
    hashed.update(version("scikit-learn").encode())
    for path in measuring_sources():
        content = path.read_bytes()
        hashed.update(f"{path.relative_to(_ROOT).as_posix()} {len(content)}\n".encode() + content)
    return hashed.hexdigest()[:16]


def measuring_sources() -> list[Path]:
    """The files that measure a run, beside those that a release runs."""
    files = (path for folder in ("benchmark", "evaluation") for path in (_ROOT / folder).rglob("*.py"))
    return sorted(path for path in files if path.name not in _OUTSIDE_RUNS)


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


def missing_runs(settings: BenchmarkSettings) -> list[BenchmarkRun]:
    """The runs that are still to be done: with these settings and this code, on these very tables."""
    return [run for run, row in _runs_and_rows(settings) if row is None]


def finished_rows(settings: BenchmarkSettings) -> list[Row]:
    """What was found so far, with these settings and this code, on these very tables."""
    return [row for _, row in _runs_and_rows(settings) if row is not None]


def _runs_and_rows(settings: BenchmarkSettings) -> Iterator[tuple[BenchmarkRun, Row | None]]:
    digests = {name: digest_of(open_table(settings.data_dir, name)) for name in settings.datasets}
    for run in settings.runs(code_digest()):
        yield run, read_row(Path(settings.out), run, digests[run.dataset])


@contextmanager
def start_runs(runs: Sequence[BenchmarkRun], jobs: int) -> Generator[None]:
    """Have `runs` done in `jobs` processes, in their order. What is not done when the block ends is given up."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), prepare)
    try:
        _STARTED.update({run.name: pool.submit(_measure, run) for run in runs})
        yield
    finally:
        waiting = [run.name for run in runs if not _STARTED.pop(run.name).done()]
        for child in set(multiprocessing.active_children()) - others if waiting else ():
            child.terminate()
        pool.shutdown(cancel_futures=True)


def row_of(run: BenchmarkRun) -> Row:
    """The row of a run: of a process that does it, or else done here and now."""
    return _STARTED[run.name].result() if run.name in _STARTED else measure(run)


def _measure(run: BenchmarkRun) -> Row:
    """As `measure`, with errors that can travel: those with facts of their own would not arrive."""
    try:
        return measure(run)
    except InvariantError:
        raise
    except PPSynError as error:
        raise ConfigError(str(error)) from None


FOLDS = 5

Make: TypeAlias = Callable[[EncodedTable, int], EncodedTable]
"""From the rows to learn from and the number of the fold to synthetic rows."""


TARGETS: Mapping[str, tuple[Target, ...]] = {
    "adult": (
        Target("income above 50K", "income>50K", 1),
        Target("income above 50K", "income", 1),
        Target("male", "sex", 1),
        Target("bachelor's degree or more", "education-num", 12, hidden=("education",)),
    ),
    "br2000": (Target("attribute 5", "5", 1), Target("attribute 7", "7", 1), Target("attribute 13", "13", 1)),
}
"""By table. The bundled Adult and that of the paper call the income differently."""


def targets_of(dataset: str, domain: Domain) -> tuple[Target, ...]:
    """What can be classified in a table; nothing in one that is not known."""
    return tuple(target for target in TARGETS.get(dataset, ()) if target.attribute in domain.rank)


def cross_validate(private_table: EncodedTable, targets: Sequence[Target], make: Make, seed: int) -> dict[str, float]:
    """The misclassification rate of each target, averaged over the folds. Private.

    Args:
        private_table: The table.
        targets: What to classify.
        make: The mechanism.
        seed: Of the division into folds; mechanisms with the same seed have the same folds.
    """
    rates: dict[str, list[float]] = {target.name: [] for target in targets}
    for fold, (learned, tested) in enumerate(_folds(private_table, seed)):
        synthetic = make(learned, fold)
        for target in targets:
            rates[target.name].append(misclassified(synthetic, tested, target))
    return {name: float(np.mean(found)) for name, found in rates.items()}


def _folds(table: EncodedTable, seed: int) -> Iterator[tuple[EncodedTable, EncodedTable]]:
    """Each time four parts to learn from and one to test on."""
    rows = len(table.columns[table.domain.names[0]])
    order: Ints = np.random.default_rng(seed).permutation(rows)
    parts = np.array_split(order, FOLDS)
    for fold, tested in enumerate(parts):
        learned = np.concatenate([part for number, part in enumerate(parts) if number != fold])
        yield rows_of(table, learned), rows_of(table, tested)
