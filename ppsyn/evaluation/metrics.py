"""How far a synthetic table is from the real one, by marginals, range queries and a classifier. All of it is private.

A range query asks which fraction of the rows lies in a box of codes. The paper asks them over 210
sets of three attributes, drawn by weights from squared exponential draws, and over 37 sets of five
"under the constraint of maximum workload". It follows AIM (McKenna, Mullins, Sheldon and Miklau,
VLDB 2022), whose skewed workload draws sets with probability proportional to the product of their
attributes' weights. Adult, as the paper encodes it, has exactly 210 sets of three and 37 of five
attributes with at most 10,000 cells: so that is the constraint, for both, and other tables draw as
many by weight. Where both papers are silent, this module chooses: sets are drawn without
replacement; every set has ten ranges; a range lies between two codes drawn evenly, both ends
counted; codes without an order are taken in the order of their codes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ppsyn.arrays import Floats, Ints
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Clique, Domain
from ppsyn.extras import require

MAX_CELLS = 10_000
RANGES_A_SET = 10
SETS = {3: 210, 5: 37}
"""By the number of attributes in a set, how many sets."""

_MOST_MARGINALS = 300
_MARGINALS_SEED = 20_240


@dataclass(frozen=True, slots=True)
class RangeQuery:
    """Rows whose codes of `clique` lie from `lows` to `highs`, both included."""

    clique: Clique
    lows: tuple[int, ...]
    highs: tuple[int, ...]


def workload_error(private_table: EncodedTable, synthetic: EncodedTable, workload: Sequence[Clique]) -> float:
    """Mean total variation distance over the workload's marginals. Private."""
    real, made = TableCounter(private_table), TableCounter(synthetic)
    return float(np.mean([total_variation(real.counts(clique), made.counts(clique)) for clique in workload]))


def total_variation(left: Ints, right: Ints) -> float:
    """The fraction of rows that would have to change their cell, where both tables count the same cells."""
    return float(0.5 * np.abs(left / max(1, left.sum()) - right / max(1, right.sum())).sum())


def fitting_cliques(domain: Domain, degree: int, max_cells: float = math.inf) -> list[Clique]:
    """All cliques of `degree` attributes with at most `max_cells` cells, in the domain's order."""
    begun: list[tuple[Clique, int, int]] = [((), 1, 0)]
    for _ in range(degree):
        begun = [
            ((*clique, attribute.name), cells * attribute.size, position + 1)
            for clique, cells, start in begun
            for position, attribute in enumerate(domain.attributes[start:], start)
            if cells * attribute.size <= max_cells
        ]
    return [clique for clique, _, _ in begun]


def all_marginals(domain: Domain, degree: int) -> list[Clique]:
    """All marginals of `degree` attributes within 10,000 cells, of single ones any; 300 of them where there are more.

    Which 300 is always the same for the same domain.
    """
    fits = fitting_cliques(domain, degree, math.inf if degree == 1 else MAX_CELLS)
    if degree == 1 or len(fits) <= _MOST_MARGINALS:
        return fits
    chosen = np.random.default_rng(_MARGINALS_SEED).choice(len(fits), _MOST_MARGINALS, replace=False)
    return [fits[int(index)] for index in np.sort(chosen).tolist()]


def range_queries(domain: Domain, degree: int, seed: int) -> tuple[RangeQuery, ...]:
    """The range queries over `degree` attributes, 3 or 5; none where no set of attributes will do."""
    rng = np.random.default_rng((seed, degree))
    cliques = _weighted_sets(domain, fitting_cliques(domain, degree, MAX_CELLS), SETS[degree], rng)
    return tuple(_random_range(domain, clique, rng) for clique in cliques for _ in range(RANGES_A_SET))


def _weighted_sets(domain: Domain, cliques: list[Clique], count: int, rng: np.random.Generator) -> list[Clique]:
    """Draw one after the other, each in proportion to the product of its attributes' weights.

    The largest of log weights plus Gumbel noise are such a draw.
    """
    weights = rng.exponential(size=len(domain.attributes)) ** 2
    logs = dict(zip(domain.names, np.log(weights).tolist(), strict=True))
    keys = np.array([sum(logs[name] for name in clique) for clique in cliques]) + rng.gumbel(size=len(cliques))
    return [cliques[int(index)] for index in np.argsort(-keys)[:count].tolist()]


def _random_range(domain: Domain, clique: Clique, rng: np.random.Generator) -> RangeQuery:
    ends = np.sort(rng.integers(0, domain.shape(clique), size=(2, len(clique))), axis=0)
    return RangeQuery(clique, tuple(ends[0].tolist()), tuple(ends[1].tolist()))


def range_fractions(counter: TableCounter, domain: Domain, queries: Sequence[RangeQuery]) -> Floats:
    """The fraction of rows in each range. As private as the table that is counted."""
    places: dict[Clique, list[int]] = {}
    for place, query in enumerate(queries):
        places.setdefault(query.clique, []).append(place)
    found = np.zeros(len(queries))
    for clique, counts in counter.marginals(places):
        table, rows = counts.reshape(domain.shape(clique)), max(1, int(counts.sum()))
        for place in places[clique]:
            query = queries[place]
            box = tuple(slice(low, high + 1) for low, high in zip(query.lows, query.highs, strict=True))
            found[place] = table[box].sum() / rows
    return found


def range_error(private_table: EncodedTable, synthetic: EncodedTable, queries: Sequence[RangeQuery]) -> float | None:
    """Mean squared difference of the fractions; none without queries. Private."""
    if not queries:
        return None
    real, made = (range_fractions(TableCounter(table), table.domain, queries) for table in (private_table, synthetic))
    return float(np.mean((real - made) ** 2))


Classes: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Target:
    """What a classifier predicts from the other attributes: whether a code lies from `least` to `most`.

    Attributes:
        name: What a positive answer means.
        hidden: Attributes that say the same in other words.
        most: By default the last code.
    """

    name: str
    attribute: str
    least: int
    hidden: tuple[str, ...] = ()
    most: int | None = None


class _Classifier(Protocol):
    def fit(self, X: csr_matrix, y: Classes) -> object: ...

    def predict(self, X: csr_matrix) -> Classes: ...


def rows_of(table: EncodedTable, chosen: Ints) -> EncodedTable:
    """Some rows of a table. As private as the table."""
    return EncodedTable(table.domain, {name: column[chosen] for name, column in table.columns.items()})


def misclassified(synthetic: EncodedTable, tested: EncodedTable, target: Target) -> float:
    """The fraction of `tested` that a classifier trained on `synthetic` gets wrong. Private.

    It solves the primal problem, which draws nothing at random. If `synthetic` has one class only, it predicts that
    class for all rows.
    """
    actual, learned = classes_of(tested, target), classes_of(synthetic, target)
    if learned.all() or not learned.any():
        predicted: Classes = np.full(actual.shape, bool(learned.any()))
    else:
        require("benchmark", "A classifier")
        from sklearn.svm import LinearSVC  # noqa: PLC0415  # an extra

        classifier = cast(_Classifier, LinearSVC(dual=False))  # pyright: ignore[reportArgumentType]  # guessed from "auto"
        classifier.fit(_one_hot(synthetic, target), learned)
        predicted = classifier.predict(_one_hot(tested, target))
    return float(np.mean(np.not_equal(actual, predicted), dtype=np.float64))


def classes_of(table: EncodedTable, target: Target) -> Classes:
    """Which rows belong to the target. As private as the table."""
    codes = table.columns[target.attribute]
    is_hit = codes >= target.least
    return is_hit if target.most is None else is_hit & (codes <= target.most)


def _one_hot(table: EncodedTable, target: Target) -> csr_matrix:
    """A row of zeros and ones for each row, of all attributes that do not give the target away."""
    left_out = {target.attribute, *target.hidden}
    features = [attribute for attribute in table.domain.attributes if attribute.name not in left_out]
    starts = np.cumsum([0, *(attribute.size for attribute in features)])
    columns = [table.columns[a.name] + start for a, start in zip(features, starts.tolist(), strict=False)]
    positions = np.stack(columns, axis=1)
    rows, width = positions.shape
    ends: Ints = np.arange(rows + 1, dtype=np.int64) * width
    return csr_matrix((np.ones(positions.size), positions.ravel(), ends), shape=(rows, int(starts[-1])))
