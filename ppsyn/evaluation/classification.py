"""A classifier that is trained on one table and tested on another.

It is a linear support vector machine on one-hot codes: codes of most attributes have no order to measure distances by.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ppsyn.arrays import Ints
from ppsyn.data.encoding import EncodedTable
from ppsyn.extras import require

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
