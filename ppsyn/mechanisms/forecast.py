"""What a release would do, before it does anything: from its plan and an assumed number of rows, both public.

It dry-runs the loop on the noiseless answers of a uniform table up to the first round, so it shows what the mechanism
would actually request.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import fmean

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.mechanisms.base import NOISE_L1, Plan, State
from ppsyn.mechanisms.loop import absorb, next_request, start
from ppsyn.model.junction_tree import interaction_graph
from ppsyn.privacy.partition import Partition
from ppsyn.privacy.requests import Measured, MeasureRequest, noise_scale


@dataclass(frozen=True, slots=True)
class Stage:
    """Measurements of single attributes that are asked together.

    Attributes:
        least: The smallest standard deviation of noise on a count.
        most: The largest.
    """

    rho: Fraction
    measurements: int
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds as they are planned; annealing makes them fewer, and their noise smaller.

    Attributes:
        rho: What all of them may spend.
        planned: How many that is.
        select_rho: What one spends to select.
        measure_rho: What one spends to measure.
        sigma: The standard deviation of the noise on a count.
        candidates: Marginals that a round may choose from, before those that the model has no room for are left out.
    """

    rho: Fraction
    planned: int
    select_rho: Fraction
    measure_rho: Fraction
    sigma: float
    candidates: int


@dataclass(frozen=True, slots=True)
class Single:
    """One attribute.

    Attributes:
        groups: Of its values, as they are measured if rows are spread evenly.
        sigma: The standard deviation of the noise on the count of a group, of all such measurements together.
        noise_share: The share of the assumed rows that this noise moves to other groups, on average.
    """

    name: str
    values: int
    groups: int
    sigma: float
    noise_share: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected of a plan.

    Attributes:
        rows: As they are assumed.
        smallest_mb: The model of single attributes.
    """

    plan: Plan
    rows: int
    stages: tuple[Stage, ...]
    rounds: Rounds | None
    singles: tuple[Single, ...]
    smallest_mb: float

    @property
    def noise_share(self) -> float:
        """The mean over attributes that are measured."""
        return fmean(single.noise_share for single in self.singles)


def forecast(plan: Plan, rows: int) -> Forecast:
    """What a release by this plan would do with so many rows. No table is read, and nothing is spent."""
    state, requests = _rehearsed(plan, rows)
    return Forecast(
        plan,
        rows,
        tuple(_stage(stage, plan) for stage in requests if stage),
        _rounds(state),
        tuple(_singles(state, rows)),
        interaction_graph(plan.domain, ()).model_mb(),
    )


def at_budget(plan: Plan, rho: Fraction) -> Plan:
    """The same plan for another budget."""
    return replace(plan, rho=rho)


def _rehearsed(plan: Plan, rows: int) -> tuple[State, tuple[list[MeasureRequest], list[MeasureRequest]]]:
    """The state in which rounds begin, and what was asked before: first looks and second looks."""
    state, requests = start(plan), (list[MeasureRequest](), list[MeasureRequest]())
    while state.stage == "one-way" and isinstance(request := next_request(state), MeasureRequest):
        requests[state.is_fine].append(request)
        counts, sigma = _even(request.partition, rows), noise_scale(request.rho, plan.sensitivity)
        state = absorb(state, request, Measured(counts, sigma))
    return state, requests


def _even(partition: Partition, rows: int) -> Ints:
    """The counts of groups if every cell has as many rows."""
    cells = np.bincount(partition.groups, minlength=partition.count)
    return np.rint(rows * cells / cells.sum()).astype(np.int64)


def _stage(requests: Sequence[MeasureRequest], plan: Plan) -> Stage:
    sigmas = [noise_scale(request.rho, plan.sensitivity) for request in requests]
    rho = sum((request.rho for request in requests), Fraction(0))
    return Stage(rho, len(requests), min(sigmas), max(sigmas))


def _rounds(state: State) -> Rounds | None:
    plan, rho = state.plan, state.round_rho
    if state.left == 0 or rho == 0:
        return None
    select_rho = rho * plan.mechanism.select_share(plan)
    candidates = {clique for turn in plan.turns for clique in turn}
    return Rounds(
        state.left,
        max(1, math.floor(state.left / rho)),
        select_rho,
        rho - select_rho,
        noise_scale(rho - select_rho, plan.sensitivity),
        len(candidates),
    )


def _singles(state: State, rows: int) -> Iterator[Single]:
    """Each attribute by the finest measurements of it; one that has none, or a single value, is not among them."""
    for attribute in state.plan.domain.attributes:
        found = [m for m in state.measurements if m.clique == (attribute.name,)]
        if found:
            groups = max(m.partition.count for m in found)
            sigma = sum(m.sigma**-2 for m in found if m.partition.count == groups) ** -0.5
            moved = min(1.0, NOISE_L1 * sigma * groups / 2 / rows)
            yield Single(attribute.name, attribute.size, groups, sigma, moved)
