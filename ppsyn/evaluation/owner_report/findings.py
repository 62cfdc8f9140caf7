"""What the page tells: how far the synthetic table is from the private one, in every way. All of it is private."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ppsyn.arrays import Floats, Ints
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Clique, Domain
from ppsyn.errors import ConfigError
from ppsyn.evaluation import total_variation
from ppsyn.evaluation.classification import Target, classes_of, misclassified, rows_of
from ppsyn.evaluation.owner_report.tables import Both, sampled
from ppsyn.evaluation.queries import RangeQuery, range_queries, shares
from ppsyn.mechanisms.candidates import workload_cliques
from ppsyn.reports.labels import name_codes
from ppsyn.schemas.columns import ColumnSchema
from ppsyn.schemas.config import WorkloadConfig

_RANGES_OF, _SEED = 3, 0
_MOST_PAIRS = 2000
_WORST, _USED = 6, 3
_MOST_TARGETS = 3
_MOST_CELLS = 1_000_000
_SAMPLE = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A marginal in full.

    Attributes:
        why: What it is shown for.
    """

    clique: Clique
    why: str
    private: Ints
    synthetic: Ints
    distance: float


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Range queries, and the share of rows in each."""

    queries: tuple[RangeQuery, ...]
    private: Floats
    synthetic: Floats

    @property
    def errors(self) -> Floats:
        """How far the shares are apart."""
        return np.abs(self.private - self.synthetic)


@dataclass(frozen=True, slots=True)
class Classified:
    """How often a classifier errs on rows of the private table that it has not seen.

    Attributes:
        synthetic: Having learned from the synthetic table.
        private: Having learned from as many other rows of the private one.
        constant: Always saying what is commoner.
    """

    target: Target
    synthetic: float
    private: float
    constant: float


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """All that was found.

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
    singles: tuple[Shown, ...]
    shown: tuple[Shown, ...]
    ranges: Ranges | None
    classified: tuple[Classified, ...]
    tested: int

    def of(self, cliques: Sequence[Clique]) -> Floats:
        """Distances of these marginals."""
        return np.array([self.distances[clique] for clique in cliques])

    @property
    def pairs(self) -> list[Clique]:
        """The pairs that were compared."""
        return [clique for clique in self.distances if len(clique) == 2]


def compare(
    both: Both,
    columns: Mapping[str, ColumnSchema],
    workload: WorkloadConfig,
    named: Sequence[Clique] = (),
    targets: Sequence[str] = (),
) -> Findings:
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
    asked = [_checked(domain, names) for names in named]
    wanted = [_target(both, columns, name) for name in targets] or _suitable(both, columns)
    goal = workload_cliques(domain, workload)
    singles: list[Clique] = [(name,) for name in domain.names]
    pairs: list[Clique] = [pair for pair in combinations(domain.names, 2) if domain.size(pair) <= workload.max_cells]
    cliques = dict.fromkeys([*singles, *(pairs if len(pairs) <= _MOST_PAIRS else ()), *goal])
    distances = {clique: total_variation(real, made) for clique, real, made in both.counts(cliques)}
    chosen = _chosen(distances, goal, asked)
    full = {
        clique: Shown(clique, chosen.get(clique, ""), real, made, total_variation(real, made))
        for clique, real, made in both.counts([*singles, *chosen])
    }
    classified, tested = _classified(both, wanted)
    return Findings(
        rows=int(full[singles[0]].private.sum()),
        distances=distances,
        workload=goal,
        singles=tuple(full[clique] for clique in singles),
        shown=tuple(full[clique] for clique in chosen),
        ranges=_ranges(both),
        classified=classified,
        tested=tested,
    )


def _checked(domain: Domain, names: Sequence[str]) -> Clique:
    clique = domain.clique(names)
    if domain.size(clique) > _MOST_CELLS:
        raise ConfigError(f"Expected at most {_MOST_CELLS:,} cells in the marginal {', '.join(clique)}.")
    return clique


def _chosen(distances: Mapping[Clique, float], goal: Sequence[Clique], asked: Sequence[Clique]) -> dict[Clique, str]:
    """Marginals to show in full, and why: those asked for, the worst, and pairs that most of the workload holds."""
    found: dict[Clique, str] = dict.fromkeys((clique for clique in asked if len(clique) > 1), "asked for")
    by_size = {size: [clique for clique in distances if _size(clique) == size] for size in (2, 3)}
    for size, told in ((2, "among the worst pairs"), (3, "among the worst of the workload")):
        for clique in sorted(by_size[size], key=lambda clique: -distances[clique])[:_WORST]:
            found.setdefault(clique, told)
    used = {pair: sum(set(pair) <= set(clique) for clique in goal) for pair in by_size[2]}
    for pair in sorted(used, key=lambda pair: -used[pair])[:_USED]:
        found.setdefault(pair, f"in {used[pair]} of the workload's marginals")
    return found


def _size(clique: Clique) -> int:
    return min(3, len(clique))


def _ranges(both: Both) -> Ranges | None:
    queries = range_queries(both.domain, _RANGES_OF, _SEED)
    if not queries:
        return None
    private, synthetic = (shares(TableCounter(table), both.domain, queries) for table in (both.private, both.synthetic))
    return Ranges(queries, private, synthetic)


def _suitable(both: Both, columns: Mapping[str, ColumnSchema]) -> list[Target]:
    """Attributes with two values, then those whose values have an order: both can be cut in two without a choice."""
    names = [name for name, column in columns.items() if column.value_count > 1]
    ranked = sorted(names, key=lambda name: (columns[name].value_count > 2, not columns[name].is_ordered))
    kept = [name for name in ranked if columns[name].value_count == 2 or columns[name].is_ordered]
    return [_target(both, columns, name) for name in (kept or ranked)[:_MOST_TARGETS]]


def _target(both: Both, columns: Mapping[str, ColumnSchema], name: str) -> Target:
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


def _classified(both: Both, targets: Sequence[Target]) -> tuple[tuple[Classified, ...], int]:
    real = sampled(both.private, _SAMPLE, _SEED)
    rows = len(real.columns[both.domain.names[0]])
    if rows < 2 or len(both.domain.names) < 2:
        return (), 0
    learned, tested = (rows_of(real, part) for part in np.array_split(np.arange(rows), 2))
    made = sampled(both.synthetic, -(-rows // 2), _SEED)
    return tuple(_judged(target, learned, tested, made) for target in targets), rows // 2


def _judged(target: Target, learned: EncodedTable, tested: EncodedTable, made: EncodedTable) -> Classified:
    hits = float(classes_of(tested, target).mean())
    return Classified(
        target, misclassified(made, tested, target), misclassified(learned, tested, target), min(hits, 1 - hits)
    )
