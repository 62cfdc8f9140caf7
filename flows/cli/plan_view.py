"""The forecast of a release, told to a person or to a script."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from rich.console import Console
from rich.table import Table

from ppsyn.mechanisms.forecast import Forecast, at_budget, forecast
from ppsyn.privacy.budget import epsilon_from, rho_from
from ppsyn.runs.record import balance, check_possible, new_record, plan_of
from ppsyn.schemas.release import ReleaseConfig
from ppsyn.schemas.table import TableSchema

ROWS = 50_000
"""Assumed where nobody says."""

_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_FACTORS = (Fraction(1, 100), Fraction(1, 25), Fraction(1, 4), Fraction(1), Fraction(4), Fraction(25))
"""Of a budget without a delta, which no epsilon can be told for."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """A release as it would be, and at other budgets; and what the account has for it.

    Attributes:
        doubts: What the owner has to answer for, a sentence each, as a release tells it.
    """

    config: ReleaseConfig
    table: TableSchema
    forecast: Forecast
    others: tuple[Forecast, ...]
    left: Fraction
    cap: Fraction
    doubts: tuple[str, ...]

    @property
    def _delta(self) -> float | None:
        return self.config.privacy.delta

    def _epsilon(self, rho: Fraction) -> float | None:
        return None if self._delta is None else epsilon_from(rho, self._delta)

    def as_json(self) -> dict[str, object]:
        """For scripts."""
        found, plan = self.forecast, self.forecast.plan
        rounds = found.rounds
        return {
            "dataset": self.config.dataset,
            "mechanism": plan.config.mechanism,
            "rows_assumed": found.rows,
            "rho": float(plan.rho),
            "epsilon": self._epsilon(plan.rho),
            "delta": self._delta,
            "account": {"left": float(self.left), "cap": float(self.cap)},
            "columns": [
                {
                    "name": one.name,
                    "values": one.values,
                    "groups": one.groups,
                    "sigma": one.sigma,
                    "noise_share": one.noise_share,
                }
                for one in found.singles
            ],
            "workload": {"marginals": len(plan.workload), "largest_cells": max(map(plan.domain.size, plan.workload))},
            "model_mb": {"least": found.smallest_mb, "most": plan.config.model_mb},
            "one_way": [
                {"rho": float(stage.rho), "measurements": stage.measurements, "sigma": [stage.least, stage.most]}
                for stage in found.stages
            ],
            "rounds": None
            if rounds is None
            else {
                "rho": float(rounds.rho),
                "planned": rounds.planned,
                "select_rho": float(rounds.select_rho),
                "measure_rho": float(rounds.measure_rho),
                "sigma": rounds.sigma,
                "candidates": rounds.candidates,
            },
            "budgets": [
                {
                    "rho": float(one.plan.rho),
                    "epsilon": self._epsilon(one.plan.rho),
                    "noise_share": one.noise_share,
                    "rounds": one.rounds and {"planned": one.rounds.planned, "sigma": one.rounds.sigma},
                }
                for one in self.others
            ],
        }

    def print(self) -> None:
        """For a person."""
        console = Console()
        for line in self._opening():
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        console.print()
        console.print(self._columns())
        console.print()
        for line in self._course():
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        console.print()
        console.print(self._budgets())
        told = "Shares are of the rows assumed: what noise alone moves to wrong groups (docs/plan.md)."
        console.print(told, markup=False, highlight=False, soft_wrap=True)

    def _opening(self) -> Iterator[str]:
        plan = self.forecast.plan
        person = self.config.privacy.person
        unit = "a row" if person is None else f"the person in {person.column!r}, with {person.max_rows} rows at most"
        cost = f"rho {float(plan.rho):.6g}"
        epsilon = self._epsilon(plan.rho)
        if epsilon is not None:
            cost = f"epsilon {epsilon:.4g} at delta {self._delta:g} ({cost})"
        yield f"{self.config.dataset}: {cost}, protecting {unit}, by {plan.config.mechanism}"
        yield f"rows      {self.forecast.rows} assumed (the true number is private); --rows assumes another"
        more = int(self.left / plan.rho)
        yield f"account   rho {float(self.left):.6g} left of {float(self.cap):.6g}: enough for {more} such releases"

    def _columns(self) -> Table:
        kinds = {column.name: column.kind for column in self.table.columns}
        table = Table(box=None, pad_edge=False)
        for name in ("column", "kind", "values", "measured in", "noise (sd)", "of rows"):
            table.add_column(name, justify="left" if name in ("column", "kind") else "right")
        for one in self.forecast.singles:
            groups = "values" if one.groups == one.values else f"{one.groups} groups"
            table.add_row(
                one.name, kinds[one.name], str(one.values), groups, f"{one.sigma:.1f}", f"{one.noise_share:.2%}"
            )
        return table

    def _course(self) -> Iterator[str]:
        found, plan = self.forecast, self.forecast.plan
        degrees = Counter(map(len, plan.workload))
        told = ", ".join(f"{count} of {degree}" for degree, count in sorted(degrees.items()))
        largest = max(map(plan.domain.size, plan.workload))
        yield f"workload  {len(plan.workload)} marginals ({told} attributes), the largest of {largest:,} cells"
        yield f"model     {found.smallest_mb:.3g} MB for single attributes, {plan.config.model_mb:g} MB at most"
        for number, stage in enumerate(found.stages):
            share, noise = float(stage.rho / plan.rho), f"{stage.least:.1f} to {stage.most:.1f}"
            look = "first" if number == 0 else "second"
            yield f"budget    {share:.1%} for {stage.measurements} attributes, a {look} look; noise {noise}"
        rounds = found.rounds
        if rounds is not None:
            share, select = (
                float(rounds.rho / plan.rho),
                float(rounds.select_rho / (rounds.select_rho + rounds.measure_rho)),
            )
            yield (
                f"budget    {share:.1%} for {rounds.planned} rounds or fewer, {select:.0%} of it to select among "
                f"{rounds.candidates} marginals; noise {rounds.sigma:.1f} or less"
            )

    def _budgets(self) -> Table:
        table = Table(box=None, pad_edge=False)
        name = "rho" if self._delta is None else "epsilon"
        for heading in (name, "noise, of rows", "rounds", "noise of a round (sd)", "account"):
            table.add_column(heading, justify="right")
        for one in self.others:
            epsilon, rounds = self._epsilon(one.plan.rho), one.rounds
            asked = f"{float(one.plan.rho):.4g}" if epsilon is None else f"{epsilon:.4g}"
            has = one.plan.rho <= self.left
            table.add_row(
                asked + (" *" if one.plan.rho == self.forecast.plan.rho else "  "),
                f"{one.noise_share:.2%}",
                "none" if rounds is None else str(rounds.planned),
                "" if rounds is None else f"{rounds.sigma:.1f}",
                "enough" if has else "too little",
            )
        return table


def outlook(config: ReleaseConfig, table: TableSchema, rows: int | None) -> Outlook:
    """What a release would do. No row is read, and nothing is written or spent.

    Raises:
        PPSynError: If it could not be done, as `ppsyn release` would raise.
    """
    doubts = tuple(check_possible(config, table))
    plan = plan_of(new_record(config, table, "new"))
    rows = rows or config.generation.rows or ROWS
    left, cap = balance(config)
    found = forecast(plan, rows)
    budgets = sorted({*_other_budgets(config, plan.rho), plan.rho})
    others = tuple(found if rho == plan.rho else forecast(at_budget(plan, rho), rows) for rho in budgets)
    return Outlook(config, table, found, others, left, cap, doubts)


def _other_budgets(config: ReleaseConfig, rho: Fraction) -> Iterator[Fraction]:
    delta = config.privacy.delta
    if delta is None:
        yield from (rho * factor for factor in _FACTORS)
    else:
        yield from (rho_from(epsilon, delta) for epsilon in _EPSILONS)
