"""AIM, the adaptive and iterative mechanism (McKenna, Mullins, Sheldon and Miklau, VLDB 2022)."""

from collections import Counter
from fractions import Fraction

from typing_extensions import override

from ppsyn.mechanisms import candidates as selection
from ppsyn.mechanisms.base import Mechanism, Plan, Round, State
from ppsyn.privacy.budget import round_down
from ppsyn.privacy.partition import finest
from ppsyn.privacy.requests import Candidate, MeasureRequest

_ROUNDS_PER_ATTRIBUTE = 16
_SELECT = Fraction(1, 10)


class Aim(Mechanism):
    """Marginals cell by cell; a candidate weighs as much as the workload's marginals have in common with it.

    Every attribute is measured first, at the noise of the first round. The noise halves
    when a round moved the model by no more than the noise it carried.
    """

    @override
    def initial_requests(self, plan: Plan) -> tuple[MeasureRequest, ...]:
        rho = round_down(self.round_rho(plan) * (1 - _SELECT))
        return tuple(MeasureRequest((a.name,), finest(a.size), rho) for a in plan.domain.attributes)

    @override
    def round_rho(self, plan: Plan) -> Fraction:
        return round_down(plan.rho / (_ROUNDS_PER_ATTRIBUTE * len(plan.domain.attributes)))

    @override
    def select_share(self, plan: Plan) -> Fraction:
        return _SELECT

    @override
    def candidates(self, state: State, rho: Fraction) -> tuple[Candidate, ...]:
        plan = state.plan
        cliques = selection.within_size_limit(
            state, selection.round_candidates(state), selection.size_limit(state, rho)
        )
        uses = Counter(name for clique in plan.workload for name in clique)
        weights = ((clique, sum(uses[name] for name in clique)) for clique in cliques)
        return tuple(selection.full_candidate(state, clique, rho, max(1, weight)) for clique, weight in weights)

    @override
    def should_anneal(self, plan: Plan, done: Round) -> bool:
        return done.moved <= done.noise
