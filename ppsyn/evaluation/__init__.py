"""How far a synthetic table is from the real one. Every result here is private: it reads the real table."""

from ppsyn.evaluation.metrics import total_variation, workload_error

__all__ = ["total_variation", "workload_error"]
