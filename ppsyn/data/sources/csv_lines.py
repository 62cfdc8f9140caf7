"""The lines of a CSV file, and a compiled scan for those that cannot be read as rows."""

from collections.abc import Iterator
from typing import BinaryIO

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


BLOCK = 2**21
"""Bytes that are read at a time."""

LONGEST = 2**23
"""Bytes of the longest line that is read, in UTF-8 and without its end."""

_BROKEN = b"\0"
"""Stands for what cannot be decoded or is too long. A line that holds it cannot be read."""


def whole_lines(file: BinaryIO, encoding: str) -> Iterator[bytes]:
    """The rest of a file in UTF-8, in blocks of whole lines, each with its end.

    Privacy:
        What a line is given as depends on that line alone, wherever blocks begin.
    """
    pending = b""
    while block := file.read(BLOCK):
        lines, end, rest = block.rpartition(b"\n")
        if end:
            yield _decoded(pending + lines + end, encoding)
            pending = rest
        else:
            pending += rest
        if len(pending) > LONGEST + 1:  # of which the last may belong to the end of the line
            pending = _BROKEN
    if pending:
        yield _decoded(pending + b"\n", encoding)


def is_plain(lines: bytes) -> bool:
    """Whether all that could keep a line from being read is the number of its fields."""
    is_odd = b'"' in lines or b"\0" in lines or len(lines) > LONGEST
    returns = lines.count(b"\r")
    return not is_odd and (not returns or returns == lines.count(b"\r\n"))


def readable(lines: bytes, delimiter: str, fields: int) -> tuple[bytes, Ints, int]:
    """The same lines with each that cannot be read replaced by one of empty fields.

    A line can be read if it has so many fields, none holds a NUL, a quote that opens a field is closed at the end of
    it, a carriage return stands inside quotes or before the end of the line, and the line is not too long.
    Empty lines are no rows, unless there is one field, which is then empty.

    Privacy:
        Whether a line is replaced depends on that line alone.

    Returns:
        The lines; of the rows those that were replaced; and how many rows there are.
    """
    rows, found = find_unreadable(np.frombuffer(lines, np.uint8), ord(delimiter), fields, LONGEST)
    if not len(found):
        return lines, found[:, 0], rows
    filler = delimiter.encode() * (fields - 1) or b'""'
    parts, done = list[bytes](), 0
    for start, end in found[:, 1:].tolist():
        parts += [lines[done:start], filler]
        done = end
    return b"".join([*parts, lines[done:]]), found[:, 0], rows


def _decoded(lines: bytes, encoding: str) -> bytes:
    if lines.isascii():
        return lines
    try:
        return _one_decoded(lines, encoding)
    except UnicodeDecodeError:
        return b"\n".join(_decoded_or_broken(line, encoding) for line in lines.split(b"\n"))


def _one_decoded(lines: bytes, encoding: str) -> bytes:
    text = lines.decode(encoding)
    return lines if encoding == "utf-8" else text.encode()


def _decoded_or_broken(line: bytes, encoding: str) -> bytes:
    try:
        return _one_decoded(line, encoding)
    except UnicodeDecodeError:
        return _BROKEN
