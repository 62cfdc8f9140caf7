"""The two mechanisms, from OpenDP, on the operating system's entropy. There is no seed.

Only the curator may import this module.
"""
# OpenDP is annotated in part. Its prelude would import scikit-learn, which takes seconds.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_noisy_max
from opendp.measures import zero_concentrated_divergence
from opendp.metrics import l2_distance, linf_distance
from opendp.mod import enable_features

from ppsyn.arrays import Ints
from ppsyn.errors import InvariantError
from ppsyn.privacy.requests import noise_scale

enable_features("contrib")


def add_discrete_gaussian(exact_counts: Ints, rho: Fraction, sensitivity: int) -> tuple[Ints, float]:
    """Exact discrete Gaussian noise on every count; returns the noisy counts and the scale.

    Privacy:
        Claim C1. rho-zCDP for neighbours whose counts differ by at most
        `sensitivity` in L2 norm. The sampler is exact on integers, and OpenDP's own
        privacy map, which rounds up, is held against rho.
    """
    scale = noise_scale(rho, sensitivity)
    space = vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
    measurement = make_gaussian(*space, scale=scale)
    _check_cost(measurement.map(float(sensitivity)), rho)
    return np.array(measurement(exact_counts.tolist()), np.int64), scale


def draw_noisy_max(scores: Sequence[int], rho: Fraction, sensitivity: int) -> int:
    """Draw one index by the exponential mechanism.

    OpenDP's sampler is exact: it proposes an index at random and accepts it with probability
    exp((score - largest score) / scale), until one is accepted. How often depends on the scores (L4).

    Privacy:
        Claim C3. rho-zCDP, rho = epsilon**2 / 8, if every score moves by at most
        `sensitivity` between neighbours (C2).
    """
    if not scores:
        raise InvariantError("Expected at least one candidate.")
    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    scale = noise_scale(rho, sensitivity)
    measurement = make_noisy_max(*space, zero_concentrated_divergence(), scale=scale)
    _check_cost(measurement.map(sensitivity), rho)
    return int(measurement(list(scores)))


def _check_cost(cost: float, rho: Fraction) -> None:
    if not Fraction(cost) <= rho:
        raise InvariantError("The mechanism costs more than was charged; nothing was drawn.")
