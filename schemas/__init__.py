"""The public inputs and outputs, as validated models."""
