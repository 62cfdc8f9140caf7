"""Shrink a noisy answer towards what the model expected: post-processing, free of charge."""

import math

import numpy as np
from scipy import fft

from ppsyn.arrays import Floats, Ints
from ppsyn.privacy.residuals import Axes, interactions

_LEAST_KEPT = 0.1
"""However little of a surprise is kept, the estimate is not taken for more certain than this says."""


def denoise(noisy_counts: Ints, expected: Floats, sigma: float) -> tuple[Floats, float]:
    """An estimate of the true group counts with less error than the answer, and its standard deviation.

    The surprise, answer minus expectation, is cut into frequency bands by an
    orthonormal cosine transform along the groups, which leaves the noise independent
    with the same scale. Each band is shrunk by the positive-part James-Stein factor
    (Stein 1956; Efron and Morris 1973): one minus the noise's share of the band's
    energy. A smooth surprise lives in the low bands, so the noise of the high ones
    goes; a band of one or two coefficients is kept as it is. The variance of a shrunk
    normal mean is the noise's times the share of the surprise that was kept.
    """
    surprise = noisy_counts - expected
    coefficients = np.asarray(fft.dct(surprise, norm="ortho"))
    for start, end in _bands(surprise.size):
        band = coefficients[start:end]
        energy = float(band @ band)
        noise = sigma**2 * max(0, band.size - 2)
        coefficients[start:end] = band * max(0.0, 1 - noise / energy) if energy > 0 else 0.0
    shrunk = np.asarray(fft.idct(coefficients, norm="ortho"))
    return expected + shrunk, _deviation(surprise, shrunk, sigma)


def denoise_contrasts(surprise: Floats, axes: Axes, sigma: float) -> tuple[Floats, float]:
    """An estimate of the true contrasts with less error than the noisy ones, and its standard deviation.

    What each set of axes tells beyond its subsets is shrunk by itself, by the positive-part
    James-Stein factor: attributes depend on each other in pairs more often than in threes.
    """
    shrunk = np.zeros_like(surprise)
    for part, dimension in interactions(surprise, axes):
        energy = float(part @ part)
        if energy > 0:
            shrunk += part * max(0.0, 1 - sigma**2 * max(0, dimension - 2) / energy)
    return shrunk, _deviation(surprise, shrunk, sigma)


def _deviation(surprise: Floats, shrunk: Floats, sigma: float) -> float:
    """The standard deviation of a shrunk normal mean: the variance falls as what is kept of the surprise does."""
    size = float(np.linalg.norm(surprise))
    kept = float(np.linalg.norm(shrunk)) / size if size > 0 else 0.0
    return sigma * math.sqrt(min(1.0, max(_LEAST_KEPT, kept)))


def _bands(size: int) -> list[tuple[int, int]]:
    """Dyadic bands: 1, 2, 4, ... coefficients; what is less than half a band joins the one before."""
    bands: list[tuple[int, int]] = []
    start, width = 0, 1
    while start < size:
        end = start + width if size - start - width >= width else size
        bands.append((start, end))
        start, width = end, 2 * width
    return bands
