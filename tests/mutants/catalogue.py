"""All planted faults, by claim."""

from mutants import (
    c1_measurement,
    c2_score,
    c3_selection,
    c4_candidates,
    c5_budget,
    c6_postprocessing,
    c7_conversion,
    c8_encoding,
    c9_account,
    c10_resume,
    c11_pipeline,
    c12_comparison,
)
from mutants.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *c1_measurement.FAULTS,
    *c2_score.FAULTS,
    *c3_selection.FAULTS,
    *c4_candidates.FAULTS,
    *c5_budget.FAULTS,
    *c6_postprocessing.FAULTS,
    *c7_conversion.FAULTS,
    *c8_encoding.FAULTS,
    *c9_account.FAULTS,
    *c10_resume.FAULTS,
    *c11_pipeline.FAULTS,
    *c12_comparison.FAULTS,
)
