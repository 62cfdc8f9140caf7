"""Measurements of the library against its baselines."""

from ppsyn.extras import require

require("benchmark", "The benchmark")
