"""Compare a release with its private table, in bounded memory. All of it is private."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from typing_extensions import override

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.data.marginals.kernel import Block, count_blocks
from ppsyn.domain import Clique, Domain
from ppsyn.errors import ConfigError
from ppsyn.evaluation.metrics import (
    RangeQuery,
    Target,
    classes_of,
    misclassified,
    range_fractions,
    range_queries,
    rows_of,
    total_variation,
)
from ppsyn.mechanisms.candidates import workload_cliques
from ppsyn.reports.formatting import name_codes
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.config import WorkloadConfig

_CELLS_AT_A_TIME = 2**23
"""Cells of each table that are counted in one pass."""
_RANGE_DEGREE, _SEED = 3, 0
_MOST_PAIRS = 2000
_WORST, _MOST_USED = 6, 3
_MOST_TARGETS = 3
_MOST_CELLS = 1_000_000
_SAMPLE = 20_000


# The tables


@dataclass(frozen=True, slots=True, repr=False)
class StreamedTable:
    """A table that is read anew for every pass over it.

    Attributes:
        read: Gives its codes, some rows at a time.
    """

    domain: Domain
    read: Callable[[], Iterable[Block]]

    @override
    def __repr__(self) -> str:
        return "StreamedTable()"

    def count(self, cliques: Sequence[Clique]) -> list[Ints]:
        """The counts of each marginal."""
        return count_blocks(self.domain, self.read(), cliques)


@dataclass(frozen=True, slots=True, repr=False)
class TablePair:
    """The private table and the synthetic one."""

    private: StreamedTable
    synthetic: StreamedTable

    @override
    def __repr__(self) -> str:
        return "TablePair()"

    @property
    def domain(self) -> Domain:
        """Of both."""
        return self.private.domain

    def counts(self, cliques: Iterable[Clique]) -> Iterator[tuple[Clique, Ints, Ints]]:
        """Each marginal with its counts in the private and in the synthetic table. Private."""
        for part in _passes(self.domain, list(dict.fromkeys(cliques))):
            yield from zip(part, self.private.count(part), self.synthetic.count(part), strict=True)


def _passes(domain: Domain, cliques: list[Clique]) -> Iterator[list[Clique]]:
    """Marginals that are counted in one pass."""
    part: list[Clique] = []
    for clique in cliques:
        if part and sum(map(domain.size, (*part, clique))) > _CELLS_AT_A_TIME:
            yield part
            part = []
        part.append(clique)
    if part:
        yield part


def scale_counts(counts: Ints, rows: int) -> Floats:
    """Counts as they would be in a table of `rows` rows."""
    return counts.astype(np.float64) * (rows / max(1, int(counts.sum())))


def sample_rows(table: StreamedTable, most: int, seed: int) -> EncodedTable:
    """Some rows, each with the same chance, in random order. As private as the table."""
    rng = np.random.Generator(np.random.PCG64(seed))
    kept: Mapping[str, Codes] = {name: np.empty(0, np.int32) for name in table.domain.names}
    keys: Floats = np.empty(0)
    for block in table.read():
        fresh = rng.random(len(block[table.domain.names[0]]))
        keys = np.concatenate([keys, fresh])
        chosen = np.argsort(keys)[:most]
        kept = {name: np.concatenate([column, block[name].astype(np.int32)])[chosen] for name, column in kept.items()}
        keys = keys[chosen]
    return EncodedTable(table.domain, dict(kept))


# What is compared


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MarginalComparison:
    """A marginal in full.

    Attributes:
        why: What it is shown for.
    """

    clique: Clique
    why: str
    private: Ints
    synthetic: Ints
    distance: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RangeComparison:
    """Range queries, and the fraction of rows in each."""

    queries: tuple[RangeQuery, ...]
    private: Floats
    synthetic: Floats

    @property
    def errors(self) -> Floats:
        """How far the fractions are apart."""
        return np.abs(self.private - self.synthetic)


@dataclass(frozen=True, slots=True, repr=False)
class ClassifierErrors:
    """How often a classifier errs on rows of the private table that it has not seen.

    Attributes:
        synthetic: Trained on the synthetic table.
        private: Trained on as many other rows of the private one.
        constant: Always predicting the commoner class.
    """

    target: Target
    synthetic: float
    private: float
    constant: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """All that the page shows.

    Attributes:
        rows: Of the private table.
        distances: By marginal: single attributes, pairs that are not too large, and the workload.
        workload: The marginals of the workload.
        singles: Attributes in full.
        shown: Marginals of several attributes in full.
        tested: Rows that classifiers were tested on.
    """

    rows: int
    distances: Mapping[Clique, float]
    workload: tuple[Clique, ...]
    singles: tuple[MarginalComparison, ...]
    shown: tuple[MarginalComparison, ...]
    ranges: RangeComparison | None
    classified: tuple[ClassifierErrors, ...]
    tested: int

    def of(self, cliques: Sequence[Clique]) -> Floats:
        """Distances of these marginals."""
        return np.array([self.distances[clique] for clique in cliques])

    @property
    def pairs(self) -> list[Clique]:
        """The pairs that were compared."""
        return [clique for clique in self.distances if len(clique) == 2]


def compare(
    both: TablePair,
    columns: Mapping[str, ColumnSchema],
    workload: WorkloadConfig,
    named: Sequence[Clique] = (),
    targets: Sequence[str] = (),
) -> Comparison:
    """Compare the tables.

    Args:
        both: The tables.
        columns: The schema's columns by name.
        workload: What the release was meant to get right.
        named: Marginals to show in any case.
        targets: Attributes to classify by; by default some that suit.

    Privacy:
        Reads the private table, and charges no account (limit L13).

    Raises:
        ConfigError: If a marginal or a target is none of the table, or too large.
    """
    domain = both.domain
    requested = [_check_size(domain, names) for names in named]
    wanted = [_target_at_middle(both, columns, name) for name in targets] or _default_targets(both, columns)
    goal = workload_cliques(domain, workload)
    singles: list[Clique] = [(name,) for name in domain.names]
    pairs: list[Clique] = [pair for pair in combinations(domain.names, 2) if domain.size(pair) <= workload.max_cells]
    cliques = dict.fromkeys([*singles, *(pairs if len(pairs) <= _MOST_PAIRS else ()), *goal])
    distances = {clique: total_variation(real, made) for clique, real, made in both.counts(cliques)}
    chosen = _choose_shown(distances, goal, requested)
    full = {
        clique: MarginalComparison(clique, chosen.get(clique, ""), real, made, total_variation(real, made))
        for clique, real, made in both.counts([*singles, *chosen])
    }
    classified, tested = _compare_classifiers(both, wanted)
    return Comparison(
        rows=int(full[singles[0]].private.sum()),
        distances=distances,
        workload=goal,
        singles=tuple(full[clique] for clique in singles),
        shown=tuple(full[clique] for clique in chosen),
        ranges=_compare_ranges(both),
        classified=classified,
        tested=tested,
    )


def _check_size(domain: Domain, names: Sequence[str]) -> Clique:
    clique = domain.clique(names)
    if domain.size(clique) > _MOST_CELLS:
        raise ConfigError(f"Expected at most {_MOST_CELLS:,} cells in the marginal {', '.join(clique)}.")
    return clique


def _choose_shown(
    distances: Mapping[Clique, float], goal: Sequence[Clique], requested: Sequence[Clique]
) -> dict[Clique, str]:
    """Marginals to show in full, and why: those requested, the worst, and pairs that most of the workload holds."""
    found: dict[Clique, str] = dict.fromkeys((clique for clique in requested if len(clique) > 1), "requested")
    by_size = {size: [clique for clique in distances if _size(clique) == size] for size in (2, 3)}
    for size, why in ((2, "among the worst pairs"), (3, "among the worst of the workload")):
        for clique in sorted(by_size[size], key=lambda clique: -distances[clique])[:_WORST]:
            found.setdefault(clique, why)
    used = {pair: sum(set(pair) <= set(clique) for clique in goal) for pair in by_size[2]}
    for pair in sorted(used, key=lambda pair: -used[pair])[:_MOST_USED]:
        found.setdefault(pair, f"in {used[pair]} of the workload's marginals")
    return found


def _size(clique: Clique) -> int:
    return min(3, len(clique))


def _compare_ranges(both: TablePair) -> RangeComparison | None:
    queries = range_queries(both.domain, _RANGE_DEGREE, _SEED)
    if not queries:
        return None
    private, synthetic = (
        range_fractions(TableCounter(table), both.domain, queries) for table in (both.private, both.synthetic)
    )
    return RangeComparison(queries, private, synthetic)


def _default_targets(both: TablePair, columns: Mapping[str, ColumnSchema]) -> list[Target]:
    """Attributes with two values, then those whose values have an order: both can be cut in two without a choice."""
    names = [name for name, column in columns.items() if column.value_count > 1]
    ranked = sorted(names, key=lambda name: (columns[name].value_count > 2, not columns[name].is_ordered))
    kept = [name for name in ranked if columns[name].value_count == 2 or columns[name].is_ordered]
    return [_target_at_middle(both, columns, name) for name in (kept or ranked)[:_MOST_TARGETS]]


def _target_at_middle(both: TablePair, columns: Mapping[str, ColumnSchema], name: str) -> Target:
    """Where to cut an attribute in two: by the synthetic table, at its middle or at its commonest value."""
    clique = both.domain.clique([name])
    column = columns[name]
    if column.value_count < 2:
        raise ConfigError(f"Expected an attribute with at least two values to classify by, got {name!r}.")
    (counts,) = both.synthetic.count([clique])
    values = counts[: column.value_count]
    if column.value_count == 2:
        least, most = 1, 1
    elif column.is_ordered:
        middle = 1 + int((np.cumsum(values) < values.sum() / 2).sum())
        least, most = min(max(1, middle), column.value_count - 1), column.value_count - 1
    else:
        least = most = int(np.argmax(values))
    return Target(name_codes(column, list(range(least, most + 1))), name, least, most=most)


def _compare_classifiers(both: TablePair, targets: Sequence[Target]) -> tuple[tuple[ClassifierErrors, ...], int]:
    real = sample_rows(both.private, _SAMPLE, _SEED)
    rows = len(real.columns[both.domain.names[0]])
    if rows < 2 or len(both.domain.names) < 2:
        return (), 0
    learned, tested = (rows_of(real, part) for part in np.array_split(np.arange(rows), 2))
    made = sample_rows(both.synthetic, -(-rows // 2), _SEED)
    return tuple(_classifier_errors(target, learned, tested, made) for target in targets), rows // 2


def _classifier_errors(
    target: Target, learned: EncodedTable, tested: EncodedTable, made: EncodedTable
) -> ClassifierErrors:
    hits = float(classes_of(tested, target).mean())
    return ClassifierErrors(
        target, misclassified(made, tested, target), misclassified(learned, tested, target), min(hits, 1 - hits)
    )
