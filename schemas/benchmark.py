"""The settings of a benchmark, and of each run of it."""

import hashlib
from collections.abc import Iterator
from itertools import product
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from ppsyn.schemas.types import Finite, FrozenModel, Positive

Metric: TypeAlias = Literal["workload", "ways", "ranges", "classification"]
METRICS: tuple[Metric, ...] = ("workload", "ways", "ranges", "classification")
CHEAP: tuple[Metric, ...] = ("workload", "ways", "ranges")
"""Those that need one run of the mechanism; a classification error needs five more."""

DELTA = 1e-9

Seed: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)]
Degree: TypeAlias = Annotated[int, Field(ge=1, le=5)]


class BenchmarkRun(FrozenModel):
    """One mechanism on one table, once. All of it is public."""

    dataset: str
    mechanism: str
    epsilon: Positive
    delta: Annotated[Finite, Field(gt=0, lt=0.5)]
    seed: Seed
    degree: Degree
    workload_seed: Seed
    model_mb: Positive
    metrics: tuple[Metric, ...]
    data_dir: str | None
    """Where the table is, which has no part in the run's name."""
    code: str
    """Digest of the code that runs."""

    @property
    def name(self) -> str:
        """What the run's files are kept under: equal settings and code, equal name."""
        return hashlib.sha256(self.model_dump_json(exclude={"data_dir"}).encode()).hexdigest()[:16]


class BenchmarkSettings(FrozenModel):
    """A whole benchmark: every mechanism on every table, at every epsilon and degree, with every seed."""

    datasets: Annotated[tuple[str, ...], Field(min_length=1)]
    """Tables, by name."""
    mechanisms: Annotated[tuple[str, ...], Field(min_length=1)]
    """Mechanisms, by name; settings of their own follow a colon: `ppsyn:rounds=60+anneal_threshold=0.7`."""
    epsilons: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Privacy budgets, at `delta`."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)]
    """A run for each."""
    out: Annotated[str, Field(min_length=1)]
    """The folder of results. What is in it is as private as the tables."""
    degrees: Annotated[tuple[Degree, ...], Field(min_length=1)] = (3,)
    """Attributes of each marginal in the workload."""
    workload_seed: Seed = 0
    """Of the workload and of the range queries, which all mechanisms have in common."""
    model_mb: Positive = 1.0
    """The largest model, in MB."""
    delta: Annotated[Finite, Field(gt=0, lt=0.5)] = DELTA
    """Of every budget."""
    metrics: Annotated[tuple[Metric, ...], Field(min_length=1)] = CHEAP
    """What to measure; a classification takes five runs more."""
    data_dir: str | None = None
    """The folder of tables; without it there is the bundled Adult table."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        for name in ("datasets", "mechanisms", "epsilons", "seeds", "degrees", "metrics"):
            values: tuple[object, ...] = getattr(self, name)
            if len(set(values)) != len(values):
                raise ValueError(f"Expected {name} to differ from each other.")
        return self

    def runs(self, code: str) -> Iterator[BenchmarkRun]:
        """Every run, seed by seed, so that a benchmark that is stopped early has compared all it could."""
        metrics = tuple(sorted(self.metrics, key=METRICS.index))
        grid = product(self.seeds, self.epsilons, self.degrees, self.datasets, self.mechanisms)
        for seed, epsilon, degree, dataset, mechanism in grid:
            yield BenchmarkRun(
                dataset=dataset,
                mechanism=mechanism,
                epsilon=epsilon,
                delta=self.delta,
                seed=seed,
                degree=degree,
                workload_seed=self.workload_seed,
                model_mb=self.model_mb,
                metrics=metrics,
                data_dir=self.data_dir,
                code=code,
            )
