"""The person as the unit of privacy: a bound on how many rows each contributes."""

import secrets
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ppsyn.discretize.reading import is_null
from ppsyn.errors import ConfigError, SchemaError

Keys: TypeAlias = NDArray[np.uint64]


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
    crowd = Crowd(person_column, draw=draw)
    crowd.add(frame[person_column])
    (is_kept,) = crowd.choose(max_rows)
    return frame.loc[is_kept].drop(columns=person_column)


class Crowd:
    """Whose rows the batches of a table hold; it keeps ids and keys, and no other part of a row.

    Privacy:
        As of `bound_contributions`: a table in batches keeps the rows that it would
        keep in one piece.
    """

    def __init__(self, person_column: str, *, draw: Callable[[int], Keys] = draw_keys) -> None:
        """Begin without rows."""
        self._column, self._draw = person_column, draw
        self._known: dict[Hashable, int] = {}
        self._persons: list[NDArray[np.int64]] = []
        self._keys: list[Keys] = []

    def __repr__(self) -> str:
        """Show nothing of the table."""
        return "Crowd()"

    def add(self, ids: "pd.Series[Any]") -> None:
        """Take in the persons of a batch, and draw a key for each row.

        Raises:
            SchemaError: If the ids cannot tell persons apart.
        """
        self._persons.append(self._number(ids))
        self._keys.append(self._draw(len(ids)))

    def choose(self, max_rows: int) -> list[NDArray[np.bool_]]:
        """Of each batch, the rows to keep."""
        if not self._persons:
            return []
        is_kept = _rank_rows(np.concatenate(self._persons), np.concatenate(self._keys)) < max_rows
        ends = np.cumsum([persons.size for persons in self._persons])
        return np.split(is_kept, ends[:-1])

    def _number(self, ids: "pd.Series[Any]") -> NDArray[np.int64]:
        """The number of each person, the same in all batches; -1 for all who have no id."""
        try:
            positions, distinct = pd.factorize(ids)
            numbers = [self._number_of(person) for person in cast("list[Hashable]", distinct.tolist())]
            return np.array([*numbers, -1], np.int64)[positions]
        except (TypeError, NotImplementedError):
            problem = f"Expected the person column {self._column!r} to hold plain identifiers."
        raise SchemaError(problem)

    def _number_of(self, person: Hashable) -> int:
        return -1 if is_null(person) else self._known.setdefault(person, len(self._known))


def _rank_rows(persons: NDArray[np.int64], keys: Keys) -> NDArray[np.int64]:
    """The rank of each row among those of its person, by key."""
    order = np.lexsort((keys, persons))
    is_first = np.diff(persons[order], prepend=np.int64(-2)) != 0
    positions = np.arange(persons.size)
    ranks = np.empty_like(persons)
    ranks[order] = positions - np.maximum.accumulate(np.where(is_first, positions, 0))
    return ranks
