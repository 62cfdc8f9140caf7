"""What a release would do: `ppsyn plan`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from ppsyn.flows.cli.locations import FilePath
from ppsyn.flows.cli.output import JSON_OPTION, handle_errors, print_json, print_lines, print_table
from ppsyn.schemas.limits import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ppsyn.mechanisms.forecast import Forecast
    from ppsyn.schemas.release import ReleaseConfig
    from ppsyn.schemas.table import TableSchema

_DEFAULT_ROWS = 50_000
_FOOTNOTE = "Errors are expected fractions of the assumed rows that noise alone moves to wrong groups (docs/plan.md)."
_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_FACTORS = (Fraction(1, 100), Fraction(1, 25), Fraction(1, 4), Fraction(1), Fraction(4), Fraction(25))
"""Multiples of a budget that has no delta, and so no epsilon."""


@click.command()
@click.argument("file", type=FilePath())
@click.option("--set", "settings", multiple=True, metavar="FIELD=VALUE", help="Change a field: privacy.epsilon=0.5")
@click.option(
    "--rows", type=click.IntRange(min=1, max=ROWS), help="Rows to assume; the true number is private. By default 50000."
)
@JSON_OPTION
@handle_errors
def plan(file: str, settings: tuple[str, ...], rows: int | None, as_json: bool) -> None:
    """Show what a release of FILE would do, from public facts alone.

    Prints columns, workload, model size, budget, and the noise at this epsilon and at others. Reads no row, writes
    nothing and spends nothing. Refuses what `ppsyn release` would refuse, and prints its warnings about a query on
    standard error.

    \b
    Examples:
      ppsyn plan adult.yaml
      ppsyn plan adult.yaml --rows 1000000 --set privacy.epsilon=0.5
    """
    from ppsyn.flows.preflight import read_inputs

    outlook = make_outlook(*read_inputs(file, settings), rows)
    for sentence in outlook.warnings:
        click.echo(sentence, err=True)
    if as_json:
        print_json(outlook.as_json())
    else:
        outlook.print()


@dataclass(frozen=True, slots=True)
class Outlook:
    """A release as it would be, and at other budgets; and what the account has for it.

    Attributes:
        warnings: What the owner of the data has to answer for, a sentence each, as a release prints it.
    """

    config: ReleaseConfig
    table: TableSchema
    forecast: Forecast
    others: tuple[Forecast, ...]
    left: Fraction
    cap: Fraction
    warnings: tuple[str, ...]

    @property
    def _delta(self) -> float | None:
        return self.config.privacy.delta

    def _epsilon(self, rho: Fraction) -> float | None:
        from ppsyn.privacy.budget import epsilon_from

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
            "computed": [one.column.name for one in self.table.derived],
            "rules": [rule.name for rule in self.table.rules],
            "workload": {"marginals": len(plan.workload), "largest_cells": max(map(plan.domain.size, plan.workload))},
            "model_size_mb": {"least": found.smallest_mb, "most": plan.config.max_model_size_mb},
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
        print_lines(self._opening())
        click.echo()
        self._print_columns()
        click.echo()
        print_lines(self._course())
        click.echo()
        self._print_budgets()
        click.echo(
            "Errors are expected fractions of the assumed rows that noise alone moves to wrong groups (docs/plan.md)."
        )

    def _opening(self) -> Iterator[str]:
        from ppsyn.releases.budget_checks import guarantee_of

        plan = self.forecast.plan
        guarantee = guarantee_of(plan.rho, self.config.privacy)
        yield f"{self.config.dataset}: {guarantee.cost}, protecting {guarantee.unit}, by {plan.config.mechanism}"
        yield f"rows      {self.forecast.rows} assumed (the true number is private); --rows assumes another"
        more = int(self.left / plan.rho)
        yield f"account   rho {float(self.left):.6g} left of {float(self.cap):.6g}: enough for {more} such releases"

    def _print_columns(self) -> None:
        kinds = {column.name: column.kind for column in self.table.columns}
        rows = [
            (
                one.name,
                kinds[one.name],
                str(one.values),
                "values" if one.groups == one.values else f"{one.groups} groups",
                f"{one.sigma:.1f}",
                f"{one.noise_share:.2%}",
            )
            for one in self.forecast.singles
        ]
        numbers = ("values", "measured in", "noise (sd)", "error")
        print_table(("column", "kind", *numbers), rows, numbers=numbers)

    def _course(self) -> Iterator[str]:
        found, plan = self.forecast, self.forecast.plan
        degrees = Counter(map(len, plan.workload))
        degrees_text = ", ".join(f"{count} of {degree}" for degree, count in sorted(degrees.items()))
        largest = max(map(plan.domain.size, plan.workload))
        yield f"workload  {len(plan.workload)} marginals ({degrees_text} attributes), the largest of {largest:,} cells"
        if self.table.derived:
            yield f"computed  {', '.join(one.column.name for one in self.table.derived)}: from others, at no cost"
        if self.table.rules:
            yield f"rules     {len(self.table.rules)}, which no row of the release will break"
        most_mb = plan.config.max_model_size_mb
        least = "single attributes and rules" if self.table.rules else "single attributes"
        yield f"model     {found.smallest_mb:.3g} MB for {least}, {most_mb:g} MB at most"
        for number, stage in enumerate(found.stages):
            share, noise = float(stage.rho / plan.rho), f"{stage.least:.1f} to {stage.most:.1f}"
            look = "first" if number == 0 else "second"
            yield f"budget    {share:.1%} for {stage.measurements} attributes, {look} measurement; noise {noise}"
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

    def _print_budgets(self) -> None:
        headings = ("rho" if self._delta is None else "epsilon", "error", "rounds", "noise of a round (sd)", "account")
        print_table(headings, map(self._budget_row, self.others), numbers=headings)

    def _budget_row(self, one: Forecast) -> tuple[str, ...]:
        epsilon, rounds = self._epsilon(one.plan.rho), one.rounds
        amount = f"{float(one.plan.rho):.4g}" if epsilon is None else f"{epsilon:.4g}"
        return (
            amount + (" *" if one.plan.rho == self.forecast.plan.rho else "  "),
            f"{one.noise_share:.2%}",
            "none" if rounds is None else str(rounds.planned),
            "" if rounds is None else f"{rounds.sigma:.1f}",
            "enough" if one.plan.rho <= self.left else "too little",
        )


def make_outlook(config: ReleaseConfig, table: TableSchema, rows: int | None) -> Outlook:
    """What a release would do. No row is read, and nothing is written or spent.

    Raises:
        PPSynError: If it could not be done, as `ppsyn release` would raise.
    """
    from ppsyn.mechanisms.forecast import at_budget, forecast
    from ppsyn.runs.preflight import balance, check_possible
    from ppsyn.runs.record import new_record, plan_of

    warnings = tuple(check_possible(config, table))
    plan = plan_of(new_record(config, table, "new"))
    rows = rows or config.generation.rows or _DEFAULT_ROWS
    left, cap = balance(config)
    found = forecast(plan, rows)
    budgets = sorted({*_other_budgets(config, plan.rho), plan.rho})
    others = tuple(found if rho == plan.rho else forecast(at_budget(plan, rho), rows) for rho in budgets)
    return Outlook(config, table, found, others, left, cap, warnings)


def _other_budgets(config: ReleaseConfig, rho: Fraction) -> Iterator[Fraction]:
    from ppsyn.privacy.budget import rho_from

    delta = config.privacy.delta
    if delta is None:
        yield from (rho * factor for factor in _FACTORS)
    else:
        yield from (rho_from(epsilon, delta) for epsilon in _EPSILONS)
