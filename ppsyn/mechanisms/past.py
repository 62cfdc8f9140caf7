"""What earlier releases tell of today's table: their answers, merged and aged, from released values alone.

An answer about last month's table is an answer about this month's, with more variance. How much more is
told by what successive answers to the same question differ by beyond their noise, as a number of rows
that moved, for one that was there: it is the same for every partition of every marginal if rows are replaced by
others of the same kind. Where one marginal changes more than that, its own answers show it, and all marginals
that contain it age as fast.

Answers to the same question are merged by inverse variance, so that many releases tell no more numbers than a few.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.domain import Clique
from ppsyn.model.measurement import Measurement, unit_of
from ppsyn.privacy.partition import Partition
from ppsyn.privacy.residuals import centred, degrees

_RATES = (0.0, *(10.0 ** (step / 8) for step in range(-40, 49)))
"""Rows that may have moved since the last release, for one that was there: what is tried."""

_SURE = 3.0
"""A marginal changes by itself if that makes its answers so much likelier, as a logarithm."""

_LOOKS = 3
"""How often those that change by themselves are told from the others, by the rate of these."""

_QUESTIONS = 5
"""Questions about a marginal whose answers are kept: those that tell most."""


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What all answers to one question tell.

    Attributes:
        counts: Rows of each group; of a grid, the part that its residuals tell.
        variance: Of the error in every direction that was measured.
    """

    clique: Clique
    partition: Partition
    counts: Floats
    variance: float

    @property
    def degrees(self) -> int:
        """Directions that were measured."""
        return degrees(self.partition.axes) if self.partition.axes else self.partition.count

    @property
    def question(self) -> tuple[Clique, Partition]:
        """What it answers."""
        return self.clique, self.partition

    def measurement(self) -> Measurement:
        """The same as an answer that the model can be fitted to, with what rounding adds to its noise."""
        unit = unit_of(self.partition)
        sigma = math.sqrt(self.variance * unit**2 + 1 / 12)
        return Measurement(self.clique, self.partition, np.rint(self.counts * unit).astype(np.int64), sigma)


@dataclass(frozen=True, slots=True)
class Change:
    """By how much two answers to a question differ, one release apart.

    Attributes:
        square: Their mean squared difference, in rows, in every direction that was measured.
        noise: What noise is expected to make of it.
        rows: What one row moved for one that was there adds to it.
        degrees: Directions that were measured.
    """

    clique: Clique
    square: float
    noise: float
    rows: float
    degrees: int


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What earlier releases tell.

    Attributes:
        total: Rows of the table that the beliefs are about.
        total_variance: Of its error.
        changes: What was seen from each release to the next.
        value_groups: The groups of values of large attributes that models held apart.
    """

    beliefs: tuple[Belief, ...]
    total: float
    total_variance: float
    changes: tuple[Change, ...] = ()
    value_groups: Mapping[str, Partition] = field(default_factory=dict[str, Partition])

    @property
    def precisions(self) -> dict[str, float]:
        """For each attribute, one over the variance of a value's count, by the finest answers."""
        found = dict[str, float]()
        singles = [belief for belief in self.beliefs if len(belief.clique) == 1]
        for belief in singles:
            (name,) = belief.clique
            finest = max(other.partition.count for other in singles if other.clique == belief.clique)
            if belief.partition.count == finest:
                found[name] = found.get(name, 0.0) + 1 / belief.variance
        return found


def learned(releases: Iterable[Sequence[Measurement]]) -> Past | None:
    """What the answers of earlier releases, oldest first, tell together; None if there are none."""
    past: Past | None = None
    for answers in releases:
        past = with_answers(past, answers)
    return past


def with_answers(
    past: Past | None, answers: Sequence[Measurement], value_groups: Mapping[str, Partition] | None = None
) -> Past | None:
    """The past once a release more is part of it."""
    found = _with_answers(past, answers)
    return (
        found
        if found is None or not value_groups
        else replace(found, value_groups={**found.value_groups, **value_groups})
    )


def _with_answers(past: Past | None, answers: Sequence[Measurement]) -> Past | None:
    told = merged(map(_belief, answers))
    if past is None:
        total, variance = _total(answers)
        return Past(tuple(told.values()), total, variance) if math.isfinite(variance) else None
    aged, found = _confronted(past, answers)
    beliefs = merged((*aged.beliefs, *told.values())).values()
    kept = _most_telling(belief for belief in beliefs if not _is_drowned(belief, aged.total))
    return replace(aged, beliefs=kept, changes=(*aged.changes, *found))


def confronted(past: Past, answers: Sequence[Measurement]) -> Past:
    """The past as it tells of a table about which these answers are known: scaled to its rows, and aged."""
    return _confronted(past, answers)[0]


def _confronted(past: Past, answers: Sequence[Measurement]) -> tuple[Past, list[Change]]:
    total, variance = _updated_total(past, answers)
    scale = total / past.total
    beliefs = [replace(b, counts=b.counts * scale, variance=b.variance * scale**2) for b in past.beliefs]
    told = merged(map(_belief, answers))
    found = [_change(b, told[b.question], total) for b in beliefs if b.question in told]
    pace = _pace([*past.changes, *found])
    own = _own_rates(past.changes, found, pace)
    aged = tuple(
        replace(b, variance=b.variance + _rate(b.clique, pace, own) * total / b.partition.count) for b in beliefs
    )
    return replace(past, beliefs=aged, total=total, total_variance=variance), found


def merged(beliefs: Iterable[Belief]) -> dict[tuple[Clique, Partition], Belief]:
    """One belief for each question, by inverse variance."""
    found = dict[tuple[Clique, Partition], Belief]()
    for belief in beliefs:
        old = found.get(belief.question)
        found[belief.question] = belief if old is None else _both(old, belief)
    return found


def _both(one: Belief, other: Belief) -> Belief:
    variance = 1 / (1 / one.variance + 1 / other.variance)
    counts = variance * (one.counts / one.variance + other.counts / other.variance)
    return replace(one, counts=counts, variance=variance)


def _belief(answer: Measurement) -> Belief:
    return Belief(answer.clique, answer.partition, answer.contrast(answer.target), answer.scale**2)


def _total(answers: Sequence[Measurement]) -> tuple[float, float]:
    """The number of rows that the answers tell, and its variance; infinite if none tells it."""
    telling = [m for m in answers if not m.partition.axes]
    weights = [1 / (m.sigma**2 * m.partition.count) for m in telling]
    if not weights:
        return 1.0, math.inf
    rows = sum(weight * float(m.noisy_counts.sum()) for weight, m in zip(weights, telling, strict=True))
    return max(1.0, rows / sum(weights)), 1 / sum(weights)


def _updated_total(past: Past, answers: Sequence[Measurement]) -> tuple[float, float]:
    """The number of rows from the past and the answers; the past counts for less, the more they contradict it."""
    rows, noise = _total(answers)
    if math.isinf(noise):
        return past.total, past.total_variance
    before = past.total_variance + max(0.0, (rows - past.total) ** 2 - noise - past.total_variance)
    variance = 1 / (1 / before + 1 / noise)
    return max(1.0, variance * (past.total / before + rows / noise)), variance


def _change(before: Belief, now: Belief, total: float) -> Change:
    difference = now.counts - before.counts
    if before.partition.axes:
        difference = centred(difference, before.partition.axes)
    square = float(np.square(difference).sum()) / before.degrees
    return Change(before.clique, square, before.variance + now.variance, total / before.partition.count, before.degrees)


def _likelihoods(changes: Sequence[Change]) -> Floats:
    """For each rate, how likely the changes are, as a logarithm."""
    rates = np.array(_RATES)[:, None]
    variance = np.array([c.noise for c in changes]) + rates * np.array([c.rows for c in changes])
    halves, squares = np.array([c.degrees / 2 for c in changes]), np.array([c.square for c in changes])
    return -halves * (np.log(variance) + squares / variance)


def _pace(changes: Sequence[Change]) -> int:
    """The rate at which most marginals change: which of `_RATES`. Those that change by themselves have no say."""
    if not changes:
        return 0
    found = _likelihoods(changes)
    best = sorted(
        chain.from_iterable([rate] * c.degrees for rate, c in zip(found.argmax(axis=0), changes, strict=True))
    )
    pace = int(best[len(best) // 2])
    for _ in range(_LOOKS):
        usual = found.max(axis=0) - found[pace] <= _SURE
        pace = int(found[:, usual].sum(axis=1).argmax())
    return pace


def _own_rates(before: Sequence[Change], now: Sequence[Change], pace: int) -> dict[Clique, float]:
    """Of marginals that change by themselves, by how much more than the others; the latest change tells most."""
    told = defaultdict[Clique, list[Change]](list)
    for change in now:
        told[change.clique].append(change)
    for clique in {change.clique for change in before} - told.keys():
        told[clique] = [change for change in before if change.clique == clique]
    own = dict[Clique, float]()
    for clique in sorted(told):
        found = _likelihoods(told[clique]).sum(axis=1)
        best = int(found.argmax())
        if best > pace and found[best] - found[pace] > _SURE:
            own[clique] = _RATES[best] - _RATES[pace]
    return own


def _rate(clique: Clique, pace: int, own: Mapping[Clique, float]) -> float:
    members = set(clique)
    return _RATES[pace] + sum(rate for part, rate in own.items() if members.issuperset(part))


def _is_drowned(belief: Belief, total: float) -> bool:
    """Whether its error is as large as any difference there could be."""
    return math.sqrt(2 / math.pi * belief.variance) * belief.degrees > 2 * total


def _most_telling(beliefs: Iterable[Belief]) -> tuple[Belief, ...]:
    """Of the questions about each marginal, those whose answers tell most, in the order in which they came."""
    told = defaultdict[Clique, list[Belief]](list)
    for belief in beliefs:
        told[belief.clique].append(belief)
    kept = {
        belief.question
        for found in told.values()
        for belief in sorted(found, key=lambda b: -b.degrees / b.variance)[:_QUESTIONS]
    }
    return tuple(b for found in told.values() for b in found if b.question in kept)
