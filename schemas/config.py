"""What a release may be told: the guarantee, the algorithm, and how to run it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ppsyn.schemas.limits import CELLS, CODES, PERSON_ROWS, WORKERS
from ppsyn.schemas.types import Finite, FrozenModel, Positive

Share = Annotated[Finite, Field(ge=0.01, le=0.99)]


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
            raise ValueError("give epsilon and delta, or rho")
        if self.rho is not None and self.epsilon is not None:
            raise ValueError("give epsilon and delta, or rho, not both")
        return self


class PrivacyConfig(Budget):
    """The guarantee: how much, and for whom."""

    person: PersonUnit | None = None
    """Without it, the unit of privacy is a row."""


class WorkloadConfig(FrozenModel):
    """The marginals that the synthetic table should get right."""

    cliques: tuple[tuple[str, ...], ...] | None = None
    """Attribute lists, such as `[[age, sex], [age, income]]`; without them, all marginals of `degree`.
    A workload holds at most 200,000 marginals, each of at most 4,194,304 cells."""
    degree: Annotated[int, Field(ge=1, le=5)] | None = None
    """Marginals of this many attributes; without it all of 3, and of 2 and 1 that those leave out.
    Where those of 3 are more than 500, they are left out too."""
    max_cells: Annotated[int, Field(ge=1, le=CELLS)] = 10_000
    """Marginals with more cells are left out, where no list is given."""

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> "WorkloadConfig":
        if self.cliques is not None and self.degree is not None:
            raise ValueError("give cliques or degree, not both")
        if self.cliques is not None and not self.cliques:
            raise ValueError("cliques must list at least one marginal")
        if self.cliques is not None and any(len(clique) > _MOST_ATTRIBUTES for clique in self.cliques):
            raise ValueError(f"cliques must be of at most {_MOST_ATTRIBUTES} attributes each")
        return self


class Tuning(FrozenModel):
    """How the algorithm goes about it: what changes the answer and not the guarantee."""

    mechanism: Literal["ppsyn", "aim", "mst", "mwem", "independent"] = "ppsyn"
    """Which method spends the budget. The settings from `partition` to `loose` are those of `ppsyn`."""
    partition: Literal["grid", "balanced", "merge-split", "cells"] = "grid"
    """How the cells of a marginal are merged before it is measured; of a grid, only residuals are."""
    initial: Share = 0.2
    """Share of the budget for one-way marginals, at least."""
    most_initial: Share = 0.6
    """Share of the budget for them where they are noisy."""
    coarse: Share = 0.5
    """Share of a large attribute's part of `initial` for a first, coarse look."""
    coarse_groups: Annotated[int, Field(ge=2, le=CODES)] = 16
    """Groups of that look; attributes with no more values are measured at once."""
    fold: Annotated[int, Field(ge=2, le=CODES)] = 128
    """Groups of values that the model holds apart, of an attribute that has more than half as many again."""
    select: Share = 0.15
    """Share of a round's budget that selects; the rest measures."""
    rounds: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Rounds the budget is planned for; annealing makes them fewer."""
    levels: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=20)] = (0.5, 1.0, 2.0, 4.0, 8.0)
    """Granularities: a group keeps at least this many standard deviations of noise."""
    shrink: bool = True
    """Whether answers are shrunk towards what the model expected."""
    eta: Positive = 1.0
    """Noise halves when it exceeds `eta` times how far an answer lay from what the model expected."""
    refine: bool = True
    """Whether values are swapped between the rows of a small table until its marginals are nearer to the model's."""
    loose: bool = True
    """Whether pairs that the model's tree has no room for are measured too, of tables of less than 2**19 rows.
    Swaps bring them into the rows; without `refine` there are none."""
    model_mb: Positive = 2.0
    """The largest model, in MB."""
    engine: Literal["tree", "mbi"] = "tree"
    """What fits the model: the built-in junction tree, or mbi's estimator."""
    iterations: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Steps of a round's fit at most; those after the one-way marginals may take twice as many, the last four times."""

    @model_validator(mode="after")
    def _settings_of_their_own(self) -> Self:
        if self.mechanism != "ppsyn":
            for name in _OF_PPSYN:
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name} is a setting of ppsyn; {self.mechanism} has none of that name")
        return self


_OF_PPSYN = (
    "partition", "initial", "most_initial", "coarse", "coarse_groups", "fold", "select", "rounds", "levels", "shrink",
    "eta", "refine", "loose",
)  # fmt: skip


class AlgorithmConfig(Tuning):
    """All that changes the answer and not the guarantee."""

    workload: WorkloadConfig = WorkloadConfig()


class RuntimeConfig(FrozenModel):
    """How to go about the work: what changes neither the guarantee nor the answer."""

    marginals_mb: Positive = 256.0
    """Memory for exact marginals. Those that it cannot hold are counted anew in every round that needs them."""
    workers: Annotated[int, Field(ge=1, le=WORKERS)] | None = None
    """Dask workers to start on this machine, one thread each. Without them or a scheduler, one process does all."""
    scheduler: Annotated[str, Field(pattern=r"^(tcp|tls)://[A-Za-z0-9.:_-]+$")] | None = None
    """The address of a Dask scheduler that is running already, such as tls://scheduler.example.org:8786."""
    parts: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Parts that work is divided into for Dask; by default four for each worker, and 64 with a scheduler."""
    dashboard: bool = False
    """Whether workers that are started here have Dask's dashboard, on loopback."""

    @model_validator(mode="after")
    def _one_cluster(self) -> Self:
        if self.workers is not None and self.scheduler is not None:
            raise ValueError("give workers or scheduler, not both")
        if not self.is_spread and self.parts is not None:
            raise ValueError("parts are for Dask: give workers or scheduler too")
        if self.workers is None and self.dashboard:
            raise ValueError("dashboard is for workers that are started here: give workers too")
        return self

    @property
    def is_spread(self) -> bool:
        """Whether Dask is asked for."""
        return self.workers is not None or self.scheduler is not None

    @property
    def part_count(self) -> int:
        """Parts that work is divided into."""
        return self.parts or (4 * self.workers if self.workers is not None else 64)
