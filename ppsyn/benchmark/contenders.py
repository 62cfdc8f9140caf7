"""The mechanisms that a benchmark compares, behind one signature.

A name is a base, and after a colon the settings that differ from the defaults, joined by `+`:
`ppsyn:eta=0.7+select=0.1`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from pydantic import ValidationError

from ppsyn.discretize import EncodedTable
from ppsyn.domain import Clique
from ppsyn.dp.budget import rho_from
from ppsyn.dp.curator import TableCurator
from ppsyn.dp.ledger import MemoryAccount
from ppsyn.errors import ConfigError
from ppsyn.generate import generate
from ppsyn.marginals import TableCounter
from ppsyn.model.graphical import GraphicalModel
from ppsyn.model.tree import interaction_graph
from ppsyn.research.printed import PrintedSettings, fit_not_private
from ppsyn.synthesizer import make_plan, run, start
from schemas.config import AlgorithmConfig, Tuning, WorkloadConfig

NAMES: tuple[str, ...] = ("ppsyn", "printed-not-private")

Options: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A synthetic table and what it took.

    Attributes:
        is_private: False for the printed paper only.
    """

    synthetic: EncodedTable
    rounds: int
    model_mb: float
    is_private: bool


class Contender(Protocol):
    """Makes a synthetic table."""

    def __call__(  # noqa: PLR0913, PLR0917  # all that a mechanism may depend on
        self,
        table: EncodedTable,
        workload: tuple[Clique, ...],
        epsilon: float,
        delta: float,
        model_mb: float,
        seed: int,
    ) -> Made:
        """Run the mechanism on `table`."""
        ...


def contender(name: str) -> Contender:
    """The mechanism of a name.

    Raises:
        ConfigError: If there is none, or its settings are at fault.
    """
    base, _, text = name.partition(":")
    if base not in _MAKERS:
        raise ConfigError(f"There is no mechanism {base!r}. Mechanisms: {', '.join(NAMES)}.")
    return _MAKERS[base](_options(name, text))


def _options(name: str, text: str) -> Options:
    pairs = [part.partition("=") for part in text.split("+")] if text else []
    if not all(key and equals and value for key, equals, value in pairs):
        raise ConfigError(f"Expected mechanism={name!r} to be a name, or name:setting=value+setting=value.")
    return {key: value for key, _, value in pairs}


def _ppsyn(options: Options) -> Contender:
    _refuse_unknown(options, set(Tuning.model_fields) - {"model_mb"})
    try:
        config = AlgorithmConfig.model_validate(dict(options))
    except ValidationError as error:
        fault = error.errors()[0]
        raise ConfigError(f"Expected {fault['loc'][0]}={fault['input']!r} to be valid: {fault['msg']}.") from None

    def make(  # noqa: PLR0913, PLR0917
        table: EncodedTable, workload: tuple[Clique, ...], epsilon: float, delta: float, model_mb: float, seed: int
    ) -> Made:
        rho = rho_from(epsilon, delta)
        told = config.model_copy(update={"model_mb": model_mb, "workload": WorkloadConfig(cliques=workload)})
        plan = make_plan(table.domain, rho, 1, told)
        state = run(TableCurator(TableCounter(table), MemoryAccount(rho)), start(plan))
        return _made(state.model, len(state.rounds), seed, is_private=True)

    return make


def _printed(options: Options) -> Contender:
    _refuse_unknown(options, {"eta", "rounds"})
    try:
        eta, rounds = float(options.get("eta", "0.7")), int(options.get("rounds", "60"))
    except ValueError:
        raise ConfigError("Expected eta and rounds of printed-not-private to be numbers.") from None

    def make(  # noqa: PLR0913, PLR0917
        table: EncodedTable, workload: tuple[Clique, ...], epsilon: float, delta: float, model_mb: float, seed: int
    ) -> Made:
        settings = PrintedSettings(float(rho_from(epsilon, delta)), rounds, eta, model_mb)
        fitted = fit_not_private(table, workload, settings, np.random.default_rng(seed))
        return _made(fitted.model, len(fitted.choices), seed, is_private=False)

    return make


_MAKERS: Mapping[str, Callable[[Options], Contender]] = {"ppsyn": _ppsyn, "printed-not-private": _printed}


def _refuse_unknown(options: Options, known: set[str]) -> None:
    for name in options:
        if name not in known:
            raise ConfigError(f"There is no setting {name!r}. Settings: {', '.join(sorted(known))}.")


def _made(model: GraphicalModel, rounds: int, seed: int, *, is_private: bool) -> Made:
    rows = max(0, round(model.total))
    synthetic = EncodedTable(model.domain, generate(model.steps(), model.domain, rows, seed))
    return Made(synthetic, rounds, interaction_graph(model.domain, model.potentials).model_mb(), is_private)
