"""What takes part in a benchmark, by name: mechanisms with their settings, and the paper as printed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Protocol

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from ppsyn.arrays import Codes
from ppsyn.benchmark.paper.printed import PrintedSettings, fit_not_private
from ppsyn.benchmark.paper.strategies import STRATEGIES
from ppsyn.data.encoding import EncodedTable
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Clique, Domain
from ppsyn.errors import ConfigError, translated
from ppsyn.mechanisms import MECHANISMS, Mechanism
from ppsyn.mechanisms.candidates import refined_cliques
from ppsyn.mechanisms.loop import make_plan, run, start
from ppsyn.mechanisms.ppsyn import PPSyn, PPSynParameters
from ppsyn.model.graphical_model import GraphicalModel
from ppsyn.privacy.budget import rho_from
from ppsyn.privacy.curator import TableCurator
from ppsyn.privacy.ledger import MemoryAccount
from ppsyn.schemas.config import AlgorithmConfig, Positive, WorkloadConfig
from ppsyn.schemas.files import parse_yaml, rule_of

PRINTED = "printed-not-private"

NAMES = (*MECHANISMS, PRINTED)


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A synthetic table and how it came about.

    Attributes:
        is_private: Whether the table has the guarantee; the paper as printed has none.
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
        """Spend (epsilon, delta) on the table. The seed is for generation: noise that is paid for has none."""
        ...


@dataclass(frozen=True, slots=True)
class _Private:
    """A mechanism under the curator, as a release runs it."""

    config: AlgorithmConfig
    mechanism: Mechanism

    def __call__(  # noqa: PLR0913, PLR0917  # all that a mechanism may depend on
        self,
        table: EncodedTable,
        workload: tuple[Clique, ...],
        epsilon: float,
        delta: float,
        model_mb: float,
        seed: int,
    ) -> Made:
        """Release `table`."""
        rho = rho_from(epsilon, delta)
        changes = {"max_model_size_mb": model_mb, "workload": WorkloadConfig(cliques=workload)}
        plan = make_plan(table.domain, rho, 1, self.config.model_copy(update=changes), self.mechanism)
        state = run(TableCurator(TableCounter(table), MemoryAccount(rho)), start(plan))
        rows = _rows(state.model)
        refined = refined_cliques(table.domain, plan.config.workload) if self.mechanism.refines_rows else ()
        codes = state.model.blocks(rows, seed, refined)
        return _made(codes, table.domain, state.model, len(state.rounds), is_private=True)


@dataclass(frozen=True, slots=True)
class _Printed:
    """The paper's algorithm as printed. Not private."""

    eta: Positive = 0.7
    rounds: Annotated[int, Field(ge=1, le=10_000)] = 100

    def __call__(  # noqa: PLR0913, PLR0917  # as above
        self,
        table: EncodedTable,
        workload: tuple[Clique, ...],
        epsilon: float,
        delta: float,
        model_mb: float,
        seed: int,
    ) -> Made:
        """Run it on `table`, with noise from `seed`: nothing is promised, so nothing is lost."""
        settings = PrintedSettings(float(rho_from(epsilon, delta)), self.rounds, self.eta, model_mb)
        found = fit_not_private(table, workload, settings, np.random.default_rng(seed))
        codes = found.model.blocks(_rows(found.model), seed)
        return _made(codes, table.domain, found.model, len(found.choices), is_private=False)


_ALGORITHM = frozenset(AlgorithmConfig.model_fields) - {"mechanism", "workload", "max_model_size_mb"}
"""Settings of a release file; the others of them are options of the benchmark."""

_PARAMETERS = frozenset(field.name for field in fields(PPSynParameters))
_PARTITION = "partition"
"""Ours may be compared with itself with another partition."""

_SETTINGS = {"ppsyn": _ALGORITHM | _PARAMETERS | {_PARTITION}, PRINTED: frozenset({"eta", "rounds"})}


def _rows(model: GraphicalModel) -> int:
    return max(1, round(model.total))


def _made(
    codes: Iterable[dict[str, Codes]], domain: Domain, model: GraphicalModel, rounds: int, *, is_private: bool
) -> Made:
    blocks = list(codes)
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in domain.names}
    synthetic = EncodedTable(domain, columns)
    return Made(synthetic, rounds, model.size_mb, is_private)


def contender(name: str) -> Contender:
    """The contender called `name`: a mechanism, or one with settings such as `ppsyn:rounds=50+anneal_threshold=0.7`.

    Raises:
        ConfigError: If there is none of that name, or a setting is none or out of range.
    """
    base, _, text = name.partition(":")
    if base not in NAMES:
        raise ConfigError(f"There is no mechanism {base!r}. Mechanisms: {', '.join(NAMES)}.")
    known = _SETTINGS.get(base, _ALGORITHM)
    settings = dict(_setting(name, part, known) for part in text.split("+")) if text else {}

    def describe(error: ValidationError) -> str:
        fault = error.errors()[0]
        field = ".".join(map(str, fault["loc"]))
        return f"In {name!r}, {field}: {rule_of(fault)}" if field else f"In {name!r}: {rule_of(fault)}"

    with translated(ValidationError, to=ConfigError, message=describe):
        return _checked(base, settings)


def _checked(base: str, settings: Mapping[str, object]) -> Contender:
    if base == PRINTED:
        return TypeAdapter(_Printed).validate_python(settings)
    config = AlgorithmConfig.model_validate({"mechanism": base, **_only(settings, _ALGORITHM)})
    if base != "ppsyn":
        return _Private(config, MECHANISMS[base])
    parameters = TypeAdapter(PPSynParameters).validate_python(_only(settings, _PARAMETERS))
    strategy = settings.get(_PARTITION, "grid")
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise ConfigError(f"There is no partition {strategy!r}. Partitions: {', '.join(STRATEGIES)}.")
    return _Private(config, PPSyn(parameters, STRATEGIES[strategy]))


def _only(settings: Mapping[str, object], names: frozenset[str]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if name in names}


def _setting(name: str, part: str, known: frozenset[str]) -> tuple[str, object]:
    field, _, value = part.partition("=")
    if not value:
        raise ConfigError(f"Expected mechanism={name!r} to be a name, or name:setting=value+setting=value.")
    if field not in known:
        raise ConfigError(f"There is no setting {field!r}. Settings: {', '.join(sorted(known))}.")
    return field, parse_yaml(value)
