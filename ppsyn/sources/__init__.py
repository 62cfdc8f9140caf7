"""The private table where it lies: files, buckets and databases, read in batches."""

from ppsyn.sources.batches import Batch
from ppsyn.sources.names import needed
from ppsyn.sources.reading import check_source, check_stable, names_of, read_batches, read_frames

__all__ = ["Batch", "check_source", "check_stable", "names_of", "needed", "read_batches", "read_frames"]
