"""Series of releases: each learned from the ones before it, against releases that learn nothing, on public tables.

A series shares one budget. Every number here is as private as the table.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.benchmark.runs import code_digest
from ppsyn.benchmark.tables import digest_of, open_table, random_workload
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Clique
from ppsyn.evaluation import workload_error
from ppsyn.mechanisms.base import State
from ppsyn.mechanisms.candidates import refined_cliques
from ppsyn.mechanisms.loop import make_plan, run, start
from ppsyn.mechanisms.past import Past, with_answers
from ppsyn.privacy.budget import rho_from, round_down
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount
from ppsyn.schemas.benchmark import DELTA
from ppsyn.schemas.config import AlgorithmConfig, WorkloadConfig

_ROWS = 0.6
"""Of a table, in each release: the others take the place of those that leave."""

_CHURN = 0.05


@dataclass(frozen=True, slots=True)
class Series:
    """One series.

    Attributes:
        change: What happens to the table: one of `CHANGES`.
        epsilon: Of all its releases together.
    """

    dataset: str
    change: str
    mechanism: str
    seed: int
    releases: int
    epsilon: float
    model_mb: float


@dataclass(frozen=True, slots=True)
class Month:
    """One release of a series.

    Attributes:
        connected: The error of the release that learns.
        alone: Of one of the same budget that does not.
        at_once: Of one that has the budget of the whole series; of the last release only.
        seconds: Of the release that learns, without counting errors.
    """

    connected: float
    alone: float
    at_once: float | None
    seconds: float
    seconds_alone: float


def _same(table: EncodedTable, order: Ints, month: int, releases: int) -> EncodedTable:
    del month, releases
    return _rows(table, order[: int(_ROWS * order.size)])


def _replaced(table: EncodedTable, order: Ints, month: int, releases: int) -> EncodedTable:
    """A twentieth of the rows is replaced each time."""
    del releases
    count = int(_ROWS * order.size)
    return _rows(table, np.roll(order, -int(month * _CHURN * count))[:count])


def _jump(table: EncodedTable, order: Ints, month: int, releases: int) -> EncodedTable:
    """From half-way on, of the rows below the median of one attribute three in four are gone."""
    before = _same(table, order, month, releases)
    if month < releases // 2:
        return before
    values = before.columns[_large(table)[1].name]
    return _rows(before, np.flatnonzero((values > np.median(values)) | (np.arange(values.size) % 4 == 0)))


def _turn(table: EncodedTable, order: Ints, month: int, releases: int) -> EncodedTable:
    """From half-way on, one attribute has its values in reverse."""
    before, turned = _same(table, order, month, releases), _large(table)[0]
    if month < releases // 2:
        return before
    changed = {turned.name: (turned.size - 1 - before.columns[turned.name]).astype(np.int32)}
    return EncodedTable(before.domain, {**before.columns, **changed})


CHANGES: Mapping[str, Callable[[EncodedTable, Ints, int, int], EncodedTable]] = {
    "same": _same,
    "replaced": _replaced,
    "jump": _jump,
    "turn": _turn,
}


def _large(table: EncodedTable) -> list[Attribute]:
    found = [attribute for attribute in table.domain.attributes if attribute.size > 4]
    return found if len(found) > 1 else [table.domain.attributes[0], table.domain.attributes[-1]]


def _rows(table: EncodedTable, rows: Ints) -> EncodedTable:
    return EncodedTable(table.domain, {name: codes[rows] for name, codes in table.columns.items()})


def all_series(  # noqa: PLR0913  # keyword-only: what a person asks for
    *,
    datasets: Sequence[str],
    changes: Sequence[str],
    mechanisms: Sequence[str],
    seeds: Sequence[int],
    releases: int,
    epsilon: float,
    model_mb: float,
) -> list[Series]:
    """Every series that was asked for, seed by seed."""
    grid = product(seeds, datasets, changes, mechanisms)
    return [Series(name, change, how, seed, releases, epsilon, model_mb) for seed, name, change, how in grid]


def measure(series: Series, data_dir: str | None, out: Path) -> list[Month]:
    """The releases of a series, one after another; one that was measured before, by this code, is read.

    A series that was stopped half-way begins again.
    """
    table = open_table(data_dir, series.dataset)
    file = out / f"{_name_of(series, table)}.json"
    if not file.is_file():
        out.mkdir(parents=True, exist_ok=True)
        found = {"series": asdict(series), "months": [asdict(month) for month in _months(series, table)]}
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        partial.replace(file)
    return [Month(**month) for month in json.loads(file.read_text(encoding="utf-8"))["months"]]


def _name_of(series: Series, table: EncodedTable) -> str:
    told = json.dumps([asdict(series), digest_of(table), code_digest()], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _months(series: Series, table: EncodedTable) -> Iterator[Month]:
    order = np.random.default_rng(series.seed).permutation(len(table.columns[table.domain.names[0]]))
    workload, past = random_workload(table.domain), None
    whole = rho_from(series.epsilon, DELTA)
    each = round_down(whole / series.releases)
    for number in range(series.releases):
        today = CHANGES[series.change](table, order, number, series.releases)
        release = _Releases(series, today, workload)
        state, connected, seconds = release.make(each, past)
        _, alone, seconds_alone = (state, connected, seconds) if past is None else release.make(each, None)
        is_last = number == series.releases - 1
        yield Month(connected, alone, release.make(whole, None)[1] if is_last else None, seconds, seconds_alone)
        past = with_answers(
            past, state.measurements, {n: c.groups for n, c in state.model.compression.attributes.items()}
        )


@dataclass(frozen=True, slots=True)
class _Releases:
    """Releases of one table."""

    series: Series
    table: EncodedTable
    workload: tuple[Clique, ...]

    def make(self, rho: Fraction, past: Past | None) -> tuple[State, float, float]:
        """A release, its workload error, and the seconds that it took."""
        series, table = self.series, self.table
        workload = WorkloadConfig(cliques=self.workload)
        settings = {"mechanism": series.mechanism, "max_model_size_mb": series.model_mb, "workload": workload}
        began = time.process_time()
        plan = make_plan(table.domain, rho, 1, AlgorithmConfig.model_validate(settings), past=past)
        state = run(TableCurator(TableCounter(table), MemoryAccount(rho)), start(plan))
        seconds = time.process_time() - began
        refined = refined_cliques(table.domain, plan.config.workload) if plan.mechanism.refines_rows else ()
        blocks = list(state.model.blocks(max(1, round(state.model.total)), series.seed, refined))
        columns = {name: np.concatenate([block[name] for block in blocks]) for name in table.domain.names}
        return state, workload_error(table, EncodedTable(table.domain, columns), self.workload), seconds


@dataclass(frozen=True, slots=True)
class Ratios:
    """The ratios of several series that differ in their seed, month by month.

    Attributes:
        months: Of the release that learns to the one that does not: mean and spread.
        last: The same of the last release.
        at_once: Of the last release to one with the budget of all.
        worst: The largest mean of a month.
        slower: Seconds of the last release to those of the fifth.
    """

    dataset: str
    change: str
    mechanism: str
    seeds: int
    months: tuple[tuple[float, float], ...]
    last: tuple[float, float]
    at_once: tuple[float, float]
    worst: float
    slower: float


def summarize(found: Mapping[Series, Sequence[Month]]) -> list[Ratios]:
    """The ratios of each table, change and mechanism."""
    keys = dict.fromkeys((series.dataset, series.change, series.mechanism) for series in found)
    return [_ratios(key, [months for s, months in found.items() if _key(s) == key]) for key in keys]


def _key(series: Series) -> tuple[str, str, str]:
    return series.dataset, series.change, series.mechanism


def _ratios(key: tuple[str, str, str], runs: Sequence[Sequence[Month]]) -> Ratios:
    by_month = list(zip(*runs, strict=True))
    months = tuple(_spread([month.connected / month.alone for month in each]) for each in by_month)
    at_once = _spread([run[-1].connected / (run[-1].at_once or 1.0) for run in runs])
    fifth = min(4, len(by_month) - 1)
    slower = fmean(run[-1].seconds / run[fifth].seconds for run in runs)
    return Ratios(*key, len(runs), months, months[-1], at_once, max(mean for mean, _ in months), slower)


def _spread(values: Sequence[float]) -> tuple[float, float]:
    return fmean(values), stdev(values) if len(values) > 1 else 0.0
