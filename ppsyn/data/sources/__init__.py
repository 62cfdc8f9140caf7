"""The private table where it lies: files, buckets and databases, read in batches."""

from ppsyn.data.sources.batches import Batch, needed_columns
from ppsyn.data.sources.reading import check_source, check_stable, names_of, read_batches, read_frames

__all__ = ["Batch", "check_source", "check_stable", "names_of", "needed_columns", "read_batches", "read_frames"]
