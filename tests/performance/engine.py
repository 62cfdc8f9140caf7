"""Speed of the built-in engine beside mbi's estimator, on the measurements of a real run.

python -m performance.engine --data-dir DIR --dataset br2000 --epsilon 1 --rounds 10

A run of the loop is recorded first. Then, in a process of its own whose caches of machine code are
empty, both engines go through the recording: after the one-way marginals and after each round, fit
all measurements so far, starting from the engine's own last model, and compute the marginals of
every candidate clique. Compilation counts, imports do not. mbi uses the fastest of its three ways to
compute many marginals, found in the first round; only that one counts.
"""

import argparse
import math
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

import jax
import mbi  # pyright: ignore[reportMissingTypeStubs]  # it is typed, though without the marker
import numpy as np

from ppsyn.arrays import Floats
from ppsyn.benchmark.tables import random_workload, read_table
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Clique, Domain
from ppsyn.mechanisms.candidates import candidate_cliques
from ppsyn.mechanisms.loop import absorb, make_plan, next_request, start
from ppsyn.mechanisms.ppsyn import PPSyn, PPSynParameters
from ppsyn.model import mbi_adapter as exchange
from ppsyn.model.compression import Compression
from ppsyn.model.estimation import ENGINES, Effort, Fit, estimate_total
from ppsyn.model.graphical_model import GraphicalModel, uniform_model
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.budget import rho_from
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount
from ppsyn.privacy.requests import SelectRequest
from ppsyn.schemas.config import AlgorithmConfig, WorkloadConfig

DELTA = 1e-9
MODEL_MB = 1.0
EFFORT = Effort(5000, 1e-8)
MBI_EFFORT = Effort(20_000, 1e-8)
"""Enough for both to end well within 1e-3 of the optimum. mbi looks at its gain every 50 steps only."""

ROUNDS_KEPT = 3
"""mbi's compiled programs, hundreds a round, are dropped after so many rounds, or LLVM runs out of memory mappings.

A fit or an elimination compiled for one round's cliques serves no other round; a few small kernels might have.
"""

LEAST_RATIO = 20.0
LARGEST_DIFFERENCE = 1e-3
"""Of the last losses, relative, and of the last marginals, in total variation."""

COLD = {"JAX_ENABLE_COMPILATION_CACHE": "false", "JAX_ENABLE_X64": "true"}

Marginals: TypeAlias = Mapping[Clique, Floats]
Projection: TypeAlias = Callable[[mbi.MarkovRandomField, Sequence[Clique]], Marginals]
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """What a run measured.

    Attributes:
        cliques: Whose marginals the run needs after every fit.
        stages: All measurements before each selection.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    stages: tuple[tuple[Measurement, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """One engine's work at one stage."""

    fit_seconds: float
    project_seconds: float
    loss: float
    marginals: Marginals


def record(table: EncodedTable, epsilon: float, rounds: int) -> Recording:
    """Run the loop up to `rounds` rounds."""
    rho = rho_from(epsilon, DELTA)
    workload = WorkloadConfig(cliques=random_workload(table.domain))
    tree_only = PPSyn(PPSynParameters(off_tree_pairs=False))
    plan = make_plan(table.domain, rho, 1, AlgorithmConfig(max_model_size_mb=MODEL_MB, workload=workload), tree_only)
    curator, state = TableCurator(TableCounter(table), MemoryAccount(rho)), start(plan)
    stages: list[tuple[Measurement, ...]] = []
    while (request := next_request(state)) is not None:
        if isinstance(request, SelectRequest):
            stages.append(state.evidence)
            if len(stages) > rounds:
                break
        state = absorb(state, request, curator.answer(request))
    else:
        stages.append(state.evidence)
    return Recording(plan.domain, candidate_cliques(plan.domain, plan.workload), tuple(stages))


def time_tree(recording: Recording) -> Iterator[Timing]:
    """The built-in engine, stage by stage."""
    model: GraphicalModel | None = None
    for measurements in recording.stages:
        found, fit_seconds = _timed(partial(_fit_tree, recording.domain, measurements, model))
        model = found.model
        marginals, project_seconds = _timed(partial(_project_tree, model, recording.cliques))
        yield Timing(fit_seconds, project_seconds, _loss(marginals, measurements), marginals)


def _fit_tree(domain: Domain, measurements: Sequence[Measurement], warm: GraphicalModel | None) -> Fit:
    """The first model to start from counts too: to make it compiles half of the kernel."""
    return ENGINES["tree"](measurements, warm or uniform_model(Compression(domain)), EFFORT)


def _project_tree(model: GraphicalModel, cliques: Sequence[Clique]) -> Marginals:
    return {clique: model.project(clique) for clique in cliques}


def time_mbi(recording: Recording) -> Iterator[Timing]:
    """The mirror descent of mbi, stage by stage."""
    field: mbi.MarkovRandomField | None = None
    projection: Projection | None = None
    for stage, measurements in enumerate(recording.stages):
        if stage % ROUNDS_KEPT == 0:
            jax.clear_caches()
        field, fit_seconds = _timed(partial(_fit_mbi, recording.domain, measurements, field))
        if projection is None:
            projection, marginals, project_seconds = _fastest_projection(field, recording.cliques)
        else:
            marginals, project_seconds = _timed(partial(projection, field, recording.cliques))
        yield Timing(fit_seconds, project_seconds, _loss(marginals, measurements), marginals)


def _fit_mbi(
    domain: Domain, measurements: Sequence[Measurement], warm: mbi.MarkovRandomField | None
) -> mbi.MarkovRandomField:
    linears = zip(exchange.measurements_to_mbi(measurements), measurements, strict=True)
    field = mbi.estimation.MirrorDescent().estimate(  # pyright: ignore[reportUnknownMemberType]  # an untyped callback
        exchange.domain_to_mbi(domain),
        [
            replace(linear, noisy_measurement=measurement.target, stddev=measurement.scale)
            for linear, measurement in linears
        ],
        known_total=estimate_total(measurements),
        iters=MBI_EFFORT.iterations,
        warm_start=warm,
        tol=MBI_EFFORT.tolerance,
    )
    if not isinstance(field, mbi.MarkovRandomField):
        raise TypeError("Expected mirror descent to return potentials.")
    for clique in field.marginals.cliques:
        field.marginals[clique].values.block_until_ready()
    return field


def _project_singly(field: mbi.MarkovRandomField, cliques: Sequence[Clique]) -> Marginals:
    return {clique: _table(field.project(clique)) for clique in cliques}


def _project_in_bulk(field: mbi.MarkovRandomField, cliques: Sequence[Clique]) -> Marginals:
    """Variable elimination, compiled on two threads; what the model holds already is only summed."""
    known = [clique for clique in cliques if field.marginals.supports(clique)]
    others = [clique for clique in cliques if clique not in known]
    found = mbi.marginal_oracles.bulk_variable_elimination(field.potentials, others, float(np.asarray(field.total)))
    return {clique: _table((field if clique in known else found).project(clique)) for clique in cliques}


def _project_by_pairs(field: mbi.MarkovRandomField, cliques: Sequence[Clique]) -> Marginals:
    """Joint tables of pairs of the tree's nodes, then sums of them."""
    found = mbi.marginal_oracles.calculate_many_marginals(
        field.potentials, list(cliques), float(np.asarray(field.total))
    )
    return {clique: _table(found.project(clique)) for clique in cliques}


def _table(factor: mbi.Factor) -> Floats:
    return np.asarray(factor.datavector(flatten=False), np.float64)


PROJECTIONS: Mapping[str, Projection] = {
    "project": _project_singly,
    "bulk_variable_elimination": _project_in_bulk,
    "calculate_many_marginals": _project_by_pairs,
}


def _fastest_projection(field: mbi.MarkovRandomField, cliques: Sequence[Clique]) -> tuple[Projection, Marginals, float]:
    """Try all of `PROJECTIONS`, each without the others' compiled programs."""
    best: tuple[Projection, Marginals, float] | None = None
    for name, projection in PROJECTIONS.items():
        jax.clear_caches()
        marginals, seconds = _timed(partial(projection, field, cliques))
        _say(f"mbi, first round: {name} {seconds:.1f} s")
        if best is None or seconds < best[2]:
            best = projection, marginals, seconds
    if best is None:
        raise ValueError("Expected at least one projection.")
    return best


def _loss(marginals: Marginals, measurements: Sequence[Measurement]) -> float:
    """Half the weighted squared residuals; every measured clique is a candidate."""
    sums = ((m.partition.sum_expected(marginals[m.clique]) - m.target) / m.scale for m in measurements)
    return 0.5 * sum(float(residual @ residual) for residual in sums)


def _total_variations(left: Marginals, right: Marginals) -> Floats:
    return np.array([0.5 * float(np.abs(left[c] / left[c].sum() - right[c] / right[c].sum()).sum()) for c in left])


def _timed(work: Callable[[], _R]) -> tuple[_R, float]:
    begun = time.perf_counter()
    return work(), time.perf_counter() - begun


def compare(recording: Recording) -> bool:
    """Print what each stage took both engines and whether the built-in one keeps its promise."""
    _say(
        "        tree: fit  project      loss |  mbi: fit   project      loss | loss diff.  TVD mean   TVD max  memory"
    )
    seconds, mbi_seconds, difference, worst = 0.0, 0.0, math.inf, math.inf
    for stage, (tree, other) in enumerate(zip(time_tree(recording), time_mbi(recording), strict=True)):
        seconds += tree.fit_seconds + tree.project_seconds
        mbi_seconds += other.fit_seconds + other.project_seconds
        difference = abs(tree.loss - other.loss) / other.loss
        variations = _total_variations(tree.marginals, other.marginals)
        worst = float(variations.max())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        _say(
            f"round {stage:2} {tree.fit_seconds:7.2f} s {tree.project_seconds:6.2f} s {tree.loss:9.3f} "
            f"| {other.fit_seconds:7.2f} s {other.project_seconds:7.2f} s {other.loss:9.3f} "
            f"| {difference:10.1e} {variations.mean():9.1e} {worst:9.1e} {peak:5.1f} GiB"
        )
    _say(f"all: tree {seconds:.1f} s, mbi {mbi_seconds:.1f} s, cold start included")
    kept = [
        _check(
            "ratio of seconds", mbi_seconds / seconds, f"at least {LEAST_RATIO:g}", mbi_seconds / seconds >= LEAST_RATIO
        ),
        _check(
            "last loss, relative difference",
            difference,
            f"at most {LARGEST_DIFFERENCE:g}",
            difference <= LARGEST_DIFFERENCE,
        ),
        _check("last marginals, largest TVD", worst, f"at most {LARGEST_DIFFERENCE:g}", worst <= LARGEST_DIFFERENCE),
    ]
    return all(kept)


def _check(what: str, value: float, wanted: str, is_kept: bool) -> bool:
    _say(f"{'PASS' if is_kept else 'FAIL'} {what}: {value:.3g}, wanted {wanted}")
    return is_kept


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Record, compare in a cold process, and exit with 1 if the promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m performance.engine", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--dataset", default="br2000")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    recording = record(read_table(options.data_dir, options.dataset), options.epsilon, options.rounds)
    _say(
        f"{options.dataset}, epsilon={options.epsilon:g}, delta={DELTA:g}: {len(recording.stages)} fits, "
        f"{len(recording.cliques)} marginals after each"
    )
    with tempfile.TemporaryDirectory() as empty:
        os.environ.update(COLD, NUMBA_CACHE_DIR=empty)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as cold:
            is_kept = cold.submit(compare, recording).result()
    sys.exit(0 if is_kept else 1)


if __name__ == "__main__":
    main()
