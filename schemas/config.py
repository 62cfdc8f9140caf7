"""The settings of a release: the guarantee, the algorithm, and how to run it."""

from typing import Annotated, Literal, Self, cast

from pydantic import Field, model_validator

from ppsyn.schemas.limits import CELLS, PERSON_ROWS, WORKERS
from ppsyn.schemas.types import Finite, FrozenModel, Positive

BudgetFraction = Annotated[Finite, Field(ge=0.01, le=0.99)]


_MOST_ATTRIBUTES = 8
"""Of a marginal in a workload: all its subsets become candidates."""


class PersonUnit(FrozenModel):
    """The unit of privacy is a person, not a row."""

    column: str
    """The column that says whose row it is; it is not released."""
    max_rows: Annotated[int, Field(ge=1, le=PERSON_ROWS)]
    """Rows of one person that count; of more, this many are kept by random choice."""


class Budget(FrozenModel):
    """An amount of privacy: (epsilon, delta), or rho of zero-concentrated differential privacy."""

    epsilon: Positive | None = None
    """How much the release may tell of one unit; from 1e-6 on, together with `delta`."""
    delta: Annotated[Finite, Field(gt=0, lt=0.5)] | None = None
    """The chance left out of what epsilon promises: far below one in the number of units."""
    rho: Positive | None = None
    """The same as zero-concentrated differential privacy, instead."""

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if self.rho is None and (self.epsilon is None or self.delta is None):
            raise ValueError("Expected a budget, got none. Give epsilon and delta, or rho.")
        if self.rho is not None and self.epsilon is not None:
            raise ValueError("Expected one budget, got two. Give epsilon and delta, or rho, not both.")
        return self


class PrivacyConfig(Budget):
    """The guarantee: how strong it is, and for whom."""

    person: PersonUnit | None = None
    """The person column, if persons are protected. Without it, the unit of privacy is a row."""


class WorkloadConfig(FrozenModel):
    """The marginals that the synthetic table should get right."""

    cliques: tuple[tuple[str, ...], ...] | None = None
    """Attribute lists, such as `[[age, sex], [age, income]]`; without them, all marginals of `degree`.
    A workload holds at most 200,000 marginals, each of at most 4,194,304 cells."""
    degree: Annotated[int, Field(ge=1, le=5)] | None = None
    """Marginals of this many attributes; without it all of 3, and of 2 and 1 that those leave out.
    Where those of 3 are more than 500, they are left out too."""
    max_cells: Annotated[int, Field(ge=1, le=CELLS)] = 10_000
    """Marginals with more cells are left out, unless `cliques` lists them."""

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> "WorkloadConfig":
        if self.cliques is not None and self.degree is not None:
            raise ValueError("Expected cliques or degree, got both. Give cliques or degree, not both.")
        if self.cliques is not None and not self.cliques:
            raise ValueError("Expected at least one marginal in cliques, got none. List one, or give degree instead.")
        if self.cliques is not None and any(len(clique) > _MOST_ATTRIBUTES for clique in self.cliques):
            raise ValueError(f"Expected cliques of at most {_MOST_ATTRIBUTES} attributes each. Split the larger ones.")
        return self


class AlgorithmConfig(FrozenModel):
    """The algorithm: all that changes the answer and not the guarantee."""

    mechanism: Literal["ppsyn", "aim", "mst", "mwem", "independent"] = "ppsyn"
    """The mechanism that spends the budget."""
    workload: WorkloadConfig = WorkloadConfig()
    max_model_size_mb: Positive = 2.0
    """The largest model, in MB."""
    rounds: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Number of rounds that `ppsyn` plans; annealing can make them fewer. The other mechanisms plan their own."""
    estimator: Literal["tree", "mbi"] = "tree"
    """The estimator of the model: the built-in junction tree, or mbi."""
    max_fit_steps: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Maximum steps of a round's fit. After the one-way marginals it may take twice as many, at the end four times."""

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, settings: object) -> object:
        """Say which settings there are; all else is a constant of the mechanism."""
        names = cast("dict[str, object]", settings) if isinstance(settings, dict) else {}
        if unknown := [str(name) for name in names if name not in cls.model_fields]:
            raise ValueError(
                f"Expected the settings of the algorithm to be of {', '.join(cls.model_fields)}; got "
                f"{', '.join(unknown)}. Remove the others."
            )
        return cast("object", settings)

    @model_validator(mode="after")
    def _check_rounds(self) -> Self:
        if self.mechanism != "ppsyn" and self.rounds != type(self).model_fields["rounds"].default:
            raise ValueError(
                f"Expected no rounds: {self.mechanism} plans its own. Remove rounds, or choose mechanism: ppsyn."
            )
        return self


class RuntimeConfig(FrozenModel):
    """How to run: what changes neither the guarantee nor the answer."""

    marginals_mb: Positive = 256.0
    """Memory for exact marginals, in MB. Marginals that do not fit are counted again in every round that needs them."""
    workers: Annotated[int, Field(ge=1, le=WORKERS)] | None = None
    """Dask workers to start on this machine, one thread each. Without workers or a scheduler, one process does all."""
    scheduler: Annotated[str, Field(pattern=r"^(tcp|tls)://[A-Za-z0-9.:_-]+$")] | None = None
    """The address of a Dask scheduler that is running already, such as tls://scheduler.example.org:8786."""
    parts: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Number of Dask partitions; by default 4 per worker, or 64 with a scheduler."""
    dashboard: bool = False
    """Whether workers that are started here have Dask's dashboard, on loopback."""

    @model_validator(mode="after")
    def _one_cluster(self) -> Self:
        if self.workers is not None and self.scheduler is not None:
            raise ValueError("Expected one cluster, got two. Give workers or scheduler, not both.")
        if not self.is_spread and self.parts is not None:
            raise ValueError("Expected no parts without Dask. Give workers or scheduler too.")
        if self.workers is None and self.dashboard:
            raise ValueError("Expected workers with dashboard, which shows the workers of this run. Give workers too.")
        return self

    @property
    def is_spread(self) -> bool:
        """Whether Dask distributes the work."""
        return self.workers is not None or self.scheduler is not None

    @property
    def part_count(self) -> int:
        """Number of partitions."""
        return self.parts or (4 * self.workers if self.workers is not None else 64)
