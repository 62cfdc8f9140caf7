"""Thin Prefect tasks: a name, a policy, one call into the library."""

from ppsyn.extras import require

require("pipeline", "The pipeline")
