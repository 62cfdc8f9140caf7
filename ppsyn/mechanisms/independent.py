"""Single attributes and nothing else: what any mechanism should be better than."""

from fractions import Fraction

from typing_extensions import override

from ppsyn.domain import non_constant
from ppsyn.errors import InvariantError
from ppsyn.mechanisms.base import Mechanism, Plan, State
from ppsyn.privacy.budget import divide
from ppsyn.privacy.partition import finest
from ppsyn.privacy.requests import Candidate, MeasureRequest


class Independent(Mechanism):
    """The whole budget on single attributes, in equal parts."""

    @override
    def initial_requests(self, plan: Plan) -> tuple[MeasureRequest, ...]:
        return each_attribute(plan, plan.rho)

    @override
    def round_rho(self, plan: Plan) -> Fraction:
        return Fraction(0)

    @override
    def select_share(self, plan: Plan) -> Fraction:
        return Fraction(0)

    @override
    def candidates(self, state: State, rho: Fraction) -> tuple[Candidate, ...]:
        raise InvariantError("A mechanism without rounds was asked for candidates.")


def each_attribute(plan: Plan, rho: Fraction) -> tuple[MeasureRequest, ...]:
    """Every attribute for an equal part of rho; the last one takes what division leaves."""
    names = non_constant(plan.domain)
    parts = divide(rho, [1.0] * len(names))
    rest = rho - sum(parts[:-1], Fraction(0))
    sizes = [plan.domain[name].size for name in names]
    return tuple(
        MeasureRequest((name,), finest(size), part)
        for name, size, part in zip(names, sizes, (*parts[:-1], rest), strict=True)
    )
