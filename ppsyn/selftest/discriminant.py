"""A linear discriminant, trained on one half of the releases and tested on the other."""

import numpy as np

from ppsyn.arrays import Floats

_KEPT = 24
"""Features that are kept: those that differ most in the half that is trained on."""
_RIDGE = 0.05


def discriminate(without: Floats, present: Floats) -> tuple[Floats, Floats]:
    """Train on releases with even numbers, and guess about the others: above nought, that the canary is in.

    A row is a release, a column a feature.
    """
    direction, threshold = _trained(without[::2], present[::2])
    return without[1::2] @ direction - threshold, present[1::2] @ direction - threshold


def _trained(without: Floats, present: Floats) -> tuple[Floats, float]:
    """Weights of features and a threshold half-way."""
    centred = np.concatenate([without - without.mean(axis=0), present - present.mean(axis=0)])
    difference = present.mean(axis=0) - without.mean(axis=0)
    varied: Floats = centred.std(axis=0)
    # What never varied in training and yet differs tells the sides apart at once.
    spread = np.asarray(np.where(varied > 0, varied, np.maximum(np.abs(difference) / 100, 1e-12)), np.float64)
    kept = np.argsort(-np.abs(difference / spread), kind="stable")[:_KEPT]
    scaled = centred[:, kept] / spread[kept]
    covariance = scaled.T @ scaled / max(1, len(scaled) - 2) + _RIDGE * np.eye(kept.size)
    weights = np.zeros(difference.size)
    weights[kept] = np.linalg.solve(covariance, difference[kept] / spread[kept]) / spread[kept]
    return weights, float(weights @ (without.mean(axis=0) + present.mean(axis=0)) / 2)
