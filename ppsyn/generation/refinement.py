"""Swap values between the rows of a table until its marginals are nearer to those that the model expects.

Rows scatter around the model they are drawn from, and in a table of some ten thousand that is a
good part of what is left of its error; and the tree they are drawn from does not hold all that
the model knows. A swap of one attribute's values between two rows leaves all attributes by
themselves as they are; it is made if it brings the marginals that the table is for nearer to the
model's, in squares of what a cell has too many over what it should have (chi-squared). Released
values go in and come out: it costs nothing but time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.domain import Clique, Domain
from ppsyn.jit import compiled

_SWEEPS = 30
"""How often each value of each row is offered for a swap, at most."""

_WORTH = 0.05
"""What a sweep must take off the distance for another to follow; most tables get five to eight."""


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """A marginal that the table should have.

    Attributes:
        shares: Of the rows in each cell, in C order; they sum to one.
    """

    clique: Clique
    shares: Floats


class _Incident(NamedTuple):
    """The aims that hold an attribute, K of them with at most D other attributes each."""

    starts: Ints  # K; where the cells of each begin
    strides: Ints  # K; of the attribute
    others: Ints  # K x D; places of the other attributes in the table
    other_strides: Ints  # K x D; 0 where there are fewer


class _Cells(NamedTuple):
    """The cells of all aims, one after another."""

    excess: Floats  # how many rows each has too many
    weights: Floats  # of the square of that in the distance


def refine(
    codes: Mapping[str, Codes], aims: Sequence[Aim], domain: Domain, rng: np.random.Generator
) -> dict[str, Codes]:
    """The rows after the swaps. Equal inputs and streams give equal rows."""
    names = tuple(dict.fromkeys(name for aim in aims for name in aim.clique))
    if not names or codes[names[0]].size < 2:
        return dict(codes)
    table: Codes = np.stack([codes[name] for name in names])
    strides, starts = _layout(names, aims, domain)
    rows = codes[names[0]].size
    wanted = rows * np.concatenate([aim.shares for aim in aims])
    cells = _Cells(_counts(table, strides, starts) - wanted, 1.0 / (wanted + 1.0))
    incident = [_incident(attribute, strides, starts) for attribute in range(len(names))]
    distance = _distance(cells)
    for _ in range(_SWEEPS):
        before = distance
        for attribute in range(len(names)):
            partners = rng.integers(0, rows, size=rows, dtype=np.int64)
            _sweep(table, attribute, partners, incident[attribute], cells)
        distance = _distance(cells)
        if distance > (1.0 - _WORTH) * before:
            break
    return {**codes, **dict(zip(names, table, strict=True))}


def _layout(names: Clique, aims: Sequence[Aim], domain: Domain) -> tuple[Ints, Ints]:
    """Of each aim the stride of each attribute, 0 if it has none, and where its cells start among those of all."""
    strides = np.zeros((len(aims), len(names)), np.int64)
    for at, aim in enumerate(aims):
        stride = 1
        for name in reversed(aim.clique):
            strides[at, names.index(name)] = stride
            stride *= domain[name].size
    return strides, np.cumsum([0, *(aim.shares.size for aim in aims)])


def _counts(table: Codes, strides: Ints, starts: Ints) -> Floats:
    """How many rows each cell has."""
    counts = np.empty(starts[-1])
    for at, (start, stop) in enumerate(pairwise(starts)):
        counts[start:stop] = np.bincount(strides[at] @ table, minlength=stop - start)
    return counts


def _incident(attribute: int, strides: Ints, starts: Ints) -> _Incident:
    aims = np.flatnonzero(strides[:, attribute])
    rest = strides[aims]
    rest[:, attribute] = 0
    most = int((rest > 0).sum(axis=1).max())
    others = np.argsort(rest == 0, axis=1, kind="stable")[:, :most]
    return _Incident(starts[aims], strides[aims, attribute], others, np.take_along_axis(rest, others, axis=1))


@compiled
def _distance(cells: _Cells) -> float:
    """Summed in the cells' order, so that equal tables stop after equal sweeps on any machine."""
    found = 0.0
    for cell in range(cells.excess.size):
        found += cells.weights[cell] * cells.excess[cell] * cells.excess[cell]
    return found


@compiled
def _more(cell: int, cells: _Cells) -> float:
    """What a row more in a cell adds to the distance."""
    return cells.weights[cell] * (2.0 * cells.excess[cell] + 1.0)


@compiled
def _less(cell: int, cells: _Cells) -> float:
    """What a row less in a cell adds to the distance."""
    return cells.weights[cell] * (1.0 - 2.0 * cells.excess[cell])


@compiled
def _sweep(table: Codes, attribute: int, partners: Ints, incident: _Incident, cells: _Cells) -> None:
    """Offer each row the value of its partner for its own; `cells` keeps up with what is swapped."""
    aims, most = incident.others.shape
    excess = cells.excess
    mine, theirs = np.empty(aims, np.int64), np.empty(aims, np.int64)
    for row in range(table.shape[1]):
        other = partners[row]
        own, offered = table[attribute, row], table[attribute, other]
        if own == offered:
            continue
        change = 0.0
        for aim in range(aims):
            here = there = incident.starts[aim]
            for place in range(most):
                stride, name = incident.other_strides[aim, place], incident.others[aim, place]
                here += table[name, row] * stride
                there += table[name, other] * stride
            mine[aim], theirs[aim] = here, there
            if here != there:
                given, taken = own * incident.strides[aim], offered * incident.strides[aim]
                change += _more(here + taken, cells) + _less(here + given, cells)
                change += _more(there + given, cells) + _less(there + taken, cells)
        if change < 0.0:
            table[attribute, row], table[attribute, other] = offered, own
            for aim in range(aims):
                if mine[aim] != theirs[aim]:
                    given, taken = own * incident.strides[aim], offered * incident.strides[aim]
                    excess[mine[aim] + given] -= 1
                    excess[mine[aim] + taken] += 1
                    excess[theirs[aim] + taken] -= 1
                    excess[theirs[aim] + given] += 1
