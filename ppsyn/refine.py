"""Swap values between the rows of a table until its marginals are nearer to those that the model expects.

Rows scatter around the model they are drawn from, and in a table of some ten thousand that is a
good part of what is left of its error. A swap of one attribute's values between two rows
leaves all attributes by themselves as they are; it is made if it brings the marginals that the table is
for nearer to the model's. Released values go in and come out: it costs nothing but time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.domain import Clique, Domain
from ppsyn.jit import compiled

_SWEEPS = 3
"""How often each value of each row is offered for a swap; more were seen to gain little."""


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """A marginal that the table should have.

    Attributes:
        shares: Of the rows in each cell, in C order; they sum to one.
    """

    clique: Clique
    shares: Floats


class _Held(NamedTuple):
    """The aims that hold an attribute, K of them with at most D other attributes each."""

    starts: Ints  # K; where the cells of each begin
    strides: Ints  # K; of the attribute
    others: Ints  # K x D; places of the other attributes in the table
    other_strides: Ints  # K x D; 0 where there are fewer


def refine(
    codes: Mapping[str, Codes], aims: Sequence[Aim], domain: Domain, rng: np.random.Generator
) -> dict[str, Codes]:
    """The rows after the swaps. Equal inputs and streams give equal rows."""
    names = tuple(dict.fromkeys(name for aim in aims for name in aim.clique))
    if not names or codes[names[0]].size < 2:
        return dict(codes)
    table: Codes = np.stack([codes[name] for name in names])
    strides, starts = _layout(names, aims, domain)
    excess = _excess(table, strides, starts, aims)
    held = [_holding(attribute, strides, starts) for attribute in range(len(names))]
    rows = codes[names[0]].size
    for _ in range(_SWEEPS):
        for attribute in range(len(names)):
            partners = rng.integers(0, rows, size=rows, dtype=np.int64)
            _sweep(table, attribute, partners, held[attribute], excess)
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


def _excess(table: Codes, strides: Ints, starts: Ints, aims: Sequence[Aim]) -> Floats:
    """How many rows each cell has too many."""
    excess = np.empty(starts[-1])
    for at, aim in enumerate(aims):
        counts = np.bincount(strides[at] @ table, minlength=aim.shares.size)
        excess[starts[at] : starts[at + 1]] = counts - aim.shares * table.shape[1]
    return excess


def _holding(attribute: int, strides: Ints, starts: Ints) -> _Held:
    aims = np.flatnonzero(strides[:, attribute])
    rest = strides[aims]
    rest[:, attribute] = 0
    most = int((rest > 0).sum(axis=1).max())
    others = np.argsort(rest == 0, axis=1, kind="stable")[:, :most]
    return _Held(starts[aims], strides[aims, attribute], others, np.take_along_axis(rest, others, axis=1))


@compiled
def _sweep(table: Codes, attribute: int, partners: Ints, held: _Held, excess: Floats) -> None:
    """Offer each row the value of its partner for its own; `excess` keeps up with what is swapped."""
    aims, most = held.others.shape
    mine, theirs = np.empty(aims, np.int64), np.empty(aims, np.int64)
    for row in range(table.shape[1]):
        other = partners[row]
        own, offered = table[attribute, row], table[attribute, other]
        if own == offered:
            continue
        change = 0.0
        for aim in range(aims):
            here = there = held.starts[aim]
            for place in range(most):
                stride, name = held.other_strides[aim, place], held.others[aim, place]
                here += table[name, row] * stride
                there += table[name, other] * stride
            mine[aim], theirs[aim] = here, there
            if here != there:
                given, taken = own * held.strides[aim], offered * held.strides[aim]
                change += excess[here + taken] - excess[here + given] + 1
                change += excess[there + given] - excess[there + taken] + 1
        if change < 0.0:
            table[attribute, row], table[attribute, other] = offered, own
            for aim in range(aims):
                if mine[aim] != theirs[aim]:
                    given, taken = own * held.strides[aim], offered * held.strides[aim]
                    excess[mine[aim] + given] -= 1
                    excess[mine[aim] + taken] += 1
                    excess[theirs[aim] + taken] -= 1
                    excess[theirs[aim] + given] += 1
