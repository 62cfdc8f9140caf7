"""How much of anything is taken from outside: past these numbers a mistake or an attack is likelier than a use.

Whatever is within them is read or refused in seconds and in less than 1 GB beside the libraries.
"""

DOCUMENT_BYTES = 2**23
"""Of a YAML or JSON text read whole. A column of the most labels there may be, of 60 characters each, is 6 MB."""

ARRAYS_BYTES = 2**28
"""Of any other file read whole: a model, answers, a ledger, a report. A model of 100 MB with its answers fits."""

VALUES = 2**24
"""Of a Parquet file of a release that is read whole, such as answers: as Python objects they take 0.7 GB."""

NODES = 250_000
"""Values in a YAML document, those that an alias stands for counted as often as it stands for them: two columns of
the most labels there may be."""

DEPTH = 40
"""Lists and mappings within each other in a YAML document; a schema and a release file need six."""

COLUMNS = 1_000
"""Of a table. Every pair of columns is a candidate: of so many there are half a million."""

CODES = 100_000
"""Of a column. A marginal of it with a column of 40 values is the largest that a workload may hold."""

TABLE_CODES = 1_000_000
"""Of all columns of a table together. They are an array of 8 MB in the smallest model."""

CELLS = 2**22
"""Of a marginal in a workload: what a round looks at bounds its time and its memory."""

WORKERS = 1_000
"""Of one machine: each is a process that takes memory of its own."""

PERSON_ROWS = 10**6
"""Of one person, that count: the noise grows with them."""

ROWS = 10**12
"""Of a synthetic table. Counts of it fit 64 bits in the units of scores, 2**-10 rows."""

BATCH_ROWS = 2**24
"""Of a private table, read at a time: they are held in memory."""

TEXT_CHARACTERS = 1_000
"""Of a name or a label of a schema: errors quote them, and reports show them."""

MAX_FAULTS_SHOWN, MAX_CHARACTERS_SHOWN = 50, 200
"""Faults that an error lists, and characters of a value that it quotes."""

PATH_BYTES, STEP_BYTES = 4_095, 255
"""Of a path and of each of its parts, as Linux has them."""
