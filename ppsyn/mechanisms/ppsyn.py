"""PPSyn, made private: it measures marginals with cells merged where the model expects few rows.

First it measures every attribute alone: large ones in a few coarse groups first, then in groups where the rows are.
Then come rounds: select the marginal, and the grid of it, that the model gets most wrong; measure it; fit the model.

An attribute's part of the one-way budget is proportional to (u c)**(2/3), where c is its number of cells and u the
number of workload marginals that contain it. This minimises the sum of errors over the workload (the paper, after
PrivSyn, uses c alone). Cells that noise would hide do not count towards c. Of a large attribute's part, a fraction
measures a few groups of equally many codes, and the rest groups of about equal mass under the model of the first
answers. The first answers also give the number of rows, and so the relative noise: the more noise, the larger the
fraction of the budget for one-way marginals, because no later measurement says anything about them.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Annotated

import numpy as np
from pydantic import Field
from typing_extensions import override

from ppsyn.domain import Attribute, non_constant
from ppsyn.mechanisms import candidates as selection
from ppsyn.mechanisms.base import NOISE_L1, Mechanism, Plan, Round, State
from ppsyn.mechanisms.grid import Strategy, partition_grid, partition_in_order, split_run
from ppsyn.mechanisms.recall import current
from ppsyn.model.compression import Compression, compress_attribute, equal_mass_groups
from ppsyn.model.graphical_model import GraphicalModel, uniform_model
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.budget import divide, round_down
from ppsyn.privacy.partition import Partition, equal_width, finest, number_groups
from ppsyn.privacy.requests import Candidate, Measured, MeasureRequest, noise_scale
from ppsyn.schemas.config import BudgetFraction, Positive
from ppsyn.schemas.limits import CODES

_VISIBLE_GROUPS = 3
"""Cells of an attribute beyond this multiple of `coarse_groups` do not raise its part of the budget."""

_LOW_NOISE, _HIGH_NOISE = 0.0013, 0.052
"""Noise of the one-way marginals at which their fraction of the budget begins and ends to grow."""

_MIN_USE = 0.25
"""Fraction of the average use by the workload that is added to every attribute's own."""


@dataclass(frozen=True, slots=True)
class PPSynParameters:
    """The constants of the mechanism. Releases use these; only the benchmark can set others."""

    one_way_fraction: BudgetFraction = 0.2
    """Smallest fraction of the budget for one-way marginals; up to twice as much if attributes have few values."""
    max_one_way_fraction: BudgetFraction = 0.6
    """Largest fraction of the budget for one-way marginals, if they are noisy."""
    coarse_fraction: BudgetFraction = 0.5
    """Fraction of a large attribute's part that its coarse measurement gets."""
    coarse_groups: Annotated[int, Field(ge=2, le=CODES)] = 16
    """Groups of the coarse measurement. Attributes with no more values are measured at once."""
    max_values: Annotated[int, Field(ge=2, le=CODES)] = 128
    """Attributes with more than 1.5 times this many values are compressed to this many groups."""
    select_budget_fraction: BudgetFraction = 0.15
    """Fraction of a round's budget for selection; the rest measures."""
    granularities: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=20)] = (0.5, 1.0, 2.0, 4.0, 8.0)
    """Sizes of groups to try, in expected rows per standard deviation of the noise."""
    anneal_threshold: Positive = 1.0
    """The noise is halved when it exceeds this multiple of an answer's distance from the model."""
    swap_refinement: bool = True
    """Whether rows swap values until their marginals are closer to the model's."""
    off_tree_pairs: bool = True
    """Whether pairs that the model's tree has no room for are measured too. Swaps bring them into the rows; without
    `swap_refinement` there are none."""


@dataclass(frozen=True)
class PPSyn(Mechanism):
    """Coarse then fine one-way marginals; then rounds whose candidates are marginals at several granularities."""

    parameters: PPSynParameters = PPSynParameters()
    strategy: Strategy = partition_grid

    @property
    @override
    def refines_rows(self) -> bool:
        return self.parameters.swap_refinement

    @override
    def initial_requests(self, plan: Plan) -> tuple[MeasureRequest, ...]:
        """Small attributes whole; of large ones a coarse look, for a fraction of their part."""
        most = self.parameters.coarse_groups
        return tuple(
            MeasureRequest((a.name,), equal_width(a.size, most), part if a.size <= most else self._coarse_rho(part))
            for a, part in self._parts(plan, self._one_way_rho(plan))
        )

    @override
    def followup_requests(self, state: State) -> tuple[MeasureRequest, ...]:
        """Small attributes again, for their part of what is added; of large ones groups that stand above noise."""
        plan, rho = state.plan, self._one_way_rho(state.plan)
        parts = self._parts(plan, rho)
        added = plan.rho * round_down(Fraction(self._one_way_fraction(plan, state.model))) - rho
        more = self._parts(plan, added) if added > 0 else [(a, Fraction(0)) for a, _ in parts]
        requests: list[MeasureRequest] = []
        for (a, part), (_, extra) in zip(parts, more, strict=True):
            if a.size > self.parameters.coarse_groups:
                requests.append(_fine_request(state.model, a, part - self._coarse_rho(part) + extra, plan.sensitivity))
            elif extra > 0:
                requests.append(MeasureRequest((a.name,), finest(a.size), extra))
        return tuple(requests)

    @override
    def before_rounds(self, state: State) -> State:
        """Compress large attributes, so that the model lives on groups of their values; plan the rounds."""
        round_rho = round_down(state.left / state.plan.config.rounds)
        return compress(replace(state, planned_rho=round_rho, round_rho=round_rho), self.parameters.max_values)

    @override
    def round_rho(self, plan: Plan) -> Fraction:
        return round_down((plan.rho - self._one_way_rho(plan)) / plan.config.rounds)

    @override
    def select_share(self, plan: Plan) -> Fraction:
        return Fraction(self.parameters.select_budget_fraction)

    @override
    def candidates(self, state: State, rho: Fraction) -> tuple[Candidate, ...]:
        cap_mb = selection.size_limit(state, rho)
        has_off_tree = self.parameters.off_tree_pairs and self.parameters.swap_refinement
        limited = selection.with_off_tree if has_off_tree else selection.within_size_limit
        cliques = limited(state, selection.round_candidates(state), cap_mb)
        return selection.partitioned_candidates(state, cliques, rho, self.strategy, self.parameters.granularities)

    @override
    def estimate(self, state: State, request: MeasureRequest, answer: Measured) -> Measurement:
        drawn = super().estimate(state, request, answer)
        return replace(drawn, is_off_tree=selection.is_off_tree(state, request.clique))

    @override
    def should_anneal(self, plan: Plan, done: Round) -> bool:
        return done.noise > self.parameters.anneal_threshold * done.distance

    def _one_way_rho(self, plan: Plan) -> Fraction:
        return plan.rho * round_down(Fraction(self._least_fraction(plan)))

    def _least_fraction(self, plan: Plan) -> float:
        """Of the budget, for one-way marginals, however clear they are.

        A pair of attributes with a and b values has a + b - 2 degrees of freedom in its one-way marginals and
        (a - 1)(b - 1) beside them: two to one if both are binary, and hardly any to one if both are large.
        """
        sizes = [plan.domain[name].size for name in non_constant(plan.domain)]
        mean = sum(1 / max(1, size - 1) for size in sizes) / len(sizes)
        return min(0.99, self.parameters.one_way_fraction * (1 + mean**2))

    def _one_way_fraction(self, plan: Plan, model: GraphicalModel) -> float:
        """Of the budget, for all measurements of single attributes: more, the more noise the first leave.

        Noise is measured by the distance that it alone would put between an attribute's counts and the true ones, on
        average, with what earlier releases tell. The fraction grows with its logarithm: what the past makes clear
        leaves more for the rounds.
        """
        parts = self._parts(plan, self._one_way_rho(plan))
        cells = [min(a.size, self._visible_cells) for a, _ in parts]
        known = {} if plan.past is None else plan.past.precisions
        noise = [
            NOISE_L1 / 2 * count / math.sqrt(noise_scale(part, plan.sensitivity) ** -2 + known.get(a.name, 0.0))
            for count, (a, part) in zip(cells, parts, strict=True)
        ]
        mean = sum(noise) / len(noise) / model.total
        position = math.log(mean / _LOW_NOISE) / math.log(_HIGH_NOISE / _LOW_NOISE)
        least = self._least_fraction(plan)
        most = max(least, self.parameters.max_one_way_fraction)
        return least + (most - least) * min(1.0, max(0.0, position))

    def _coarse_rho(self, part: Fraction) -> Fraction:
        return round_down(part * Fraction(self.parameters.coarse_fraction))

    @property
    def _visible_cells(self) -> int:
        return _VISIBLE_GROUPS * self.parameters.coarse_groups

    def _parts(self, plan: Plan, rho: Fraction) -> list[tuple[Attribute, Fraction]]:
        """The attributes of more than one value (the first one, for its total, where there is none) and their parts."""
        attributes = [plan.domain[name] for name in non_constant(plan.domain)]
        found = Counter(chain.from_iterable(plan.workload))
        uses = [found[a.name] for a in attributes]
        least = _MIN_USE * max(1, sum(uses)) / len(uses)
        cells = [min(a.size, self._visible_cells) for a in attributes]
        weights = [((use + least) * count) ** (2 / 3) for use, count in zip(uses, cells, strict=True)]
        return list(zip(attributes, divide(rho, weights), strict=True))


def _fine_request(model: GraphicalModel, attribute: Attribute, rho: Fraction, sensitivity: int) -> MeasureRequest:
    clique, sigma = (attribute.name,), noise_scale(rho, sensitivity)
    (partition,) = partition_in_order(
        model.project(clique), (attribute.is_ordered,), lambda expected: (split_run(expected, sigma),)
    )
    return MeasureRequest(clique, partition, rho)


_WORTHWHILE = 1.5
"""An attribute is compressed if it has this many times more values than it would have groups."""


def compress(state: State, most: int) -> State:
    """Compress large attributes into at most `most` groups each and restate what was measured of them.

    The model knows all that the answers about single attributes said. What it
    says of the groups takes their place, with the noise of the answer it rests on most.
    """
    compression = Compression(
        state.plan.domain,
        {
            a.name: compress_attribute(state.model.project((a.name,)), _groups(state, a, most))
            for a in _large(state, most)
        },
    )
    kept = tuple(m for m in state.told if m.clique[0] not in compression.attributes)
    restated = tuple(_restated(state, name, compression) for name in compression.attributes)
    return current(replace(state, model=uniform_model(compression), told=(*kept, *restated)))


def _large(state: State, most: int) -> list[Attribute]:
    """The attributes to compress; of one whose answers were all lost nothing is known to compress it by."""
    known = {m.clique[0] for m in state.evidence}
    return [a for a in state.plan.domain.attributes if a.size > _WORTHWHILE * most and a.name in known]


def _groups(state: State, attribute: Attribute, most: int) -> Partition:
    """At most so many groups, or those of earlier releases; and more where rules tell values in them apart."""
    past = state.plan.past
    if past is not None and attribute.name in past.value_groups:
        groups = past.value_groups[attribute.name]
    else:
        expected, is_ordered = state.model.project((attribute.name,)), (attribute.is_ordered,)
        (groups,) = partition_in_order(expected, is_ordered, lambda arranged: (equal_mass_groups(arranged, most),))
    kinds = state.plan.domain.kinds(attribute.name)
    return groups if kinds is None else number_groups((groups.groups * (1 + kinds.max()) + kinds).astype(np.int32))


def _restated(state: State, name: str, compression: Compression) -> Measurement:
    groups = compression.attributes[name].groups
    sums = groups.sum_expected(state.model.project((name,)))
    finest = max((m for m in state.evidence if m.clique == (name,)), key=lambda m: m.partition.count)
    alike = [m.sigma for m in state.evidence if m.clique == (name,) and m.partition.count == finest.partition.count]
    sigma = sum(sigma**-2 for sigma in alike) ** -0.5 * math.sqrt(max(1.0, finest.partition.count / groups.count))
    return Measurement((name,), groups, np.rint(sums).astype(np.int64), sigma)
