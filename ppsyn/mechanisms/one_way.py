"""The first measurements: every attribute alone, large ones coarse first, then where the rows are.

Each attribute's part of the budget is proportional to (u c)**(2/3), where c is its number of
cells and u that of the workload's marginals which hold it: the least sum of errors over
the workload (the paper, after PrivSyn, has c alone). Past a number of cells that noise
leaves visible, more of them count for nothing. Of a large attribute's part, a share goes to a
few groups of equally many codes, and the rest to groups of about equal mass under the model
that the first answers gave. Those tell the number of rows, too, and with it how much noise
there is for each: the more, the more of the budget goes to single attributes, since nothing
that is measured later tells of them again.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import chain

from ppsyn.domain import Attribute, varied
from ppsyn.mechanisms.partitions.balanced import split_balanced
from ppsyn.mechanisms.partitions.order import partition_in_order
from ppsyn.mechanisms.partitions.sequence import NOISE_L1
from ppsyn.mechanisms.state import Plan
from ppsyn.model.graphical_model import GraphicalModel
from ppsyn.privacy.budget import divide, round_down
from ppsyn.privacy.partition import equal_width, finest
from ppsyn.privacy.requests import MeasureRequest, noise_scale

_VISIBLE = 3
"""An attribute gets no more for cells beyond this many times the groups of its coarse look."""

_CLEAR, _LOUD = 0.0013, 0.052
"""Noise in single attributes up to which they get the least share of the budget, and from which they get the most."""

_UNUSED = 0.25
"""Every attribute counts as used by this part of what they are used by on average, besides its own."""


def coarse_requests(plan: Plan, rho: Fraction) -> tuple[MeasureRequest, ...]:
    """Small attributes whole; of large ones a coarse look, for a share of their part."""
    most = plan.config.coarse_groups
    return tuple(
        MeasureRequest((a.name,), equal_width(a.size, most), part if a.size <= most else _first(part, plan))
        for a, part in _parts(plan, rho)
    )


def fine_requests(plan: Plan, model: GraphicalModel, rho: Fraction) -> tuple[MeasureRequest, ...]:
    """Small attributes again, for their part of what is added; of large ones groups that stand above their noise.

    Args:
        plan: What is public.
        model: What the first answers gave.
        rho: What the first answers were a part of.
    """
    added = plan.rho * round_down(Fraction(_share(plan, model, rho))) - rho
    more = _parts(plan, added) if added > 0 else [(a, Fraction(0)) for a, _ in _parts(plan, rho)]
    requests: list[MeasureRequest] = []
    for (a, part), (_, extra) in zip(_parts(plan, rho), more, strict=True):
        if a.size > plan.config.coarse_groups:
            requests.append(_fine_request(model, a, part - _first(part, plan) + extra, plan.sensitivity))
        elif extra > 0:
            requests.append(MeasureRequest((a.name,), finest(a.size), extra))
    return tuple(requests)


def _share(plan: Plan, model: GraphicalModel, rho: Fraction) -> float:
    """The share of the budget that all measurements of single attributes get: more, the more noise the first leave.

    Noise is told as the distance that it alone would put between an attribute's counts and the true
    ones, on average. The share grows with its logarithm, from `initial` where it is `_CLEAR` to `most_initial`.
    """
    parts = _parts(plan, rho)
    noise = [NOISE_L1 / 2 * min(a.size, _visible(plan)) * noise_scale(part, plan.sensitivity) for a, part in parts]
    loudness = math.log(sum(noise) / len(noise) / model.total / _CLEAR) / math.log(_LOUD / _CLEAR)
    least, most = plan.config.initial, max(plan.config.initial, plan.config.most_initial)
    return least + (most - least) * min(1.0, max(0.0, loudness))


def _first(part: Fraction, plan: Plan) -> Fraction:
    return round_down(part * Fraction(plan.config.coarse))


def _fine_request(model: GraphicalModel, attribute: Attribute, rho: Fraction, sensitivity: int) -> MeasureRequest:
    clique, sigma = (attribute.name,), noise_scale(rho, sensitivity)
    (partition,) = partition_in_order(
        model.project(clique), (attribute.is_ordered,), lambda expected: (split_balanced(expected, sigma),)
    )
    return MeasureRequest(clique, partition, rho)


def _visible(plan: Plan) -> int:
    return _VISIBLE * plan.config.coarse_groups


def _parts(plan: Plan, rho: Fraction) -> list[tuple[Attribute, Fraction]]:
    """The attributes with more than one value (the first one, for its total, where there is none) and their parts."""
    attributes = [plan.domain[name] for name in varied(plan.domain)]
    found = Counter(chain.from_iterable(plan.workload))
    uses = [found[a.name] for a in attributes]
    least = _UNUSED * max(1, sum(uses)) / len(uses)
    cells = [min(a.size, _visible(plan)) for a in attributes]
    weights = [((use + least) * count) ** (2 / 3) for use, count in zip(uses, cells, strict=True)]
    return list(zip(attributes, divide(rho, weights), strict=True))
