"""The lines of a text file, and which of them cannot be read as rows."""

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from ppsyn.arrays import Ints
from ppsyn.data.sources.csv_kernel import find_unreadable

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
    held = b""
    while block := file.read(BLOCK):
        lines, end, rest = block.rpartition(b"\n")
        if end:
            yield _decoded(held + lines + end, encoding)
            held = rest
        else:
            held += rest
        if len(held) > LONGEST + 1:  # of which the last may belong to the end of the line
            held = _BROKEN
    if held:
        yield _decoded(held + b"\n", encoding)


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
