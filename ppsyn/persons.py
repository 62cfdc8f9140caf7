"""The person as the unit of privacy: a bound on how many rows each contributes."""

import secrets
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
    is_kept = _rank_rows(_number_persons(frame, person_column), draw(len(frame))) < max_rows
    return frame.loc[is_kept].drop(columns=person_column)


def _number_persons(frame: pd.DataFrame, person_column: str) -> NDArray[np.int64]:
    try:
        return np.asarray(pd.factorize(frame[person_column])[0], np.int64)
    except TypeError:
        problem = f"Expected the person column {person_column!r} to hold plain identifiers."
    raise SchemaError(problem)


def _rank_rows(persons: NDArray[np.int64], keys: Keys) -> NDArray[np.int64]:
    """The rank of each row among those of its person, by key."""
    order = np.lexsort((keys, persons))
    is_first = np.diff(persons[order], prepend=np.int64(-2)) != 0
    positions = np.arange(persons.size)
    ranks = np.empty_like(persons)
    ranks[order] = positions - np.maximum.accumulate(np.where(is_first, positions, 0))
    return ranks
