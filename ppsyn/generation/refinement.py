"""Swap values between the rows of a table until its marginals are nearer to those that the model expects.

Rows are drawn from the model's tree, and the tree does not hold all that the model knows; besides, rows
scatter around it. The tree says which rows may swap what. At each of its separators it falls into two sides
that have nothing to do with each other among rows of equal separator: so two such rows may exchange all that
they have on one side, and every marginal of every node of the tree stays as it was drawn, to the last row. What
changes are marginals across the separator. A swap is made if it brings those that the table is for nearer to
the model's, in squares of what a cell has too many over what it should have (chi-squared). Released values go in
and come out: it costs nothing but time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.domain import Clique, Domain
from ppsyn.jit import compiled

_PASSES = 10
"""How often rows are offered swaps across each separator, twice at a time, at most."""

_WORTH = 0.01
"""Of the first distance, what a pass must take off, and leave, for another to follow; most tables get one to three."""

_WORK = 2**40
"""Crossings times the square of the rows, besides those of what the tree does not hold: at most about a second."""

_LEAST_ROWS = 2**14
"""A table of fewer rows has no more aims than one of so many."""


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """A marginal that the table should have.

    Attributes:
        shares: Of the rows in each cell, in C order; they sum to one.
    """

    clique: Clique
    shares: Floats


@dataclass(frozen=True, slots=True)
class Cut:
    """A separator of the tree and one of its two sides; rows that agree on it may exchange that side."""

    separator: Clique
    side: frozenset[str]

    def is_crossed_by(self, clique: Clique) -> bool:
        """Whether such an exchange can change the marginal."""
        left = set(clique).difference(self.separator)
        return not (left <= self.side or left.isdisjoint(self.side))


def cuts_of(nodes: Sequence[tuple[Clique, Clique]]) -> tuple[Cut, ...]:
    """Where the tree may be cut: above each node, given what it shares with those before it.

    Args:
        nodes: Of each what it is given and what it adds, in the order of generation.
    """
    found = dict[frozenset[frozenset[str]], Cut]()
    whole = [(*given, *new) for given, new in nodes]
    every = frozenset(name for _, new in nodes for name in new)
    for place, (separator, new) in enumerate(nodes):
        below = set(new)
        for given, more in nodes[place + 1 :]:
            if not below.isdisjoint(given):
                below.update(more)
        rest = every.difference(below, separator)
        cut = Cut(separator, min(frozenset(below), rest, key=len))
        if rest and not any(map(cut.is_crossed_by, whole)):
            found.setdefault(frozenset((frozenset(below), rest)), cut)
    return tuple(found.values())


def within_reach(cuts: Sequence[Cut], cliques: Iterable[Clique], rows: int) -> Iterator[Clique]:
    """The marginals across cuts, in their order, that there is time to bring a table of so many rows nearer to.

    The more rows there are, the longer that takes, and the less they scatter around their model.
    """
    left = _WORK // max(_LEAST_ROWS, rows) ** 2
    for clique in cliques:
        crossings = sum(cut.is_crossed_by(clique) for cut in cuts)
        left -= crossings
        if left < 0:
            return
        if crossings:
            yield clique


class _Crossing(NamedTuple):
    """The K aims across a cut, with at most D attributes on either side of it; strides are 0 where there are fewer."""

    separator: Ints  # places of the attributes that rows must agree on
    sizes: Ints  # of these attributes
    starts: Ints  # K; where the cells of each begin
    inner: Ints  # K x D; places of the attributes on the side that moves
    inner_strides: Ints  # K x D
    outer: Ints  # K x D; places of the other attributes
    outer_strides: Ints  # K x D
    moved: Ints  # places of all attributes on the side that moves


@dataclass(frozen=True, slots=True, eq=False)
class Refinement:
    """What any block of rows needs in order to be refined; nothing, if there are no aims across a cut."""

    names: Clique
    aims: tuple[Aim, ...]
    strides: Ints
    crossings: tuple[_Crossing, ...]


def prepare_refinement(nodes: Sequence[tuple[Clique, Clique]], aims: Sequence[Aim], domain: Domain) -> Refinement:
    """Settle what swaps rows of a tree may make for these aims, once for all blocks."""
    strides, starts = _layout(domain, aims)
    found = [cut for cut in cuts_of(nodes) if aims and any(cut.is_crossed_by(aim.clique) for aim in aims)]
    crossings = (_crossing(cut, aims, strides, starts, domain) for cut in found)
    return Refinement(domain.names, tuple(aims), strides, tuple(crossings))


def refine(codes: Mapping[str, Codes], plan: Refinement) -> dict[str, Codes]:
    """The rows after the swaps. Equal rows give equal rows."""
    rows = codes[plan.names[0]].size
    if not plan.crossings or rows == 0:
        return dict(codes)
    table: Codes = np.stack([codes[name] for name in plan.names], axis=1)
    wanted = rows * np.concatenate([aim.shares for aim in plan.aims])
    cells = np.stack((_counts(codes, plan) - wanted, 1.0 / (wanted + 1.0)), axis=1)
    distance = first = _distance(cells)
    for apart in range(1, 1 + _PASSES):
        before = distance
        for is_among_surplus in (False, True):
            for crossing in plan.crossings:
                _sweep(table, apart, is_among_surplus, crossing, cells)
        distance = _distance(cells)
        if min(before - distance, distance) < _WORTH * first:
            break
    return {**codes, **{name: np.ascontiguousarray(table[:, place]) for place, name in enumerate(plan.names)}}


def _layout(domain: Domain, aims: Sequence[Aim]) -> tuple[Ints, Ints]:
    """Of each aim the stride of each attribute, 0 if it has none, and where its cells start among those of all."""
    strides = np.zeros((len(aims), len(domain.names)), np.int64)
    for at, aim in enumerate(aims):
        stride = 1
        for name in reversed(aim.clique):
            strides[at, domain.rank[name]] = stride
            stride *= domain[name].size
    return strides, np.cumsum([0, *(aim.shares.size for aim in aims)])


def _crossing(cut: Cut, aims: Sequence[Aim], strides: Ints, starts: Ints, domain: Domain) -> _Crossing:
    crossed = np.array([at for at, aim in enumerate(aims) if cut.is_crossed_by(aim.clique)], np.int64)
    is_inner = np.array([name in cut.side for name in domain.names])
    sides = (_padded(np.where(chosen, strides[crossed], 0)) for chosen in (is_inner, ~is_inner))
    (inner, inner_strides), (outer, outer_strides) = sides
    return _Crossing(
        np.array([domain.rank[name] for name in cut.separator], np.int64),
        np.array(domain.shape(cut.separator), np.int64),
        starts[crossed],
        inner,
        inner_strides,
        outer,
        outer_strides,
        np.flatnonzero(is_inner),
    )


def _padded(strides: Ints) -> tuple[Ints, Ints]:
    """Places and strides of the attributes that each aim has; of all aims as many."""
    most = int((strides > 0).sum(axis=1).max())
    places = np.ascontiguousarray(np.argsort(strides == 0, axis=1, kind="stable")[:, :most])
    return places, np.take_along_axis(strides, places, axis=1)


def _counts(codes: Mapping[str, Codes], plan: Refinement) -> Floats:
    """How many rows each cell has."""
    found: list[Floats] = []
    for aim, strides in zip(plan.aims, plan.strides.astype(np.int32), strict=True):
        places = sum(codes[name] * strides[plan.names.index(name)] for name in aim.clique)
        found.append(np.bincount(places, minlength=aim.shares.size).astype(np.float64))
    return np.concatenate(found)


@compiled
def _distance(cells: Floats) -> float:
    """Summed in the cells' order, so that equal tables stop after equal sweeps on any machine."""
    found = 0.0
    for cell in range(cells.shape[0]):
        found += cells[cell, 1] * cells[cell, 0] * cells[cell, 0]
    return found


@compiled
def _more(cells: Floats, cell: int) -> float:
    """What a row more in a cell adds to the distance."""
    return cells[cell, 1] * (2.0 * cells[cell, 0] + 1.0)


@compiled
def _less(cells: Floats, cell: int) -> float:
    """What a row less in a cell adds to the distance."""
    return cells[cell, 1] * (1.0 - 2.0 * cells[cell, 0])


@compiled
def _place(table: Codes, row: int, attributes: Ints, strides: Ints) -> int:
    """Where some of the attributes of a row lead among the cells of an aim."""
    place = table[row, attributes[0]] * strides[0]
    for at in range(1, attributes.size):
        place += table[row, attributes[at]] * strides[at]
    return place


@compiled
def _sweep(table: Codes, apart: int, is_among_surplus: bool, crossing: _Crossing, cells: Floats) -> None:
    """Offer swaps to rows that agree on the separator, two by two, each with the one that comes so many after it.

    Rows come from their model in random order: any two of them will do, and neighbours are at hand. The
    second of two sweeps is among those alone that the table would better be without: so they find each other.
    """
    waiting = np.empty((crossing.sizes.prod(), apart), np.int32)
    found = np.zeros(waiting.shape[0], np.int32)
    for row in range(table.shape[0]):
        if is_among_surplus and not _is_surplus(table, row, crossing, cells):
            continue
        key = 0
        for at in range(crossing.separator.size):
            key = key * crossing.sizes[at] + table[row, crossing.separator[at]]
        place = found[key]
        found[key] = place + 1 if place + 1 < 2 * apart else 0
        if place < apart:
            waiting[key, place] = row
            continue
        other = waiting[key, place - apart]
        if _change(table, row, other, crossing, cells) < 0.0:
            _move(table, row, crossing, cells, -1.0)
            _move(table, other, crossing, cells, -1.0)
            for at in crossing.moved:
                table[row, at], table[other, at] = table[other, at], table[row, at]
            _move(table, row, crossing, cells, 1.0)
            _move(table, other, crossing, cells, 1.0)


@compiled
def _is_surplus(table: Codes, row: int, crossing: _Crossing, cells: Floats) -> bool:
    """Whether the distance would be less without a row."""
    change = 0.0
    for aim in range(crossing.starts.size):
        place = _place(table, row, crossing.inner[aim], crossing.inner_strides[aim])
        place += _place(table, row, crossing.outer[aim], crossing.outer_strides[aim])
        change += _less(cells, crossing.starts[aim] + place)
    return change < 0.0


@compiled
def _change(table: Codes, row: int, other: int, crossing: _Crossing, cells: Floats) -> float:
    """What a swap between two rows would add to the distance."""
    change = 0.0
    for aim in range(crossing.starts.size):
        mine = _place(table, row, crossing.inner[aim], crossing.inner_strides[aim])
        theirs = _place(table, other, crossing.inner[aim], crossing.inner_strides[aim])
        if mine != theirs:
            here = _place(table, row, crossing.outer[aim], crossing.outer_strides[aim])
            there = _place(table, other, crossing.outer[aim], crossing.outer_strides[aim])
            if here != there:
                here, there = here + crossing.starts[aim], there + crossing.starts[aim]
                change += _less(cells, here + mine) + _more(cells, here + theirs)
                change += _less(cells, there + theirs) + _more(cells, there + mine)
    return change


@compiled
def _move(table: Codes, row: int, crossing: _Crossing, cells: Floats, rows: float) -> None:
    """Add so many rows to the cells of a row."""
    for aim in range(crossing.starts.size):
        place = _place(table, row, crossing.inner[aim], crossing.inner_strides[aim])
        place += _place(table, row, crossing.outer[aim], crossing.outer_strides[aim])
        cells[crossing.starts[aim] + place, 0] += rows
