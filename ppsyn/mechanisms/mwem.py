"""MWEM+PGM: the multiplicative-weights mechanism over a graphical model (McKenna, Sheldon and Miklau, ICML 2019)."""

from fractions import Fraction

from typing_extensions import override

from ppsyn.mechanisms import candidates as selection
from ppsyn.mechanisms.base import Mechanism, Plan, State
from ppsyn.privacy.budget import round_down
from ppsyn.privacy.requests import Candidate, MeasureRequest

_SELECT = Fraction(1, 10)


class Mwem(Mechanism):
    """As many rounds as attributes, all of the same budget, over the workload's own marginals, cell by cell.

    The original takes the number of rows as known. Here it is private, and the
    model learns it from the first answer.
    """

    @override
    def initial_requests(self, plan: Plan) -> tuple[MeasureRequest, ...]:
        return ()

    @override
    def round_rho(self, plan: Plan) -> Fraction:
        return round_down(plan.rho / len(plan.domain.attributes))

    @override
    def select_share(self, plan: Plan) -> Fraction:
        return _SELECT

    @override
    def candidates(self, state: State, rho: Fraction) -> tuple[Candidate, ...]:
        plan = state.plan
        workload = set(plan.workload)
        listed = (clique for clique in selection.round_candidates(state) if clique in workload)
        cliques = selection.within_size_limit(state, listed, selection.size_limit(state, rho))
        singles = tuple((name,) for name in plan.domain.names)
        return tuple(selection.full_candidate(state, clique, rho) for clique in cliques or singles)
