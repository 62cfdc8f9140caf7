"""A finished release: its files, its publication, and its audit."""
