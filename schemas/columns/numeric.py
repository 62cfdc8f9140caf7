"""Columns of whole numbers and of reals."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import override

from ppsyn.schemas.columns.base import Binned, undivided, whole_dtypes
from ppsyn.schemas.columns.intervals import (
    Intervals,
    equal_real_starts,
    equal_whole_starts,
    real_intervals,
    single_precision,
    stepped_real_starts,
    stepped_whole_starts,
    whole_intervals,
)
from ppsyn.schemas.types import Count, Real, Whole


class IntegerColumn(Binned[Whole, int]):
    """A column of whole numbers; if nothing divides it, each is a code of its own.

    A number with a fraction is an outsider, whose nearest value is the whole number below.
    """

    kind: Literal["integer"] = "integer"
    step: Count | None = None
    """How many whole numbers to a bin; the last may hold fewer."""

    @property
    @override
    def dividers(self) -> Mapping[str, object]:
        return {"edges": self.edges, "bins": self.bins, "step": self.step}

    @override
    def position(self, value: int) -> int:
        return value

    @override
    def starts(self, lower: int, upper: int) -> Sequence[int]:
        if self.bins is not None:
            return equal_whole_starts(lower, upper, self.bins)
        return stepped_whole_starts(lower, upper, self.step or 1)

    @override
    def divide(self, starts: Sequence[int], last: int) -> Intervals:
        return whole_intervals(starts, last)

    @property
    @override
    def dtypes(self) -> tuple[str, ...]:
        return whole_dtypes(int(self.intervals.starts[0]), int(self.intervals.ends[-1]), nullable=self.nullable)


class RealColumn(Binned[Real, float]):
    """A column of real numbers."""

    kind: Literal["real"] = "real"
    step: Annotated[Real, Field(gt=0)] | None = None
    """The width of a bin; the last may be narrower."""

    @property
    @override
    def dividers(self) -> Mapping[str, object]:
        return {"edges": self.edges, "bins": self.bins, "step": self.step}

    @override
    def position(self, value: float) -> float:
        return value

    @override
    def starts(self, lower: float, upper: float) -> Sequence[float]:
        if self.bins is not None:
            return equal_real_starts(lower, upper, self.bins)
        if self.step is not None:
            return stepped_real_starts(lower, upper, self.step)
        if self.follows is not None:
            return [lower]
        raise undivided(self.dividers)

    @override
    def divide(self, starts: Sequence[float], last: float) -> Intervals:
        return real_intervals(starts, last)

    @property
    @override
    def dtypes(self) -> tuple[str, ...]:
        return ("float64", "float32")

    @cached_property
    @override
    def drawable(self) -> Intervals:
        return single_precision(self.intervals) if self.decoded_dtype == "float32" else self.intervals
