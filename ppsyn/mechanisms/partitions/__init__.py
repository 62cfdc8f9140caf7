"""Ways to merge the cells of a marginal, from released values alone."""
