"""Columns of days and of moments."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from typing import Generic, Literal
from zoneinfo import ZoneInfo

import numpy as np
from pydantic import field_validator
from typing_extensions import override

from ppsyn.schemas.columns.base import Binned, V, undivided
from ppsyn.schemas.columns.calendar import (
    DAY_MICROSECONDS,
    DateUnit,
    TimeUnit,
    day_number,
    instant,
    unit_starts,
    zoned_starts,
)
from ppsyn.schemas.columns.intervals import Intervals, equal_whole_starts, whole_intervals
from ppsyn.schemas.types import Day, Moment, Zone, end_of_day

_NANOSECOND_REACH = (2**63 - 1) // 1000
"""How many microseconds before and after 1970 a nanosecond dtype can hold."""


class _Temporal(Binned[V, int], Generic[V]):
    @property
    @override
    def dividers(self) -> Mapping[str, object]:
        return {"edges": self.edges, "bins": self.bins, "unit": self._unit}

    @property
    @abstractmethod
    def _unit(self) -> str | None: ...

    @abstractmethod
    def unit_starts(self, lower: int, upper: int, unit: str) -> Sequence[int]:
        """`lower`, then where every later unit of the calendar starts, up to `upper`."""

    @override
    def starts(self, lower: int, upper: int) -> Sequence[int]:
        if self.bins is not None:
            return equal_whole_starts(lower, upper, self.bins)
        if self._unit is not None:
            return self.unit_starts(lower, upper, self._unit)
        if self.follows is not None:
            return [lower]
        raise undivided(self.dividers)

    @override
    def divide(self, starts: Sequence[int], last: int) -> Intervals:
        return whole_intervals(starts, last)


class DateColumn(_Temporal[Day]):
    """A column of days. A moment counts as its day, in UTC if it has an offset."""

    kind: Literal["date"] = "date"
    unit: DateUnit | None = None
    """The calendar's unit to cut by; the first and the last bin stop at the bounds."""

    @property
    @override
    def _unit(self) -> str | None:
        return self.unit

    @override
    def position(self, value: date) -> int:
        return day_number(value)

    @override
    def unit_starts(self, lower: int, upper: int, unit: str) -> Sequence[int]:
        return unit_starts(np.datetime64(lower, "D"), np.datetime64(upper, "D"), unit).astype(np.int64).tolist()

    @property
    @override
    def dtypes(self) -> tuple[str, ...]:
        return ("date32[day][pyarrow]", *(f"datetime64[{tick}]" for tick in _ticks(self.intervals, DAY_MICROSECONDS)))


class DatetimeColumn(_Temporal[Moment]):
    """A column of moments, to the microsecond.

    Bounds, edges and values without an offset are local to `timezone`, or UTC if
    there is none. Values with an offset are converted. A bare date as `upper`
    includes that day.
    """

    kind: Literal["datetime"] = "datetime"
    unit: TimeUnit | None = None
    """The calendar's unit, on the local clock, to cut by; the first and the last bin stop at the bounds.

    An hour that the clock shows twice is two bins.
    """
    timezone: Zone | None = None
    """Whose clock is meant, such as Europe/Berlin; without it UTC."""

    _include_last_day = field_validator("upper", mode="before")(end_of_day)

    @cached_property
    def zone(self) -> ZoneInfo | None:
        """The time zone, if there is one."""
        return None if self.timezone is None else ZoneInfo(self.timezone)

    @property
    @override
    def _unit(self) -> str | None:
        return self.unit

    @override
    def position(self, value: datetime) -> int:
        if self.zone is not None and not 1 < value.year < 9999:
            raise ValueError("Expected the years from 2 to 9998 in a column with a timezone.")
        return instant(value, self.zone)

    @override
    def unit_starts(self, lower: int, upper: int, unit: str) -> Sequence[int]:
        if self.zone is not None:
            return zoned_starts(lower, upper, unit, self.zone)
        return unit_starts(np.datetime64(lower, "us"), np.datetime64(upper, "us"), unit).astype(np.int64).tolist()

    @property
    @override
    def dtypes(self) -> tuple[str, ...]:
        zone = "" if self.timezone is None else f", {self.timezone}"
        return tuple(f"datetime64[{tick}{zone}]" for tick in _ticks(self.intervals, 1))

    @property
    def tick(self) -> int:
        """The microseconds between two values that the decoded dtype tells apart, at least one."""
        if self.decoded_dtype.startswith("datetime64[s"):
            return 1_000_000
        return 1_000 if self.decoded_dtype.startswith("datetime64[ms") else 1

    @cached_property
    @override
    def drawable(self) -> Intervals:
        """The part of each bin that the decoded dtype can hold, in ticks."""
        return Intervals(-(-self.intervals.starts // self.tick), self.intervals.ends // self.tick)


def _ticks(intervals: Intervals, microseconds: int) -> tuple[str, ...]:
    reach = max(-int(intervals.starts[0]), int(intervals.ends[-1]) + 1) * microseconds
    return ("us", "ms", "ns") if reach <= _NANOSECOND_REACH else ("us", "ms")  # Parquet has no seconds
