"""Limits on everything that comes from outside. Past them, a mistake or an attack is more likely than a use.

Input within the limits is read or refused in seconds, in less than 1 GB of memory besides the libraries.
"""

DOCUMENT_BYTES = 2**23
"""Bytes of a YAML or JSON file. A column with the most labels allowed, of 60 characters each, takes 6 MB."""

ARRAYS_BYTES = 2**28
"""Bytes of any other file read whole: a model, answers, a ledger, a report. A model of 100 MB fits."""

VALUES = 2**24
"""Values in a Parquet file of a release that is read whole, such as answers. As Python objects they take 0.7 GB."""

NODES = 250_000
"""Values in a YAML document, counting what an alias repeats each time. Two columns with the most labels fit."""

DEPTH = 40
"""Depth of nested lists and mappings in a YAML document. A schema and a release file need six."""

COLUMNS = 1_000
"""Columns of a table. Every pair is a candidate; a thousand columns have half a million pairs."""

CODES = 100_000
"""Codes of a column. Its marginal with a column of 40 values is the largest that a workload may contain."""

TABLE_CODES = 1_000_000
"""Codes of all columns of a table together. The smallest model keeps them in an array of 8 MB."""

CELLS = 2**22
"""Cells of a marginal in a workload. They bound the time and the memory of a round."""

WORKERS = 1_000
"""Dask workers on one machine. Each is a process with its own memory."""

PERSON_ROWS = 10**6
"""Rows that may count of one person. The noise grows with them."""

ROWS = 10**12
"""Rows of a synthetic table. Their counts fit 64 bits in the units of scores, 2**-10 rows."""

BATCH_ROWS = 2**24
"""Rows of a private table that are read at a time and kept in memory."""

TEXT_CHARACTERS = 1_000
"""Characters of a name or a label in a schema. Errors and reports quote them."""

MAX_FAULTS_SHOWN, MAX_CHARACTERS_SHOWN = 50, 200
"""Faults that an error lists, and characters of a value that it quotes."""

PATH_BYTES, STEP_BYTES = 4_095, 255
"""Bytes of a path and of each of its parts, as on Linux."""
