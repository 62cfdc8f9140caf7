"""Released: synthetic rows from a fitted model."""
