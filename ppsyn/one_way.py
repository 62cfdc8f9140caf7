"""The first measurements: every attribute alone, coarse first, then where the rows are.

A share of the budget goes to at most a few equal-width groups of each attribute; the rest
to groups of about equal mass under the model that the first answers gave. Within each
stage an attribute's part is proportional to c**(2/3), c its number of groups or cells,
as the paper has it (after PrivSyn).
"""

from collections.abc import Sequence
from fractions import Fraction

from ppsyn.domain import Attribute, Domain
from ppsyn.model.graphical import GraphicalModel
from ppsyn.partition.balanced import split_balanced
from ppsyn.partition.cells import equal_width
from ppsyn.partition.order import partition_in_order
from ppsyn.requests import MeasureRequest, noise_scale
from ppsyn.shares import divide


def coarse_requests(domain: Domain, rho: Fraction, most: int) -> tuple[MeasureRequest, ...]:
    """At most `most` groups of each attribute: codes in equal numbers, since no count is known yet."""
    parts = _parts(domain, rho, [min(attribute.size, most) for attribute in _informative(domain)])
    return tuple(MeasureRequest((a.name,), equal_width(a.size, most), part) for a, part in parts)


def fine_requests(model: GraphicalModel, rho: Fraction, sensitivity: int, level: float) -> tuple[MeasureRequest, ...]:
    """Groups of each attribute that keep `level` standard deviations of their noise."""
    parts = _parts(model.domain, rho, [attribute.size for attribute in _informative(model.domain)])
    return tuple(_fine_request(model, a, part, level * noise_scale(part, sensitivity)) for a, part in parts)


def _fine_request(model: GraphicalModel, attribute: Attribute, rho: Fraction, least: float) -> MeasureRequest:
    clique = (attribute.name,)
    (partition,) = partition_in_order(
        model.project(clique), (attribute.is_ordered,), lambda expected: (split_balanced(expected, least),)
    )
    return MeasureRequest(clique, partition, rho)


def _parts(domain: Domain, rho: Fraction, sizes: Sequence[int]) -> list[tuple[Attribute, Fraction]]:
    return list(zip(_informative(domain), divide(rho, [size ** (2 / 3) for size in sizes]), strict=True))


def _informative(domain: Domain) -> tuple[Attribute, ...]:
    """The attributes with more than one value; the first one, for its total, where there is none."""
    return tuple(attribute for attribute in domain.attributes if attribute.size > 1) or domain.attributes[:1]
