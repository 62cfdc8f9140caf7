"""Finding values in a closed list: categories, and true or false."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from ppsyn.data.encoding.numeric import read_whole, whole_array, whole_of
from ppsyn.data.encoding.parsing import Fit, Raw, Reading, read
from ppsyn.schemas.types import LARGEST

_TRUTHS = {"false": 0, "true": 1}


def find_labels(raw: Raw, labels: Sequence[str | int]) -> Reading:
    """The position of each value among the labels; numbers are found by their digits, and digits by their number."""
    texts = {label: code for code, label in enumerate(labels) if isinstance(label, str)}
    numbers = {number: code for code, label in enumerate(labels) if (number := _number(label)) is not None}
    if not texts:
        return _find_numbers(read_whole(raw), numbers)
    one, many = partial(_find_one, texts=texts, numbers=numbers), partial(_find_array, numbers=numbers)
    return read(raw, one, many, np.int64)


def find_truths(raw: Raw) -> Reading:
    """0 for false and 1 for true, written so in any case or as numbers."""
    return _find_numbers(read(raw, _truth_of, whole_array, np.int64), {0: 0, 1: 1})


def _number(label: str | int) -> int | None:
    """The number that is written as the label, and in no other way."""
    number, fit = whole_of(label)
    return number if fit is Fit.INSIDE and str(number) == str(label) and abs(number) <= LARGEST else None


def _find_numbers(reading: Reading, numbers: Mapping[int, int]) -> Reading:
    positions = pd.Index(list(numbers), dtype=np.int64).get_indexer(pd.Index(reading.values))
    codes = np.append(np.fromiter(numbers.values(), np.int64, len(numbers)), 0)[positions]
    is_found = (reading.fits == Fit.INSIDE) & (positions >= 0)
    fits = np.select([is_found, reading.fits == Fit.NULL], [Fit.INSIDE, Fit.NULL], Fit.OUTSIDE)
    return Reading(codes, fits.astype(np.int8))


def _find_one(value: object, texts: Mapping[str, int], numbers: Mapping[int, int]) -> tuple[int, Fit]:
    if isinstance(value, str):
        code = texts.get(value)
    else:
        number, fit = whole_of(value)
        if fit is Fit.NULL:
            return 0, Fit.NULL
        code = numbers.get(number) if fit is Fit.INSIDE else None
    return (0, Fit.OUTSIDE) if code is None else (code, Fit.INSIDE)


def _find_array(raw: Raw, numbers: Mapping[int, int]) -> Reading | None:
    reading = whole_array(raw)
    return None if reading is None else _find_numbers(reading, numbers)


def _truth_of(value: object) -> tuple[int, Fit]:
    truth = _TRUTHS.get(value.strip().casefold()) if isinstance(value, str) else None
    return whole_of(value) if truth is None else (truth, Fit.INSIDE)
