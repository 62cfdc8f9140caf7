"""The data owner's own page about a release: the private table beside the synthetic one. All of it is private."""
