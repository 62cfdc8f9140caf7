"""Belief propagation and mirror descent over flat arrays, compiled once for every model.

A `Program` describes one junction tree and one set of measurements by index arrays
alone, so a new tree needs new arrays and no new machine code. The beliefs of the
tree's nodes stand in one buffer. In a second one stand the marginals: first those of
the cliques that carry potentials, summed up from the nodes; then those of further
cliques, each summed up from an earlier one (a link); then sums over groups of their cells.

Sums run in a fixed order, so equal input gives equal bits. Potentials are exponentiated
before they meet, which is fast; where neighbours contradict each other by more than
about 700, mass underflows. That is noticed, and such potentials are refused.
"""

import math
from typing import NamedTuple

import numpy as np

from ppsyn.arrays import Codes, Flags, Floats, Ints
from ppsyn.jit import compiled
from ppsyn.privacy.residuals import centre

_ATTEMPTS, _HALVINGS = 40, 15
"""Refusals before the fit counts as converged; after so many halvings the step shrinks faster."""

_MASS = 1e-6
"""Relative error of a node's mass that rounding may leave."""

_WORTH = 1e-7
"""Relative gain below which a step's length tells of rounding errors, not of what suits the problem."""

_LONGER = 1.1
"""How much an accepted step grows, once a step has been refused; it doubles before."""

_PATIENCE = 5
"""Steps in a row below the tolerance before the fit stops."""

KEPT, SUMMED, MIXED = 0, 1, 2
"""Where the cells of a row lead: to as many cells in a row, to one cell, or neither."""

_BLOCK = 2048
"""Cells that fit into the fastest cache."""

_TINY = float(np.finfo(np.float64).tiny)
"""The least normal number: smaller ones have lost digits."""

_LOWEST = -708.0
"""Numbers below it have no exponential among the normal numbers."""

_SHIFT = 1.5 * 2.0**52
"""Numbers of its size have no digits after the point: adding it rounds."""

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
"""The logarithm of two; the first part so short that an exponent times it is exact."""

_COEFFICIENTS = tuple(1.0 / math.factorial(n) for n in range(14))
"""Of the exponential's Taylor series."""


class Program(NamedTuple):
    """A tree of K nodes and what is read off it, as offsets and index arrays.

    A table of cells is cut into rows of equal length. A map leads from a table to a smaller one, over fewer of its
    attributes: cell j of row r belongs to cell `first[r] + within[j]`. Where the row's attributes are all kept, or
    all summed out, that is a stretch or a single cell.
    """

    node_start: Ints  # K + 1 offsets into the beliefs
    node_row: Ints  # K row lengths
    separator_start: Ints  # K + 1 offsets into the messages; a root's separator has one cell
    is_root: Flags  # K
    node_maps: Ints  # K + 1; a node's maps lead to its own separator, to its children's, and to cliques
    node_cliques: Ints  # K; the first of its maps that leads to a clique with potentials
    link_from: Ints  # L offsets into the marginals
    link_size: Ints  # L source lengths
    link_row: Ints  # L row lengths
    link_map: int  # the first link's map; the others' follow
    maps: Ints  # a row each: KEPT, SUMMED or MIXED, and offsets into `places`, of its `first` and of its `within`
    places: Codes  # with each `first`, an offset into the messages or marginals
    group_from: Ints  # G offsets into the marginals
    group_size: Ints  # G source lengths
    group_to: Ints  # G offsets into the marginals
    group_start: Ints  # G + 1 offsets into `groups`
    groups: Codes  # the group of each source position
    measured_at: Ints  # M offsets into the marginals
    measured_size: Ints  # M lengths
    answer_start: Ints  # M + 1 offsets into `answers`
    answers: Floats
    precision: Floats  # M; 1 / sigma**2
    axes_start: Ints  # M + 1 offsets into `axes`
    axes: Ints  # slices along each axis of the grids whose contrasts were measured
    marginals: int  # how many there are


@compiled
def infer(program: Program, theta: Floats, total: float, beliefs: Floats, marginals: Floats, gradient: Floats) -> float:
    """Fill `beliefs` and `marginals`, and `gradient` with the loss's slope in these; return the loss.

    The loss is infinite where the potentials leave no mass, or lose some to underflow
    (a step far too long).
    """
    marginals[:] = 0.0
    if not _calibrate(program, theta, total, beliefs, marginals):
        return math.inf
    for link in range(program.link_from.size):
        start, used = program.link_from[link], program.link_map + link
        cells = marginals[start : start + program.link_size[link]]
        sums = _row_sums(cells, program.link_row[link])
        _sum_up(program.maps[used : used + 1], program.places, 0, cells, sums, marginals)
    for g in range(program.group_from.size):
        source = marginals[program.group_from[g] : program.group_from[g] + program.group_size[g]]
        target, groups = marginals[program.group_to[g] :], program.groups[program.group_start[g] :]
        for i in range(source.size):
            target[groups[i]] += source[i]
    gradient[:] = 0.0
    loss = 0.0
    for m in range(program.measured_at.size):
        at, answer, precision = program.measured_at[m], program.answer_start[m], program.precision[m]
        size = program.measured_size[m]
        residuals = marginals[at : at + size] - program.answers[answer : answer + size]
        if program.axes_start[m] < program.axes_start[m + 1]:
            centre(residuals, program.axes[program.axes_start[m] : program.axes_start[m + 1]])
        for i in range(size):
            loss += 0.5 * precision * residuals[i] * residuals[i]
            gradient[at + i] += precision * residuals[i]
    for g in range(program.group_from.size):
        source = gradient[program.group_from[g] : program.group_from[g] + program.group_size[g]]
        target, groups = gradient[program.group_to[g] :], program.groups[program.group_start[g] :]
        for i in range(source.size):
            source[i] += target[groups[i]]
    for link in range(program.link_from.size - 1, -1, -1):
        start, used = program.link_from[link], program.link_map + link
        cells = gradient[start : start + program.link_size[link]]
        _add(program.maps[used : used + 1], program.places, 0, program.link_row[link], gradient, cells)
    return loss


@compiled
def _calibrate(program: Program, theta: Floats, total: float, beliefs: Floats, marginals: Floats) -> bool:
    """Sum-product over the tree, in linear space with every message scaled to at most one; whether it kept all mass.

    A node's cells are read three times, a few rows at a time: all that these give or take is done at once.
    """
    maps, places, nodes = program.maps, program.places, program.is_root.size
    messages, tops = np.zeros(program.separator_start[-1]), np.zeros(nodes)
    for k in range(nodes - 1, -1, -1):
        node = beliefs[program.node_start[k] : program.node_start[k + 1]]
        separators = maps[program.node_maps[k] : program.node_cliques[k]]
        cliques = maps[program.node_cliques[k] : program.node_maps[k + 1]]
        _collect(separators, cliques, places, program.node_row[k], theta, messages, node)
        message = messages[program.separator_start[k] : program.separator_start[k + 1]]
        tops[k] = message.max()
        if not (tops[k] > _TINY and tops[k] < math.inf):
            return False
        message /= tops[k]
    ratios = np.zeros(messages.size)
    for k in range(nodes):
        start, end = program.separator_start[k], program.separator_start[k + 1]
        if program.is_root[k]:
            ratios[start] = total
        for s in range(start, end):
            ratios[s] = ratios[s] / messages[s] if messages[s] > 0.0 else 0.0
        node = beliefs[program.node_start[k] : program.node_start[k + 1]]
        separators = maps[program.node_maps[k] : program.node_cliques[k]]
        cliques = maps[program.node_cliques[k] : program.node_maps[k + 1]]
        mass = _distribute(separators, cliques, places, program.node_row[k], 1.0 / tops[k], ratios, node, marginals)
        if not abs(mass - total) <= _MASS * total:
            return False
    return True


@compiled
def _collect(
    separators: Ints, cliques: Ints, places: Codes, row: int, theta: Floats, messages: Floats, node: Floats
) -> None:
    """Meet a node's potentials, the largest scaled to one, with its children's messages; sum them up to its own."""
    block = max(1, _BLOCK // row)
    highest = np.full(row, -math.inf)
    for r in range(0, node.size // row, block):
        cells = node[r * row : (r + block) * row]
        cells[:] = 0.0
        _add(cliques, places, r, row, theta, cells)
        _raise_to(highest, cells)
    top = highest.max()
    for r in range(0, node.size // row, block):
        cells = node[r * row : (r + block) * row]
        for i in range(cells.size):
            cells[i] = exp(cells[i] - top)
        _multiply(separators[1:], places, r, row, messages, cells)
        _sum_up(separators[:1], places, r, cells, _row_sums(cells, row), messages)


@compiled
def _distribute(
    separators: Ints,
    cliques: Ints,
    places: Codes,
    row: int,
    scale: float,
    ratios: Floats,
    node: Floats,
    marginals: Floats,
) -> float:
    """Turn a node's cells into its marginal, and sum that up for its children and cliques; its mass."""
    block = max(1, _BLOCK // row)
    mass = 0.0
    for r in range(0, node.size // row, block):
        cells = node[r * row : (r + block) * row]
        for i in range(cells.size):
            cells[i] *= scale
        _multiply(separators[:1], places, r, row, ratios, cells)
        sums = _row_sums(cells, row)
        mass += sums.sum()
        _sum_up(separators[1:], places, r, cells, sums, ratios)
        _sum_up(cliques, places, r, cells, sums, marginals)
    return mass


@compiled
def _add(maps: Ints, places: Codes, start: int, row: int, table: Floats, cells: Floats) -> None:
    """Add to each cell, from row `start` on, what the table has where each map leads."""
    for m in range(maps.shape[0]):
        kind, within = maps[m, 0], places[maps[m, 2] : maps[m, 2] + row]
        for r in range(cells.size // row):
            first, part = places[maps[m, 1] + start + r], cells[r * row : (r + 1) * row]
            if kind == KEPT:
                source = table[first : first + row]
                for j in range(row):
                    part[j] += source[j]
            elif kind == SUMMED:
                value = table[first]
                for j in range(row):
                    part[j] += value
            else:
                for j in range(row):
                    part[j] += table[first + within[j]]


@compiled
def _multiply(maps: Ints, places: Codes, start: int, row: int, table: Floats, cells: Floats) -> None:
    """Multiply each cell, from row `start` on, by what the table has where each map leads."""
    for m in range(maps.shape[0]):
        kind, within = maps[m, 0], places[maps[m, 2] : maps[m, 2] + row]
        for r in range(cells.size // row):
            first, part = places[maps[m, 1] + start + r], cells[r * row : (r + 1) * row]
            if kind == KEPT:
                source = table[first : first + row]
                for j in range(row):
                    part[j] *= source[j]
            elif kind == SUMMED:
                value = table[first]
                for j in range(row):
                    part[j] *= value
            else:
                for j in range(row):
                    part[j] *= table[first + within[j]]


@compiled
def _sum_up(maps: Ints, places: Codes, start: int, cells: Floats, sums: Floats, table: Floats) -> None:
    """Add the cells, from row `start` on, to the table where each map leads; `sums` are those of the rows."""
    row = cells.size // sums.size
    for m in range(maps.shape[0]):
        kind, within = maps[m, 0], places[maps[m, 2] : maps[m, 2] + row]
        for r in range(sums.size):
            first, part = places[maps[m, 1] + start + r], cells[r * row : (r + 1) * row]
            if kind == KEPT:
                target = table[first : first + row]
                for j in range(row):
                    target[j] += part[j]
            elif kind == SUMMED:
                table[first] += sums[r]
            else:
                for j in range(row):
                    table[first + within[j]] += part[j]


@compiled
def _raise_to(highest: Floats, cells: Floats) -> None:
    """Raise each place of a row to the highest cell there is at it."""
    row = highest.size
    for r in range(cells.size // row):
        part = cells[r * row : (r + 1) * row]
        for j in range(row):
            highest[j] = part[j] if part[j] > highest[j] else highest[j]


@compiled
def _row_sums(cells: Floats, row: int) -> Floats:
    """The sum of each row, of four sums that need not wait for each other."""
    sums = np.empty(cells.size // row)
    even = row // 4 * 4
    for r in range(sums.size):
        part = cells[r * row : (r + 1) * row]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for j in range(0, even, 4):
            a += part[j]
            b += part[j + 1]
            c += part[j + 2]
            d += part[j + 3]
        for j in range(even, row):
            a += part[j]
        sums[r] = (a + b) + (c + d)
    return sums


@compiled
def exp(x: float) -> float:
    """The exponential of a number that is not above zero; zero below -708.

    By arithmetic alone, so that loops over it run on vectors and equal input gives equal bits on every machine.
    """
    shifted = x * _LOG2_E + _SHIFT  # the rounded integer stands in its lowest bits
    power = shifted - _SHIFT
    rest = (x - power * _LN2_HIGH) - power * _LN2_LOW
    square, c = rest * rest, _COEFFICIENTS
    fourth = square * square
    low = (c[2] + c[3] * rest) + (c[4] + c[5] * rest) * square
    middle = (c[6] + c[7] * rest) + (c[8] + c[9] * rest) * square
    high = (c[10] + c[11] * rest) + (c[12] + c[13] * rest) * square
    series = low + middle * fourth + high * (fourth * fourth)
    scale = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return 0.0 if x < _LOWEST else (1.0 + (rest + square * series)) * scale


@compiled
def descend(
    program: Program, theta: Floats, total: float, step: float, iterations: int, tolerance: float
) -> tuple[Floats, Floats, float, float, int]:
    """Accelerated mirror descent with a backtracking step; the loss never rises.

    Returns the potentials, the beliefs they imply, the loss, the last step that was
    neither refused nor just untested (to start the next fit with) and the number of
    steps taken. The step and its sufficient decrease, half of what the slope
    promises, are Algorithm 1 of McKenna, Sheldon and Miklau, "Graphical-model based
    estimation and inference for differential privacy" (ICML 2019). Steps start from a
    point ahead of the last (Nesterov's momentum on the potentials), and the momentum
    starts anew when the loss would rise (O'Donoghue and Candes, "Adaptive restart for
    accelerated gradient schemes", 2015).
    """
    beliefs = np.zeros(program.node_start[-1])
    ahead, ahead_slope = np.zeros(program.marginals), np.zeros(program.marginals)
    marginals, slope = np.zeros(program.marginals), np.zeros(program.marginals)
    origin, origin_loss = theta, infer(program, theta, total, beliefs, ahead, ahead_slope)
    loss, kept, momentum, growth, stalled, taken = origin_loss, step, 1.0, 2.0, 0, 0
    for _ in range(iterations):
        accepted, attempts, theta_2, loss_2 = False, 0, theta, loss
        while not accepted and attempts < _ATTEMPTS:
            theta_2 = origin - step * ahead_slope[: theta.size]
            loss_2 = infer(program, theta_2, total, beliefs, marginals, slope)
            if loss_2 < math.inf:
                promised = 0.0
                for i in range(theta.size):
                    promised += ahead_slope[i] * (ahead[i] - marginals[i])
                accepted = origin_loss - loss_2 >= 0.5 * promised
            attempts += 1
            if not accepted:
                step *= 0.5 if attempts < _HALVINGS else 0.05
                growth = _LONGER
        if not accepted:
            break
        taken += 1
        if growth == _LONGER and loss - loss_2 > _WORTH * loss:
            kept = step
        step *= growth
        if loss_2 > loss:
            if momentum == 1.0:
                break
            origin, momentum = theta, 1.0
            origin_loss = infer(program, origin, total, beliefs, ahead, ahead_slope)
            continue
        is_slow = growth == _LONGER and loss - loss_2 < tolerance * max(loss_2, 1e-9)
        stalled = stalled + 1 if is_slow else 0
        later = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        origin = theta_2 + (momentum - 1.0) / later * (theta_2 - theta)
        theta, loss = theta_2, loss_2
        if stalled >= _PATIENCE:
            break
        if momentum == 1.0:
            origin_loss, ahead, marginals, ahead_slope, slope = loss, marginals, ahead, slope, ahead_slope
        else:
            origin_loss = infer(program, origin, total, beliefs, ahead, ahead_slope)
            if not origin_loss < math.inf:
                origin, later = theta, 1.0
                origin_loss = infer(program, origin, total, beliefs, ahead, ahead_slope)
        momentum = later
    loss = infer(program, theta, total, beliefs, marginals, slope)
    return theta, beliefs, loss, kept, taken
