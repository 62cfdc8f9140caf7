"""Thin Prefect tasks: a name, a policy, one call into the library."""
