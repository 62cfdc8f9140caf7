"""Synthetic rows from conditional steps, by randomised rounding instead of independent draws.

Rows are made in blocks of fixed size, each from its own random stream, so that blocks may be made
in any order. Within a block a step deals its new cells to each group of rows that share the given
cell. A group of m rows takes the cells at the m evenly spaced quantiles (u + i) / m of its
conditional, with one uniform offset u (systematic resampling), so the count of a cell is the floor
or the ceiling of its expected number and has that number as its mean.

The cells keep their C order. The order cannot bias a count: the rows of a group take their cells in
uniformly random order, drawn anew at every step, hence each row follows the model's joint
distribution exactly and the children of one separator are independent given it. What the order does
decide is which sums of cells are rounded as sharply as single cells, and C order gives this to runs
of cells: ranges of an ordered attribute, and the values of the first new attribute.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from ppsyn.arrays import Codes, Floats
from ppsyn.domain import Clique, Domain
from ppsyn.errors import ConfigError, InvariantError
from ppsyn.generation.refinement import Aim, Refinement, prepare_refinement, refine
from ppsyn.jit import compiled

BLOCK_ROWS = 2**17
"""Rows of a block; part of what a seed stands for."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Adds attributes to rows that already have others."""

    given: Clique
    """Attributes generated before; empty at the root of a tree."""
    new: Clique
    weights: Floats
    """Non-negative, cells of `given` by cells of `new` in C order; rows need not be normalised."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Checked steps, ready to make any number of blocks."""

    domain: Domain
    steps: tuple[Step, ...]
    cumulative: tuple[Floats, ...]
    """Per step the running sums of its weights along the new cells; no row is zero throughout."""
    refinement: Refinement
    """What brings each block nearer to marginals that the steps do not give it."""


def generate(steps: Sequence[Step], domain: Domain, rows: int, seed: int) -> dict[str, Codes]:
    """Codes of `rows` synthetic rows, per attribute in the domain's order.

    Raises:
        ConfigError: If `rows` or `seed` is not a non-negative integer.
        InvariantError: If the steps are not a model of the domain.
    """
    made = blocks(prepare(steps, domain), rows, seed)
    table = {name: np.empty(rows, np.int32) for name in domain.names}
    for index, codes in enumerate(made):
        start = index * BLOCK_ROWS
        for name, column in codes.items():
            table[name][start : start + column.size] = column
    return table


def blocks(plan: Plan, rows: int, seed: int) -> Iterator[dict[str, Codes]]:
    """The rows of a prepared plan, one block at a time; arguments are checked at once."""
    check_count("rows", rows)
    check_count("seed", seed)
    starts = range(0, rows, BLOCK_ROWS)
    return (make_block(plan, index, min(BLOCK_ROWS, rows - start), seed) for index, start in enumerate(starts))


def make_block(plan: Plan, index: int, rows_in_block: int, seed: int) -> dict[str, Codes]:
    """Block `index` of a prepared plan, which depends on no other block.

    Raises:
        ConfigError: If an argument is not a non-negative integer, or the block would be too long.
    """
    check_count("index", index)
    check_count("rows_in_block", rows_in_block)
    check_count("seed", seed)
    if rows_in_block > BLOCK_ROWS:
        raise ConfigError(f"Expected rows_in_block={rows_in_block} to be at most {BLOCK_ROWS}.")
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(index,))))
    codes: dict[str, Codes] = {}
    for step, cumulative in zip(plan.steps, plan.cumulative, strict=True):
        keys = _encode(codes, step.given, plan.domain, rows_in_block)
        cells = deal(keys, cumulative, rng.random(rows_in_block))
        codes |= _decode(cells, step.new, plan.domain)
    codes = refine(codes, plan.refinement)
    return {name: codes[name] for name in plan.domain.names}


def prepare(steps: Sequence[Step], domain: Domain, aims: Sequence[Aim] = ()) -> Plan:
    """Check the steps, sum their weights and settle which swaps follow, once for all blocks.

    Raises:
        InvariantError: If the steps do not generate each attribute once and after those it is
            given, or if weights have the wrong shape, a negative or a non-finite entry.
    """
    _check_cover(steps, domain)
    for step in steps:
        _check_weights(step, domain)
    refinement = prepare_refinement([(step.given, step.new) for step in steps], aims, domain)
    return Plan(domain, tuple(steps), tuple(_accumulate(step.weights) for step in steps), refinement)


@compiled
def deal(keys: Codes, cumulative: Floats, uniforms: Floats) -> Codes:
    """Give each row a new cell, by randomised rounding within the rows of equal key.

    Args:
        keys: The given cell of each row.
        cumulative: Running sums of the weights, given cells by new cells.
        uniforms: As many independent draws from [0, 1) as there are rows.
    """
    starts, order = _group_rows(keys, cumulative.shape[0])
    cells = np.empty(keys.size, np.int32)
    for key in range(cumulative.shape[0]):
        start, stop = starts[key], starts[key + 1]
        if start < stop:
            _deal_group(order[start:stop], cumulative[key], uniforms[start:stop], cells)
    return cells


@compiled
def _deal_group(group: Codes, cumulative: Floats, uniforms: Floats, cells: Codes) -> None:
    """Write the cells of the rows in `group`, which is shuffled on the way (Fisher-Yates).

    The last draw of a shuffle decides nothing, so it serves as the offset. Scaling a draw to one of
    2**17 places favours none of them by more than 2**-35 of its probability.
    """
    rows = group.size
    spacing = cumulative[-1] / rows
    top = np.nextafter(cumulative[-1], 0.0)
    offset = uniforms[-1]
    cell = 0
    for i in range(rows):
        cell = _advance(cumulative, cell, min((offset + i) * spacing, top))
        j = i + int(uniforms[i] * (rows - i))
        row = group[j]
        group[j] = group[i]
        cells[row] = cell


@compiled
def _advance(cumulative: Floats, cell: int, position: float) -> int:
    """The first cell from `cell` on whose running sum exceeds `position`, which is below the last.

    Doubling steps, then bisection: cheap both where rows outnumber cells and where they are few.
    """
    if cumulative[cell] > position:
        return cell
    last = cumulative.size - 1
    low, step = cell, 1
    while low + step < last and cumulative[low + step] <= position:
        low += step
        step *= 2
    high = min(low + step, last)
    while high - low > 1:
        middle = (low + high) // 2
        if cumulative[middle] > position:
            high = middle
        else:
            low = middle
    return high


@compiled
def _group_rows(keys: Codes, groups: int) -> tuple[Codes, Codes]:
    """Where each key's rows start, and all rows sorted by key (counting sort)."""
    starts = np.zeros(groups + 1, np.int32)
    for key in keys:
        starts[key + 1] += 1
    for key in range(groups):
        starts[key + 1] += starts[key]
    free = starts[:-1].copy()
    order = np.empty(keys.size, np.int32)
    for row in range(keys.size):
        key = keys[row]
        order[free[key]] = row
        free[key] += 1
    return starts, order


def _encode(codes: dict[str, Codes], clique: Clique, domain: Domain, rows: int) -> Codes:
    cells = np.zeros(rows, np.int32)
    for name in clique:
        cells *= domain[name].size
        cells += codes[name]
    return cells


def _decode(cells: Codes, clique: Clique, domain: Domain) -> dict[str, Codes]:
    codes: dict[str, Codes] = {}
    for name in reversed(clique[1:]):
        size = np.int32(domain[name].size)
        quotient = cells // size
        codes[name] = cells - quotient * size
        cells = quotient
    return codes | {name: cells for name in clique[:1]}


def _accumulate(weights: Floats) -> Floats:
    """Running sums along the new cells; a zero row takes the sums of the marginal, or of ones.

    Rows are scaled by their largest weight first, so that no sum over- or underflows.
    """
    largest = weights.max(axis=1, keepdims=True)
    whole = weights.max()
    marginal = (weights / whole).sum(axis=0) if whole > 0 else np.ones(weights.shape[1])
    scaled = np.divide(weights, largest, out=np.empty(weights.shape), where=largest > 0)
    scaled[largest[:, 0] == 0] = marginal
    return np.cumsum(scaled, axis=1, out=scaled)


def _check_cover(steps: Sequence[Step], domain: Domain) -> None:
    made: set[str] = set()
    for step in steps:
        if not made.issuperset(step.given):
            raise InvariantError(f"Expected given={step.given!r} to be generated before new={step.new!r}.")
        if len(made.union(step.new)) != len(made) + len(step.new):
            raise InvariantError(f"Expected new={step.new!r} to be generated once.")
        made.update(step.new)
    if made != set(domain.names):
        raise InvariantError(f"Expected steps for {domain.names!r}, got steps for {tuple(sorted(made))!r}.")


def _check_weights(step: Step, domain: Domain) -> None:
    shape = (domain.size(step.given), domain.size(step.new))
    if step.weights.shape != shape:
        raise InvariantError(f"Expected weights of {step.new!r} given {step.given!r} of shape {shape}.")
    if not (np.isfinite(step.weights).all() and (step.weights >= 0).all()):
        raise InvariantError(f"Expected weights of {step.new!r} given {step.given!r} finite and non-negative.")


def check_count(name: str, value: object) -> None:
    """Refuse what is not a non-negative integer."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise ConfigError(f"Expected {name}={value!r} to be a non-negative integer.")
