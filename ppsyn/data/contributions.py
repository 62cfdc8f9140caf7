"""The person as the unit of privacy: a bound on how many rows each contributes."""

import math
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from numbers import Integral, Rational, Real
from typing import Any, Self, TypeAlias
from uuid import UUID

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ppsyn.data.encoding.parsing import is_null
from ppsyn.errors import ConfigError, SchemaError, StoreError, translated
from ppsyn.privacy.partition import MOST_ROWS
from ppsyn.schemas.columns.calendar import instant

Keys: TypeAlias = NDArray[np.uint64]
Rows: TypeAlias = NDArray[np.void]

_MARK = ("who", "whose", "whom")
_ROW = np.dtype([(name, "<u8") for name in (*_MARK, "key", "row")])
"""Of a row: its person's mark in three parts, its key, and which it is."""

_BUCKETS = 256
_BUCKET_ROWS = 2**13
"""Rows of a bucket that are held in memory: 80 MB in all."""

_KEY_BYTES = 32
_NOBODY = bytes(24)


def draw_keys(count: int) -> Keys:
    """Draw independent uniform keys from the operating system, which no seed repeats."""
    return np.frombuffer(secrets.token_bytes(8 * count), np.uint64)


def bound_contributions(
    frame: pd.DataFrame, person_column: str, max_rows: int, *, draw: Callable[[int], Keys] = draw_keys
) -> pd.DataFrame:
    """Keep at most `max_rows` rows of each person, without the column that names the person.

    Rows stay in order. Ids that are equal are one person, and so are all null ids
    together: rows that nobody owns could be anybody's.

    Args:
        frame: The private table.
        person_column: The column that says whose row it is.
        max_rows: The most rows that one person may contribute.
        draw: Draws a key per row; a release leaves it as it is.

    Privacy:
        Every row has a key of its own, and a person's rows with the smallest keys
        are kept: a uniform choice that depends on no other person. With the keys
        held fixed, adding or removing a person adds or removes at most `max_rows`
        rows and moves no other, so a mechanism that is private for that many rows
        is private for persons.

    Raises:
        ConfigError: If `max_rows` is less than 1.
        SchemaError: If the table has not exactly one such column, or it cannot tell persons apart.
    """
    if max_rows < 1:
        raise ConfigError(f"Expected max_rows={max_rows} to be at least 1.")
    if list(frame.columns).count(person_column) != 1:
        raise SchemaError(f"Expected the person column {person_column!r} once in the table.")
    with ContributionBounder(person_column, max_rows, draw=draw) as bounder:
        bounder.add(frame[person_column])
        (is_kept,) = bounder.kept_rows()
    return frame.loc[is_kept].drop(columns=person_column)


class ContributionBounder:
    """Whose rows the batches of a table hold, in memory that does not grow with it but for a bit a row.

    A row is known by a mark of its person, 192 bits under a secret that ends with this object, and by its key. Rows
    are put into buckets by their marks, so that all of a person are in one. A bucket that is full is relieved of rows
    that cannot be kept, since their person has enough with smaller keys in the same bucket, and then goes
    to a temporary file that has no name: it is gone when this process is, however that ends.

    Privacy:
        As of `bound_contributions`: a table in batches keeps the rows that it would
        keep in one piece, unless two of n persons have the same mark, which has
        probability n^2 / 2^193 at most: less than 2^-119, as n is below 2^37.
    """

    def __init__(self, person_column: str, max_rows: int, *, draw: Callable[[int], Keys] = draw_keys) -> None:
        """Begin without rows.

        Raises:
            StoreError: If there is no place for a temporary file.
        """
        self._column, self._max_rows, self._draw = person_column, max_rows, draw
        self._secret = secrets.token_bytes(_KEY_BYTES)
        self._sizes: list[int] = []
        self._buckets: list[list[Rows]] = [[] for _ in range(_BUCKETS)]
        self._spilled: list[list[tuple[int, int]]] = [[] for _ in range(_BUCKETS)]
        with translated(OSError, to=StoreError, message=_full_disk):
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed with this object

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End, and leave nothing on the disk."""
        with suppress(OSError):  # a full disk was told when it was met
            self._file.close()

    def __repr__(self) -> str:
        """Show nothing of the table."""
        return "ContributionBounder()"

    def add(self, ids: "pd.Series[Any]") -> None:
        """Take in the persons of a batch, and draw a key for each row.

        Raises:
            SchemaError: If the ids cannot tell persons apart, or there are too many.
            StoreError: If the temporary file cannot be written.
        """
        before = sum(self._sizes)
        if before + len(ids) >= MOST_ROWS:
            raise SchemaError("Expected a table of fewer than 2^37 rows: of more, persons might not be told apart.")
        rows = np.empty(len(ids), _ROW)
        for name, part in zip(_MARK, self._marks(ids).T, strict=True):
            rows[name] = part
        rows["key"], rows["row"] = self._draw(len(ids)), np.arange(len(ids)) + before
        self._sizes.append(len(ids))
        bucket = rows["who"] % np.uint64(_BUCKETS)
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(1, _BUCKETS))
        for number, part in enumerate(np.split(rows[order], ends)):
            if part.size:
                self._put(number, part)

    def kept_rows(self) -> Iterator[NDArray[np.bool_]]:
        """Of each batch, the rows to keep.

        Raises:
            StoreError: If the temporary file cannot be read.
        """
        bits = np.zeros(-(-sum(self._sizes) // 8), np.uint8)
        for number in range(_BUCKETS):
            kept = self._smallest(np.concatenate([np.empty(0, _ROW), *self._all_of(number)]))["row"]
            np.bitwise_or.at(bits, kept >> np.uint64(3), np.uint8(1) << (kept & np.uint64(7)).astype(np.uint8))
        start = 0
        for size in self._sizes:
            first, skipped = divmod(start, 8)
            span = np.unpackbits(bits[first : -(-(start + size) // 8)], bitorder="little")
            yield span[skipped : skipped + size].astype(np.bool_)
            start += size

    def _put(self, number: int, part: Rows) -> None:
        bucket = self._buckets[number]
        bucket.append(part)
        if sum(each.size for each in bucket) <= _BUCKET_ROWS:
            return
        rows = self._smallest(np.concatenate(bucket))
        bucket[:] = [rows]
        if rows.size > _BUCKET_ROWS // 2:
            with translated(OSError, to=StoreError, message=_full_disk):
                self._spilled[number].append((self._file.seek(0, 2), rows.size))
                self._file.write(rows.tobytes())
                self._file.flush()
            bucket.clear()

    def _all_of(self, number: int) -> Iterator[Rows]:
        yield from self._buckets[number]
        for place, size in self._spilled[number]:
            with translated(OSError, to=StoreError, message=_full_disk):
                self._file.seek(place)
                yield np.frombuffer(self._file.read(size * _ROW.itemsize), _ROW)

    def _smallest(self, rows: Rows) -> Rows:
        """Of each person so many rows as may be kept, those of smallest key; of equal keys the first."""
        rows = rows[np.lexsort([rows[name] for name in ("row", "key", *_MARK)])]
        is_first = np.ones(rows.size, np.bool_)
        is_first[1:] = np.any([rows[name][1:] != rows[name][:-1] for name in _MARK], axis=0)
        places = np.arange(rows.size)
        ranks = places - np.maximum.accumulate(np.where(is_first, places, 0))
        return rows[ranks < self._max_rows]

    def _marks(self, ids: "pd.Series[Any]") -> NDArray[np.uint64]:
        """The mark of each row's person, the same in all batches; one for all who have no id."""
        rule = f"Expected the person column {self._column!r} to hold plain identifiers: text, numbers, dates or UUIDs."
        odd = TypeError, NotImplementedError, OverflowError, ValueError
        with translated(odd, to=SchemaError, message=rule):
            positions, distinct = pd.factorize(ids)
            marks = [self._mark(person) for person in distinct.tolist()]
        return np.frombuffer(b"".join([*marks, _NOBODY]), np.uint64).reshape(-1, len(_MARK))[positions]

    def _mark(self, person: object) -> bytes:
        if is_null(person):
            return _NOBODY
        return blake2b(plain(person), digest_size=len(_NOBODY), key=self._secret).digest()


def _full_disk(error: OSError) -> str:
    return (
        f"Cannot keep marks of persons in {tempfile.gettempdir()}: {error.strerror}. They take 40 bytes a row: make "
        "room there, or name another folder in TMPDIR."
    )


# Ids as bytes: ids that are equal are one person, in whatever types and batches they come


_PER_SECOND = 10**18
_SECONDS = {"W": 604_800, "D": 86_400, "h": 3600, "m": 60}
_PARTS = {unit: 1000**power for power, unit in enumerate(("as", "fs", "ps", "ns", "us", "ms", "s"))}
_TICKS = _PARTS | {unit: seconds * _PER_SECOND for unit, seconds in _SECONDS.items()}
"""Attoseconds in each of NumPy's units, but for years and months."""


def plain(person: object) -> bytes:
    """The same bytes for ids that are equal, whatever types they come in, and others for ids that are not.

    A day is its first moment, as it is to NumPy. Of a time that a clock shows twice both are
    one, as they are to Python.

    Raises:
        TypeError: If it is of no kind that is known to tell so.
    """
    match person:
        case np.timedelta64():  # NumPy calls it an integer
            raise TypeError("no plain identifier")
        case str():
            canonical = b"text " + person.encode("utf-8", "surrogatepass")
        case bytes():
            canonical = b"bytes " + person
        case UUID():
            canonical = b"uuid " + person.bytes
        case np.bool_():
            canonical = _plain_number(int(person))
        case Decimal() | Real():
            canonical = _plain_number(person)
        case np.datetime64():
            canonical = b"local %d" % _ticks(person)
        case date() | time():
            canonical = _plain_time(person) if isinstance(person, time) else _plain_moment(person)
        case _:
            raise TypeError("no plain identifier")
    return canonical


def _plain_number(number: Decimal | Real | int) -> bytes:
    """In base 16, which knows no limit of digits; 1, 1.0 and True are one."""
    if isinstance(number, Integral):
        return b"number %x/1" % int(number)
    if number in (math.inf, -math.inf):
        return f"number {float(number)}".encode()
    exact = number if isinstance(number, Rational | Decimal | float | np.floating) else float(number)
    ratio = Fraction(exact) if isinstance(exact, Rational) else Fraction(*exact.as_integer_ratio())
    return f"number {ratio.numerator:x}/{ratio.denominator:x}".encode()


def _plain_moment(day: date) -> bytes:
    """An instant, if it has an offset; otherwise what the clock shows, which is never equal to an instant."""
    moment = day.replace(fold=0) if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
    kind = b"local" if moment.utcoffset() is None else b"instant"
    if isinstance(moment, pd.Timestamp):
        return b"%s %d" % (kind, _ticks(moment.asm8))
    return b"%s %d" % (kind, instant(moment, None) * _PER_SECOND // 10**6)


def _ticks(moment: "np.datetime64[Any]") -> int:
    """Attoseconds since 1970, which any unit is a multiple of; years and months are taken by their first day."""
    unit, step = np.datetime_data(moment.dtype)
    if unit not in _TICKS:
        moment, unit, step = moment.astype("datetime64[D]"), "D", 1
    return int(moment.astype(np.int64)) * step * _TICKS[unit]


def _plain_time(moment: time) -> bytes:
    """Seconds and microseconds of a clock, less its offset if it has one; the two kinds are never equal."""
    offset, seconds = moment.utcoffset(), (moment.hour * 60 + moment.minute) * 60 + moment.second
    if offset is None:
        return b"clock %d %d" % (seconds, moment.microsecond)
    return b"clock with offset %d %d" % (seconds - offset // timedelta(seconds=1), moment.microsecond)
