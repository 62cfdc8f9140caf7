"""A classifier that learns from one table and is tested on another.

It is a linear support vector machine on one-hot codes: codes of most attributes have no order to measure distances by.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from ppsyn.arrays import Ints
from ppsyn.data.encoding import EncodedTable

Classes: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be told from the other attributes: whether a code lies from `least` to `most`.

    Attributes:
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
    """The share of `tested` that a classifier gets wrong which has learned from `synthetic`. Private.

    It solves the primal problem, which draws nothing at random. Where there is one class to learn
    from, that is what it says of all.
    """
    wanted, learned = classes_of(tested, target), classes_of(synthetic, target)
    if learned.all() or not learned.any():
        told: Classes = np.full(wanted.shape, bool(learned.any()))
    else:
        classifier = cast(_Classifier, LinearSVC(dual=False))  # pyright: ignore[reportArgumentType]  # guessed from "auto"
        classifier.fit(_one_hot(synthetic, target), learned)
        told = classifier.predict(_one_hot(tested, target))
    return float(np.mean(np.not_equal(wanted, told), dtype=np.float64))


def classes_of(table: EncodedTable, target: Target) -> Classes:
    """Which rows are what the target asks for. As private as the table."""
    codes = table.columns[target.attribute]
    is_hit = codes >= target.least
    return is_hit if target.most is None else is_hit & (codes <= target.most)


def _one_hot(table: EncodedTable, target: Target) -> csr_matrix:
    """A row of noughts and ones for each row, of all attributes that do not tell the target."""
    told = {target.attribute, *target.hidden}
    features = [attribute for attribute in table.domain.attributes if attribute.name not in told]
    starts = np.cumsum([0, *(attribute.size for attribute in features)])
    columns = [table.columns[a.name] + start for a, start in zip(features, starts.tolist(), strict=False)]
    places = np.stack(columns, axis=1)
    rows, width = places.shape
    ends: Ints = np.arange(rows + 1, dtype=np.int64) * width
    return csr_matrix((np.ones(places.size), places.ravel(), ends), shape=(rows, int(starts[-1])))
