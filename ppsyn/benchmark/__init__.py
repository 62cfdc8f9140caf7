"""Measurements of the library against its baselines."""
