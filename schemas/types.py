"""The types that all public models share: their base, amounts and digests, and values that YAML may misread."""

import math
import re
from datetime import date, datetime, time
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, Strict

from ppsyn.schemas.limits import TEXT_CHARACTERS


class FrozenModel(BaseModel):
    """Checked once, never changed, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


LARGEST = 2**63 - 2
"""Bounds stay inside what 64 bits hold, so that a value past them has room to show that it is."""


def _check_text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(f"Expected text, got {_as_read(value)}; put it in quotes.")
    return value


def _check_label(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"Expected text or a whole number, got {_as_read(value)}; put it in quotes.")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError(f"Expected a whole number of 64 bits, got {value}; put it in quotes.")
    if isinstance(value, str) and len(value) > TEXT_CHARACTERS:
        raise ValueError(f"Expected text of at most {TEXT_CHARACTERS:,} characters, got {len(value):,}.")
    return value


def _as_read(value: object) -> str:
    if isinstance(value, bool):
        return f"{str(value).lower()} (as YAML reads yes, no, on and off)"
    return "null (for missing values declare nullable: true)" if value is None else repr(value)


def _check_number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"Expected a number, got {_as_read(value)}.")
    return value


def _bare_day(value: object) -> date | None:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            return None
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _parse_day(value: object) -> date:
    day = _bare_day(value)
    if day is None:
        raise ValueError(f"Expected a date such as 2020-12-31, got {value!r}.")
    return day


def _parse_moment(value: object) -> datetime:
    day = _bare_day(value)
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if day is not None:
        moment = datetime.combine(day, time.min)
    if not isinstance(moment, datetime) or moment.tzinfo is not None:
        raise ValueError(f"Expected a local time such as 2020-12-31T23:59:00, without an offset, got {value!r}.")
    return moment


def end_of_day(value: object) -> object:
    """The last microsecond of a bare date; anything else as it is."""
    day = _bare_day(value)
    return value if day is None else datetime.combine(day, time.max)


def _check_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"Expected a time zone such as Europe/Berlin, got {value!r}.") from None
    return value


def _read_policy(value: object) -> object:
    """YAML reads an unquoted null as nothing; here it is the policy of that name."""
    return "null" if value is None else value


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("Expected a finite number.")
    return value


def _check_rational(value: object) -> object:
    """Whole numbers, as they are written: of 1e999999999 each of the digits would be computed."""
    if not isinstance(value, Fraction | str) or (isinstance(value, str) and not _RATIONAL.fullmatch(value)):
        raise ValueError("expected two whole numbers and a slash between them")
    return value


_RATIONAL = re.compile(r"-?[0-9]{1,1000}(/[0-9]{0,999}[1-9][0-9]{0,999})?")

Finite = Annotated[float, AfterValidator(_finite)]
Positive = Annotated[Finite, Field(gt=0)]
Rational = Annotated[
    Fraction, BeforeValidator(_check_rational), PlainSerializer(str, return_type=str, when_used="json")
]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

Run = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$", max_length=64)]
"""The name of a run."""

absent = Field(exclude_if=lambda value: value is None)
"""Of a field that is not written if it is None: what was stored before there was such a field keeps its bytes."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9]+([-_][a-z0-9]+)*$", max_length=64)]
"""Lower-case letters and digits, with single hyphens and underscores between them."""

Text: TypeAlias = Annotated[str, BeforeValidator(_check_text), Field(min_length=1, max_length=TEXT_CHARACTERS)]
Label: TypeAlias = Annotated[str | int, BeforeValidator(_check_label)]
Flag: TypeAlias = Annotated[bool, Strict()]
Count: TypeAlias = Annotated[int, Strict(), Field(ge=1)]
Whole: TypeAlias = Annotated[int, Strict(), Field(ge=-LARGEST, le=LARGEST)]
Real: TypeAlias = Annotated[float, BeforeValidator(_check_number), Field(allow_inf_nan=False)]
Day: TypeAlias = Annotated[date, BeforeValidator(_parse_day)]
Moment: TypeAlias = Annotated[datetime, BeforeValidator(_parse_moment)]
Zone: TypeAlias = Annotated[str, BeforeValidator(_check_text), AfterValidator(_check_zone)]
Outside: TypeAlias = Annotated[Literal["clip", "other", "null", "refuse"], BeforeValidator(_read_policy)]
"""Where a value outside the domain goes: the nearest bin, the value `other`, the null code, or nowhere (refuse)."""
