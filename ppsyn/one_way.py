"""The first measurements: every attribute alone, large ones coarse first, then where the rows are.

Each attribute's part of the budget is proportional to c**(2/3), c its number of cells, as
the paper has it (after PrivSyn). A small attribute is measured once. Of a large one's part,
a share goes to a few groups of equally many codes, and the rest to groups of about
equal mass under the model that the first answers gave.
"""

from fractions import Fraction

from ppsyn.domain import Attribute, Domain
from ppsyn.model.graphical import GraphicalModel
from ppsyn.partition.balanced import split_balanced
from ppsyn.partition.cells import equal_width
from ppsyn.partition.order import partition_in_order
from ppsyn.requests import MeasureRequest, noise_scale
from ppsyn.shares import divide, floored


def coarse_requests(domain: Domain, rho: Fraction, share: float, most: int) -> tuple[MeasureRequest, ...]:
    """Small attributes whole; of large ones at most `most` groups, for `share` of their part."""
    return tuple(
        MeasureRequest((a.name,), equal_width(a.size, most), part if a.size <= most else _first(part, share))
        for a, part in _parts(domain, rho)
    )


def fine_requests(
    model: GraphicalModel, rho: Fraction, share: float, most: int, sensitivity: int
) -> tuple[MeasureRequest, ...]:
    """Of large attributes, groups that stand above their noise, for the rest of their part."""
    return tuple(
        _fine_request(model, a, part - _first(part, share), sensitivity)
        for a, part in _parts(model.domain, rho)
        if a.size > most
    )


def _first(part: Fraction, share: float) -> Fraction:
    return floored(part * Fraction(share))


def _fine_request(model: GraphicalModel, attribute: Attribute, rho: Fraction, sensitivity: int) -> MeasureRequest:
    clique, sigma = (attribute.name,), noise_scale(rho, sensitivity)
    (partition,) = partition_in_order(
        model.project(clique), (attribute.is_ordered,), lambda expected: (split_balanced(expected, sigma),)
    )
    return MeasureRequest(clique, partition, rho)


def _parts(domain: Domain, rho: Fraction) -> list[tuple[Attribute, Fraction]]:
    """The attributes with more than one value (the first one, for its total, where there is none) and their parts."""
    attributes = [attribute for attribute in domain.attributes if attribute.size > 1] or [domain.attributes[0]]
    return list(zip(attributes, divide(rho, [a.size ** (2 / 3) for a in attributes]), strict=True))
