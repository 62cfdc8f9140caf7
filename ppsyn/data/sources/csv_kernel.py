"""The loop over the bytes of a CSV file, compiled."""

import numpy as np
from numpy.typing import NDArray

from ppsyn.arrays import Ints
from ppsyn.jit import compiled

_END, _RETURN, _QUOTE, _NUL = 10, 13, 34, 0

_EMPTY, _PLAIN, _QUOTED, _CLOSED = 0, 1, 2, 3
"""Of a field: nothing of it was seen, it has no quotes, they are open, or the last byte closed them."""


@compiled
def find_unreadable(data: NDArray[np.uint8], delimiter: int, fields: int, longest: int) -> tuple[int, Ints]:
    """How many rows lines have, and of each that cannot be read its row, start and end; the last byte ends a line."""
    found, count, rows = np.empty((16, 3), np.int64), 0, 0
    start, seen, state, is_bad = 0, 1, _EMPTY, False
    for at in range(data.size):
        byte = data[at]
        if byte == _END:
            length = at - start
            if length > 0 and data[at - 1] == _RETURN:
                length -= 1
            if length > 0 or fields == 1:
                if is_bad or state == _QUOTED or (seen != fields) or length > longest:
                    if count == len(found):
                        grown = np.empty((2 * count, 3), np.int64)
                        grown[:count] = found
                        found = grown
                    found[count, 0], found[count, 1], found[count, 2] = rows, start, at
                    count += 1
                rows += 1
            start, seen, state, is_bad = at + 1, 1, _EMPTY, False
        elif byte == _NUL:
            is_bad = True
        elif state == _QUOTED:
            if byte == _QUOTE:
                state = _CLOSED
        elif byte == delimiter:
            seen += 1
            state = _EMPTY
        elif byte == _RETURN:
            if data[at + 1] != _END:
                is_bad = True
        elif byte == _QUOTE:
            if state == _PLAIN:
                continue
            state = _QUOTED  # the first of a field opens it; one after a quote stands for a quote
        elif state == _EMPTY:
            state = _PLAIN
        elif state == _CLOSED:
            is_bad = True
    return rows, found[:count]
