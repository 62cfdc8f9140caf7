"""What the proofs of PRIVACY.md assume of the size of a table, and the code enforces."""

MOST_ROWS = 2**37
"""Of fewer rows all sums fit 64 bits (claim C1), and no two persons have the same mark (claim C8)."""
