"""MST (McKenna, Miklau and Sheldon, 2021): a tree of pairs, chosen by how far they are from independent."""

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations

import numpy as np
from typing_extensions import override

from ppsyn.domain import Clique, non_constant
from ppsyn.mechanisms import candidates as selection
from ppsyn.mechanisms.base import Mechanism, Plan, State
from ppsyn.mechanisms.independent import each_attribute
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.budget import round_down
from ppsyn.privacy.partition import Partition, finest, number_groups
from ppsyn.privacy.requests import Candidate, Measured, MeasureRequest

_THIRD = Fraction(1, 3)
_SEEN = 3.0
"""Values whose noisy count is below this many standard deviations are taken as one."""


class Mst(Mechanism):
    """A third of the budget each on single attributes, on choosing a spanning tree, and on its pairs.

    A pair is scored against the model of single attributes throughout. So whether a
    chosen pair is measured at once, as here, or after all are chosen, is the same.
    """

    fits_every_round = False

    @override
    def initial_requests(self, plan: Plan) -> tuple[MeasureRequest, ...]:
        return each_attribute(plan, plan.rho if self.round_rho(plan) == 0 else plan.rho * _THIRD)

    @override
    def round_rho(self, plan: Plan) -> Fraction:
        edges = len(non_constant(plan.domain)) - 1
        return round_down(plan.rho * 2 * _THIRD / edges) if edges else Fraction(0)

    @override
    def select_share(self, plan: Plan) -> Fraction:
        return Fraction(1, 2)

    @override
    def candidates(self, state: State, rho: Fraction) -> tuple[Candidate, ...]:
        plan = state.plan
        names = non_constant(plan.domain)
        component = reduce(_joined, (m.clique for m in state.told), {name: name for name in names})
        crossing = tuple((a, b) for a, b in combinations(names, 2) if component[a] != component[b])
        cliques = selection.within_size_limit(state, crossing, plan.config.max_model_size_mb) or tuple(
            (name,) for name in names
        )
        seen = {a.name: finest(a.size) for a in plan.domain.attributes}
        seen |= {m.clique[0]: m.partition for m in state.told if len(m.clique) == 1}
        return tuple(selection.candidate(state, c, _product([seen[name] for name in c])) for c in cliques)

    @override
    def estimate(self, state: State, request: MeasureRequest, answer: Measured) -> Measurement:
        """Of single attributes, the values that are hardly there become one group."""
        if not state.one_way:
            return super().estimate(state, request, answer)
        is_seen = answer.noisy_counts >= _SEEN * answer.sigma
        partition = number_groups(np.where(is_seen, np.arange(1, is_seen.size + 1), 0).astype(np.int32))
        return Measurement(request.clique, partition, partition.sum_counts(answer.noisy_counts), answer.sigma)


def _joined(component: dict[str, str], clique: Clique) -> dict[str, str]:
    """The components after an edge; an attribute's component bears the name of one of its members."""
    ends = {component[name] for name in clique if name in component}
    return {name: min(ends) if root in ends else root for name, root in component.items()}


def _product(parts: Sequence[Partition]) -> Partition:
    """The cells of a marginal, grouped as its attributes' values are."""
    labels = np.zeros(1, np.int32)
    for part in parts:
        labels = (labels[:, None] * part.count + part.groups).ravel()
    return number_groups(labels.astype(np.int32))
