"""Reading numbers, and finding values in closed lists: categories, and true or false."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from numbers import Integral, Real

import numpy as np
import pandas as pd

from ppsyn.arrays import Floats
from ppsyn.data.encoding.parsing import Fit, Raw, Reading, is_null, read
from ppsyn.schemas.types import LARGEST

SATURATION = 2**63 - 1
"""Stands for all whole numbers from itself up, and its negative for all from there down; no bound reaches so far."""

_TRUTH: type = np.bool_
"""Unlike `bool`, it is not a number to Python."""


def read_whole(raw: Raw) -> Reading:
    """Read whole numbers; one with a fraction is outside, and counts as the whole number below."""
    return read(raw, whole_of, whole_array, np.int64)


def read_real(raw: Raw) -> Reading:
    """Read reals, and infinities."""
    return read(raw, _real_of, _real_array, np.float64)


def whole_of(value: object) -> tuple[int, Fit]:
    """Read any object as a whole number."""
    if isinstance(value, str):
        return _whole_of_text(value)
    if isinstance(value, int | Integral):
        return saturate(int(value)), Fit.INSIDE
    if isinstance(value, _TRUTH):
        return (1 if value else 0), Fit.INSIDE
    if is_null(value):
        return 0, Fit.NULL
    if isinstance(value, Decimal | Fraction):
        return _floor(value)
    return _floor(float(value)) if isinstance(value, Real) else (0, Fit.MISFIT)


def whole_array(raw: Raw) -> Reading | None:
    """Read a column of a numeric dtype as whole numbers."""
    match raw.dtype.kind:
        case "b":
            values = raw.to_numpy(dtype=np.bool_, na_value=False).astype(np.int64)
        case "i":
            values = raw.to_numpy(dtype=np.int64, na_value=0)
        case "u":
            values = np.minimum(raw.to_numpy(dtype=np.uint64, na_value=0), SATURATION).astype(np.int64)
        case "f":
            return _floor_array(raw)
        case _:
            return None
    return Reading(values, np.where(raw.isna(), Fit.NULL, Fit.INSIDE).astype(np.int8))


def saturate(value: int) -> int:
    """The value, or the saturation on its side."""
    return max(-SATURATION, min(SATURATION, value))


def _whole_of_text(text: str) -> tuple[int, Fit]:
    try:
        return saturate(int(text)), Fit.INSIDE
    except ValueError:
        pass  # it may yet be 3.0, or have more digits than int() takes
    try:
        number = Decimal(text)
    except ArithmeticError:
        return 0, Fit.MISFIT
    return (0, Fit.MISFIT) if number.is_nan() else _floor(number)


def _floor(number: float | Decimal | Fraction) -> tuple[int, Fit]:
    if not -SATURATION <= number <= SATURATION:
        return (SATURATION if number > 0 else -SATURATION), Fit.INSIDE
    floor = math.floor(number)
    return floor, Fit.INSIDE if floor == number else Fit.OUTSIDE


def _floor_array(raw: Raw) -> Reading:
    numbers = _floats(raw)
    nulls = np.isnan(numbers)
    floors = np.floor(np.where(nulls, 0, numbers))
    is_large = np.abs(floors) >= 2.0**63
    values = np.where(is_large, 0, floors).astype(np.int64)
    values = np.where(is_large, np.sign(floors).astype(np.int64) * SATURATION, values)
    fits = np.select([nulls, floors != numbers], [Fit.NULL, Fit.OUTSIDE], Fit.INSIDE)
    return Reading(values, fits.astype(np.int8))


def _floats(raw: Raw) -> Floats:
    with np.errstate(over="ignore"):  # a long double may exceed a double
        return raw.to_numpy(dtype=np.float64, na_value=np.nan)


def _real_of(value: object) -> tuple[float, Fit]:
    if isinstance(value, _TRUTH):
        return (1.0 if value else 0.0), Fit.INSIDE
    if is_null(value):
        return 0.0, Fit.NULL
    try:
        number = float(value) if isinstance(value, Real | Decimal | str) else math.nan
    except OverflowError:  # a whole number or a fraction past the largest double
        number = math.copysign(math.inf, whole_of(value)[0])
    except ValueError:  # text that does not parse
        number = math.nan
    return (0.0, Fit.MISFIT) if math.isnan(number) else (number, Fit.INSIDE)


def _real_array(raw: Raw) -> Reading | None:
    if raw.dtype.kind not in "biuf":
        return None
    numbers = _floats(raw)
    nulls = np.isnan(numbers)
    return Reading(np.where(nulls, 0, numbers), np.where(nulls, Fit.NULL, Fit.INSIDE).astype(np.int8))


# Values in a closed list


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
