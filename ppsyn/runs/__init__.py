"""A release in progress: its record, its answers and its checkpoints, on a store."""
