"""Days and moments as whole numbers counted from 1970, and the calendar's units among them."""

from datetime import UTC, date, datetime, timedelta
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from ppsyn.schemas.columns.intervals import check_size

DateUnit: TypeAlias = Literal["day", "week", "month", "quarter", "year"]
TimeUnit: TypeAlias = Literal["minute", "hour", "day", "week", "month", "quarter", "year"]

DAY_MICROSECONDS = 86_400_000_000

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)

_LONGEST_REPEAT = 3 * 3_600_000_000
"""No clock is set back by more than this many microseconds while the date stays."""

_UNITS: dict[str, tuple[str, int, int]] = {
    "minute": ("m", 1, 0),
    "hour": ("h", 1, 0),
    "day": ("D", 1, 0),
    "week": ("D", 7, 4),  # Mondays: the first of 1970 was 5 January
    "month": ("M", 1, 0),
    "quarter": ("M", 3, 0),
    "year": ("Y", 1, 0),
}
"""Of each unit: NumPy's unit, how many of these it spans, and which of them starts one."""


def day_number(day: date) -> int:
    """Days since 1 January 1970."""
    return day.toordinal() - _EPOCH.toordinal()


def instant(moment: datetime, zone: ZoneInfo | None) -> int:
    """Microseconds since 1970 began in UTC.

    A moment with an offset is taken at its word. One without is local to `zone`,
    or UTC if there is none. Of a time that the clock shows twice it is the first,
    unless its `fold` is 1; one that the clock skips counts on from before the gap.
    """
    offset = (moment if zone is None or moment.tzinfo else moment.replace(tzinfo=zone)).utcoffset()
    return (moment.replace(tzinfo=None) - _EPOCH) // _MICROSECOND - (offset or timedelta()) // _MICROSECOND


def local_time(microseconds: int, zone: ZoneInfo | None) -> datetime:
    """What the clock shows at an instant."""
    moment = _EPOCH.replace(tzinfo=UTC) + microseconds * _MICROSECOND
    return moment.astimezone(zone or UTC).replace(tzinfo=None)


def unit_starts(lower: np.datetime64, upper: np.datetime64, unit: str) -> NDArray[np.datetime64]:
    """Return `lower`, then the start of every later calendar unit up to `upper`, in the resolution of `lower`."""
    base, span, offset = _UNITS[unit]
    first, last = (_count(moment, base) - offset for moment in (lower, upper))
    check_size(last // span - first // span + 1)
    later = np.arange(first // span + 1, last // span + 1, dtype=np.int64) * span + offset
    return np.append(lower, later.astype(f"datetime64[{base}]").astype(lower.dtype))


def zoned_starts(lower: int, upper: int, unit: str, zone: ZoneInfo) -> list[int]:
    """Return `lower`, then the start of every later unit of the zone's clock up to `upper`, as instants.

    A minute or an hour that the clock shows twice starts twice.
    """
    first, last = (np.datetime64(local_time(moment, zone), "us") for moment in (lower - _LONGEST_REPEAT, upper))
    times: list[datetime] = unit_starts(first, last, unit).tolist()
    starts = {instant(time, zone) for time in times}
    if unit in ("minute", "hour"):
        again = ((time, instant(time.replace(fold=1), zone)) for time in times)
        starts |= {start for time, start in again if local_time(start, zone) == time}
    return [lower, *sorted(start for start in starts if lower < start <= upper)]


def _count(moment: np.datetime64, base: str) -> int:
    return int(moment.astype(f"datetime64[{base}]").astype(np.int64))
