"""The public page of a release, made from released values alone."""
