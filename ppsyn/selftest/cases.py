"""What is attacked: a small made-up table with and without a canary, and the ways to release it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
import pandas as pd

from ppsyn.domain import domain_of
from ppsyn.schemas.config import AlgorithmConfig, PersonUnit, PrivacyConfig, WorkloadConfig
from ppsyn.schemas.table import TableSchema
from ppsyn.selftest.likelihood import Adversary

RHO = Fraction(1, 2)
"""All that a case may spend; the mu of a Gaussian of that budget is one."""

MU = 1.0

_NAMES, _VALUES = ("x", "y", "z"), 3
_COUNTS = (1, 2, 0, 0, 1, 1, 2, 1, 0, 4, 1, 0, 0, 0, 1, 2, 4, 1, 0, 0, 2, 1, 1, 14, 0, 1, 0)
"""Of the cells, without the canary: a table, found by search, whose canary moves the scores of some candidates up and
of others down, so that selections tell nearly as much of it as they may."""

_ROWS = sum(_COUNTS)
_TRIPLES, _PAIRS = WorkloadConfig(), WorkloadConfig(degree=2)
"""Methods that select from the workload alone have nothing to choose from if it is the one triple."""

_PERSON = "who"
_QUICK: Mapping[str, object] = {"rounds": 3, "max_fit_steps": 5}


@dataclass(frozen=True, eq=False)
class Case:
    """A way to release.

    Attributes:
        description: What it is, for the table of results.
        settings: Of the algorithm; few rounds and steps of the fit, for thousands of releases.
        workload: What the synthetic table should get right, and methods select from.
        max_rows: Rows of one person that count; without a person column one.
        quality: What figures of the release's quality cost, of RHO.
        is_resumed: Whether processes are killed on the way.
        is_overlapped: Whether another run of the same account asks in between.
        times: As many times the releases of others: the less there is to see, the more of them it takes to see it.
    """

    name: str
    description: str
    settings: Mapping[str, object] = field(default_factory=lambda: _QUICK)
    workload: WorkloadConfig = _TRIPLES
    max_rows: int = 1
    quality: Fraction = Fraction(0)
    is_resumed: bool = False
    is_overlapped: bool = False
    times: int = 1

    @property
    def needs_stores(self) -> bool:
        """Whether there is no such case in memory alone."""
        return self.is_resumed or self.is_overlapped

    @property
    def rho(self) -> Fraction:
        """What the release itself costs."""
        return RHO - self.quality

    @cached_property
    def config(self) -> AlgorithmConfig:
        """How it is released."""
        return AlgorithmConfig.model_validate({**self.settings, "workload": self.workload})

    @cached_property
    def privacy(self) -> PrivacyConfig:
        """At which cost, and for whom."""
        person = None if self.max_rows == 1 else PersonUnit(column=_PERSON, max_rows=self.max_rows)
        return PrivacyConfig(rho=float(self.rho), person=person)

    @cached_property
    def table(self) -> TableSchema:
        """The public schema."""
        columns = [{"name": name, "kind": "integer", "lower": 0, "upper": _VALUES - 1} for name in _NAMES]
        excluded = [] if self.max_rows == 1 else [_PERSON]
        return TableSchema.model_validate({"name": "canary", "columns": columns, "excluded": excluded})

    @property
    def canary(self) -> Mapping[str, int]:
        """The row that is in one of the tables, as often as a person's rows count."""
        return dict.fromkeys(_NAMES, _VALUES - 1)

    @property
    def adversary(self) -> Adversary:
        """Who knows all but whether the canary is in."""
        without = np.array(_COUNTS, np.int64)
        present = without.copy()
        present[-1] += self.max_rows
        return Adversary(domain_of(self.table), without, present, self.max_rows)

    def frame(self, *, has_canary: bool) -> pd.DataFrame:
        """The private table. With persons, the canary has a row more than count."""
        extra = 0 if not has_canary else 1 if self.max_rows == 1 else self.max_rows + 1
        rows = np.concatenate([_others(), np.full((extra, len(_NAMES)), _VALUES - 1)])
        frame = pd.DataFrame(dict(zip(_NAMES, rows.T, strict=True)))
        if self.max_rows > 1:
            frame[_PERSON] = np.append(np.arange(_ROWS) // self.max_rows, np.full(extra, _ROWS))
        return frame


@cache
def _others() -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The rows of all others."""
    cells = np.repeat(np.arange(len(_COUNTS)), _COUNTS)
    return np.stack(np.unravel_index(cells, (_VALUES,) * len(_NAMES)), axis=1).astype(np.int64)


def _of(mechanism: str) -> Mapping[str, object]:
    return {"mechanism": mechanism, "max_fit_steps": _QUICK["max_fit_steps"]}


CASES = (
    Case("independent", "independent", _of("independent")),
    Case("ppsyn", "ppsyn"),
    Case("aim", "aim, for pairs", _of("aim"), workload=_PAIRS, times=2),
    Case("mst", "mst", _of("mst"), times=4),
    Case("mwem", "mwem, for pairs", _of("mwem"), workload=_PAIRS, times=2),
    Case("persons", "ppsyn, persons of 2 rows", max_rows=2),
    Case("quality", "ppsyn, and figures of its quality", quality=Fraction(1, 16)),
    Case("resumed", "ppsyn, killed twice and resumed", is_resumed=True),
    Case("overlapping", "ppsyn, beside another run", is_overlapped=True),
)
