"""Belief propagation and mirror descent over flat arrays, compiled once for every model.

A `Program` describes one junction tree and one set of measurements by index arrays
alone, so a new tree needs new arrays and no new machine code. All values live in
one buffer: first the beliefs of the tree's nodes, then the marginals of the cliques
that carry potentials, then further marginals and group sums, each the scatter-sum
of an earlier stretch of the buffer (a link).

Sums run in index order, so equal input gives equal bits. Potentials are exponentiated
before they meet, which is fast; where neighbours contradict each other by more than
about 700, mass underflows. That is noticed, and such potentials are refused.
"""

import math
from typing import NamedTuple

import numpy as np

from ppsyn.arrays import Codes, Floats, Ints
from ppsyn.jit import compiled
from ppsyn.partition.contrasts import centre

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


class Program(NamedTuple):
    """Index arrays of a tree (K nodes, N cells) and of what is read off it."""

    node_start: Ints  # K + 1 offsets into the buffer
    parent: Ints  # K; -1 for a root
    separator_start: Ints  # K + 1 offsets into the messages
    own: Codes  # N; the separator cell of each cell (0 for roots: an empty separator has one cell)
    into_start: Ints  # K + 1 offsets into `into`
    into: Codes  # for each child, the separator cell of each cell of its parent
    potentials: int  # how many leading links lead from a node to a clique with potentials
    link_from: Ints  # L offsets into the buffer
    link_size: Ints  # L source lengths
    link_to: Ints  # L offsets into the buffer
    link_index_start: Ints  # L offsets into `link_index`
    link_index: Codes  # target position of each source position
    measured_at: Ints  # M offsets into the buffer
    measured_size: Ints  # M lengths
    answer_start: Ints  # M offsets into `answers`
    answers: Floats
    precision: Floats  # M; 1 / sigma**2
    axes_start: Ints  # M + 1 offsets into `axes`
    axes: Ints  # slices along each axis of the grids whose contrasts were measured
    values: int  # the length of the buffer


@compiled
def infer(program: Program, theta: Floats, total: float, values: Floats, gradient: Floats) -> float:
    """Fill `values` with beliefs and marginals, `gradient` with the loss's slope; return the loss.

    The loss is infinite where the potentials leave no mass, or lose some to underflow
    (a step far too long).
    """
    if not _calibrate(program, theta, total, values):
        return math.inf
    cells = program.node_start[-1]
    values[cells:] = 0.0
    for link in range(program.link_from.size):
        start, to, at = program.link_from[link], program.link_to[link], program.link_index_start[link]
        for i in range(program.link_size[link]):
            values[to + program.link_index[at + i]] += values[start + i]
    gradient[cells:] = 0.0
    loss = 0.0
    for m in range(program.measured_at.size):
        at, answer, precision = program.measured_at[m], program.answer_start[m], program.precision[m]
        size = program.measured_size[m]
        residuals = values[at : at + size] - program.answers[answer : answer + size]
        if program.axes_start[m] < program.axes_start[m + 1]:
            centre(residuals, program.axes[program.axes_start[m] : program.axes_start[m + 1]])
        for i in range(size):
            loss += 0.5 * precision * residuals[i] * residuals[i]
            gradient[at + i] += precision * residuals[i]
    for link in range(program.link_from.size - 1, program.potentials - 1, -1):
        start, to, at = program.link_from[link], program.link_to[link], program.link_index_start[link]
        for i in range(program.link_size[link]):
            gradient[start + i] += gradient[to + program.link_index[at + i]]
    return loss


@compiled
def _calibrate(program: Program, theta: Floats, total: float, values: Floats) -> bool:
    """Sum-product over the tree, in linear space with every message scaled to at most one."""
    _spread_potentials(program, theta, values)
    _exponentiate(program, values)
    messages = np.zeros(program.separator_start[-1])
    if not _collect(program, messages, values):
        return False
    _distribute(program, messages, total, values)
    return _holds_total(program, total, values)


@compiled
def _holds_total(program: Program, total: float, values: Floats) -> bool:
    """Whether every node kept its mass; potentials too far apart underflow and lose some."""
    for k in range(program.parent.size):
        mass = 0.0
        for i in range(program.node_start[k], program.node_start[k + 1]):
            mass += values[i]
        if not abs(mass - total) <= _MASS * total:
            return False
    return True


@compiled
def _exponentiate(program: Program, values: Floats) -> None:
    """From log-potentials to potentials, each node's largest being one."""
    for k in range(program.parent.size):
        start, end = program.node_start[k], program.node_start[k + 1]
        top = values[start]
        for i in range(start, end):
            top = max(top, values[i])
        for i in range(start, end):
            values[i] = math.exp(values[i] - top)


@compiled
def _collect(program: Program, messages: Floats, values: Floats) -> bool:
    """Pass messages from the leaves to the roots; whether any mass is left."""
    for k in range(program.parent.size - 1, -1, -1):
        at, end = program.separator_start[k], program.separator_start[k + 1]
        for i in range(program.node_start[k], program.node_start[k + 1]):
            messages[at + program.own[i]] += values[i]
        top = 0.0
        for s in range(at, end):
            top = max(top, messages[s])
        if not (top > 0.0 and top < math.inf):
            return False
        p = program.parent[k]
        if p >= 0:
            for s in range(at, end):
                messages[s] /= top
            for i in range(program.node_start[k], program.node_start[k + 1]):
                values[i] /= top
            into = program.into_start[k] - program.node_start[p]
            for i in range(program.node_start[p], program.node_start[p + 1]):
                values[i] *= messages[at + program.into[into + i]]
    return True


@compiled
def _distribute(program: Program, messages: Floats, total: float, values: Floats) -> None:
    """Pass messages from the roots to the leaves, so that every node holds its marginal."""
    ratios = np.zeros(messages.size)
    for k in range(program.parent.size):
        at, end = program.separator_start[k], program.separator_start[k + 1]
        p = program.parent[k]
        if p < 0:
            ratios[at] = total
        else:
            into = program.into_start[k] - program.node_start[p]
            for i in range(program.node_start[p], program.node_start[p + 1]):
                ratios[at + program.into[into + i]] += values[i]
        for s in range(at, end):
            ratios[s] = ratios[s] / messages[s] if messages[s] > 0.0 else 0.0
        for i in range(program.node_start[k], program.node_start[k + 1]):
            values[i] *= ratios[at + program.own[i]]


@compiled
def _spread_potentials(program: Program, theta: Floats, values: Floats) -> None:
    cells = program.node_start[-1]
    values[:cells] = 0.0
    for link in range(program.potentials):
        start, to, at = program.link_from[link], program.link_to[link] - cells, program.link_index_start[link]
        for i in range(program.link_size[link]):
            values[start + i] += theta[to + program.link_index[at + i]]


@compiled
def descend(
    program: Program, theta: Floats, total: float, step: float, iterations: int, tolerance: float
) -> tuple[Floats, Floats, float, float, int]:
    """Accelerated mirror descent with a backtracking step; the loss never rises.

    Returns the potentials, the values they imply, the loss, the last step that was
    neither refused nor just untested (to start the next fit with) and the number of
    steps taken. The step and its sufficient decrease, half of what the slope
    promises, are Algorithm 1 of McKenna, Sheldon and Miklau, "Graphical-model based
    estimation and inference for differential privacy" (ICML 2019). Steps start from a
    point ahead of the last (Nesterov's momentum on the potentials), and the momentum
    starts anew when the loss would rise (O'Donoghue and Candes, "Adaptive restart for
    accelerated gradient schemes", 2015).
    """
    ahead, ahead_slope = np.zeros(program.values), np.zeros(program.values)
    values, slope = np.zeros(program.values), np.zeros(program.values)
    first = program.node_start[-1]
    last = first + theta.size
    origin, origin_loss = theta, infer(program, theta, total, ahead, ahead_slope)
    loss, kept, momentum, growth, stalled, taken = origin_loss, step, 1.0, 2.0, 0, 0
    for _ in range(iterations):
        accepted, attempts, theta_2, loss_2 = False, 0, theta, loss
        while not accepted and attempts < _ATTEMPTS:
            theta_2 = origin - step * ahead_slope[first:last]
            loss_2 = infer(program, theta_2, total, values, slope)
            if loss_2 < math.inf:
                promised = 0.0
                for i in range(first, last):
                    promised += ahead_slope[i] * (ahead[i] - values[i])
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
            origin_loss = infer(program, origin, total, ahead, ahead_slope)
            continue
        is_slow = growth == _LONGER and loss - loss_2 < tolerance * max(loss_2, 1e-9)
        stalled = stalled + 1 if is_slow else 0
        later = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        origin = theta_2 + (momentum - 1.0) / later * (theta_2 - theta)
        theta, loss = theta_2, loss_2
        if stalled >= _PATIENCE:
            break
        if momentum == 1.0:
            origin_loss, ahead, ahead_slope, values, slope = loss, values, slope, ahead, ahead_slope
        else:
            origin_loss = infer(program, origin, total, ahead, ahead_slope)
            if not origin_loss < math.inf:
                origin, later = theta, 1.0
                origin_loss = infer(program, origin, total, ahead, ahead_slope)
        momentum = later
    loss = infer(program, theta, total, values, slope)
    return theta, values, loss, kept, taken
