"""Hypothesis strategies: neighbouring encoded tables, and questions about them."""

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from ppsyn.arrays import Ints
from ppsyn.data.encoding import EncodedTable
from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.privacy.partition import Partition, number_groups
from ppsyn.privacy.requests import GRID, Candidate

Row = tuple[int, ...]


@dataclass(frozen=True)
class Neighbours:
    """Two tables of one domain: `larger` has up to `max_rows` rows more, all of one person."""

    domain: Domain
    max_rows: int
    smaller: EncodedTable
    larger: EncodedTable


def encoded(domain: Domain, rows: list[Row]) -> EncodedTable:
    """The table with these rows."""
    codes = np.array(rows, np.int32).reshape(len(rows), len(domain.names))
    return EncodedTable(domain, {name: codes[:, place].copy() for place, name in enumerate(domain.names)})


def tower(domain: Domain, max_rows: int) -> Neighbours:
    """The worst case: a person whose rows are all the same one."""
    row: Row = (0,) * len(domain.names)
    return Neighbours(domain, max_rows, encoded(domain, []), encoded(domain, [row] * max_rows))


domains = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(
    lambda sizes: Domain(tuple(Attribute(f"a{place}", size) for place, size in enumerate(sizes)))
)


@st.composite
def neighbours(draw: st.DrawFn, max_rows: int | None = None) -> Neighbours:
    """Neighbouring tables, the person's rows anywhere among the others."""
    domain = draw(domains)
    most = max_rows or draw(st.integers(1, 4))
    row = st.tuples(*(st.integers(0, attribute.size - 1) for attribute in domain.attributes))
    others = draw(st.lists(row, max_size=12))
    theirs = draw(st.lists(row, min_size=1, max_size=most) | row.map(lambda same: [same] * most))
    place = draw(st.integers(0, len(others)))
    return Neighbours(domain, most, encoded(domain, others), encoded(domain, others[:place] + theirs + others[place:]))


@st.composite
def cliques(draw: st.DrawFn, domain: Domain) -> Clique:
    """Some attributes, in the domain's order."""
    return domain.clique(draw(st.lists(st.sampled_from(domain.names), min_size=1, unique=True)))


@st.composite
def partitions(draw: st.DrawFn, cells: int) -> Partition:
    """Any partition of the cells, scattered ones among them."""
    labels = draw(st.lists(st.integers(0, cells - 1), min_size=cells, max_size=cells))
    return number_groups(np.array(labels, np.int32))


AXES = ((2, 2), (2, 3), (3, 2), (2, 4), (3, 3), (2, 2, 2), (2, 3, 2), (4, 5), (3, 3, 3))


@st.composite
def grids(draw: st.DrawFn, cells: int) -> Partition:
    """Any cells as the boxes of some grid: the bound on residuals holds wherever they lie."""
    axes = draw(st.sampled_from([axes for axes in AXES if math.prod(axes) <= cells]))
    count = math.prod(axes)
    more = draw(st.lists(st.integers(0, count - 1), min_size=cells - count, max_size=cells - count))
    labels = draw(st.permutations([*range(count), *more]))
    return Partition(np.array(labels, np.int32), count, axes)


@st.composite
def candidates(draw: st.DrawFn, domain: Domain) -> Candidate:
    """A marginal, a partition of it, and what some model might expect of its groups."""
    clique = draw(cliques(domain))
    partition = draw(partitions(domain.size(clique)))
    reach = draw(st.sampled_from([8 * GRID, 2**50]))
    units = st.integers(-reach, reach)
    expected = draw(st.lists(units, min_size=partition.count, max_size=partition.count))
    penalty, weight = draw(st.integers(0, 2**50)), draw(st.integers(1, 9))
    return Candidate(clique, partition, np.array(expected, np.int64), penalty, weight)


def l2_squared(left: Ints, right: Ints) -> int:
    """The squared distance, exactly."""
    return sum((int(a) - int(b)) ** 2 for a, b in zip(left, right, strict=True))
