"""The result of a release: everything in it is public or released."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ppsyn.arrays import Ints
from ppsyn.domain import Clique, Domain
from ppsyn.errors import ConfigError
from ppsyn.extras import require
from ppsyn.generation.decoding import cells_of
from ppsyn.generation.plan import Recipe
from ppsyn.generation.sampling import check_count
from ppsyn.mechanisms import MECHANISMS
from ppsyn.mechanisms.base import Round
from ppsyn.mechanisms.candidates import refined_cliques
from ppsyn.mechanisms.translation import Earlier
from ppsyn.model.estimation import Effort, fit
from ppsyn.model.graphical_model import GraphicalModel
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.budget import epsilon_from
from ppsyn.privacy.ledger import Ledger
from ppsyn.schemas.config import AlgorithmConfig, PrivacyConfig
from ppsyn.schemas.table import TableSchema

if TYPE_CHECKING:
    import mbi

    from ppsyn.mechanisms.base import State
    from ppsyn.serialization import Fitted

_REFITS = 20
_REFIT_EFFORT = Effort(iterations=200, tolerance=1e-5)


@dataclass(frozen=True, eq=False, repr=False)
class Synthesis:
    """A fitted release: its account, its measurements, its model, and rows from it.

    Attributes:
        measurements: The answers as they were drawn.
        evidence: What the model was fitted to: answers, or what was made of them.
    """

    schema: TableSchema
    privacy: PrivacyConfig
    config: AlgorithmConfig
    ledger: Ledger
    measurements: tuple[Measurement, ...]
    evidence: tuple[Measurement, ...]
    rounds: tuple[Round, ...]
    model: GraphicalModel
    seed: int

    @classmethod
    def from_state(  # noqa: PLR0913, PLR0917  # all that a release was asked for, and what came of it
        cls,
        learned: "State | Fitted",
        ledger: Ledger,
        schema: TableSchema,
        privacy: PrivacyConfig,
        config: AlgorithmConfig,
        seed: int,
    ) -> "Synthesis":
        """What the loop has learned, as it ends or as it was stored, with what was asked for and what it cost."""
        answers, model = learned.measurements, learned.model
        return cls(schema, privacy, config, ledger, answers, learned.evidence, learned.rounds, model, seed)

    def __repr__(self) -> str:
        """Say what was released and at which cost."""
        return f"Synthesis({self.schema.name}: {len(self.measurements)} measurements, rho={float(self.rho):.6g})"

    @property
    def told(self) -> Earlier:
        """What a later release may learn from this one."""
        value_groups = {name: compressed.groups for name, compressed in self.model.compression.attributes.items()}
        return Earlier(self.schema, self.measurements, value_groups)

    @property
    def domain(self) -> Domain:
        """The encoded attributes."""
        return self.model.domain

    @property
    def rho(self) -> Fraction:
        """The zCDP cost, exactly."""
        return self.ledger.spent

    def epsilon(self, delta: float | None = None) -> float:
        """The epsilon that the spent budget gives at `delta`, by default the release's own."""
        delta = self.privacy.delta if delta is None else delta
        if delta is None:
            raise ConfigError("Expected a delta, got none: this release was paid for in rho. Give one, such as 1e-9.")
        return epsilon_from(self.rho, delta)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The synthetic table: as many rows as the noisy total, from the release's seed."""
        return self.generate()

    def generate(self, rows: int | None = None, seed: int | None = None) -> pd.DataFrame:
        """Synthetic rows, at no further cost in privacy.

        Args:
            rows: How many; by default the noisy total.
            seed: Equal seeds give equal rows; by default the release's seed.
        """
        recipe = self.recipe(rows, seed)
        return pd.concat([recipe.no_rows(), *recipe.all_blocks()], ignore_index=True)

    def recipe(self, rows: int | None = None, seed: int | None = None) -> Recipe:
        """The rows of `generate`, to be made a block at a time, in bounded memory.

        Raises:
            ConfigError: If `rows` or `seed` is not a non-negative integer.
        """
        rows = round(self.model.total) if rows is None else rows
        check_count("rows", rows)
        plan = self.model.plan(rows, self.refined)
        return Recipe(plan, self.schema, rows, self.seed if seed is None else seed)

    @property
    def refined(self) -> tuple[Clique, ...]:
        """The marginals that a synthetic table is brought nearer to by swaps."""
        return (
            refined_cliques(self.domain, self.config.workload) if MECHANISMS[self.config.mechanism].refines_rows else ()
        )

    def marginal(self, attributes: Iterable[str]) -> pd.DataFrame:
        """Expected counts of a marginal with error bars, from the model alone.

        Args:
            attributes: Which, in the order in which the marginal is to have them.

        Returns:
            A row for each cell, by its values: the levels of the index are the attributes, in the order of the
            schema's values. A bin of several values is their interval; null is NaN. `count` is the expected count;
            `standard_error` is what the added noise makes of it, as a standard deviation over refits to fresh
            noise. It does not cover dependencies that were never measured, nor how rows are shared among values
            that the model takes as one.

        Raises:
            ConfigError: If an attribute is unknown or comes twice.
        """
        names = tuple(attributes)
        clique = self.domain.clique(names)
        order = [clique.index(name) for name in names]
        refits = np.stack([model.project(clique) for model in self._refits])
        found = {"count": self.model.project(clique), "standard_error": refits.std(axis=0, ddof=1)}
        columns = {column.name: column for column in self.schema.columns}
        cells = cells_of([columns[name] for name in names])
        return pd.DataFrame({name: counts.transpose(order).ravel() for name, counts in found.items()}, index=cells)

    @cached_property
    def _refits(self) -> tuple[GraphicalModel, ...]:
        return self.refits(_REFITS, _REFIT_EFFORT)

    def refits(self, count: int, effort: Effort) -> tuple[GraphicalModel, ...]:
        """A parametric bootstrap: the model fitted to its own answers under fresh noise, from the release's seed."""
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(0, 2))))
        samples = [self._sample(rng) for _ in range(count)]
        with ThreadPoolExecutor() as pool:
            return tuple(found.model for found in pool.map(fit, samples, repeat(self.model), repeat(effort)))

    def _sample(self, rng: np.random.Generator) -> list[Measurement]:
        return [replace(m, noisy_counts=self._fresh(m, rng)) for m in self.evidence]

    def _fresh(self, m: Measurement, rng: np.random.Generator) -> Ints:
        expected = m.partition.sum_expected(self.model.project(m.clique)) * m.unit
        return np.rint(expected + rng.normal(0, m.sigma, expected.size)).astype(np.int64)

    def to_mbi(self) -> "tuple[mbi.MarkovRandomField, list[mbi.LinearMeasurement]]":
        """The model and its measurements for users of mbi.

        Raises:
            MissingExtraError: If the extra `mbi` is not installed.
        """
        require("mbi", "to_mbi")
        from ppsyn.model import mbi_adapter as exchange  # noqa: PLC0415  # JAX takes seconds to import

        return exchange.model_to_mbi(self.model), exchange.measurements_to_mbi(self.measurements)

    def with_mbi(self, field: "mbi.MarkovRandomField") -> "Synthesis":
        """The release with a model from mbi, fitted to its measurements in another way, say.

        Raises:
            MissingExtraError: If the extra `mbi` is not installed.
        """
        require("mbi", "with_mbi")
        from ppsyn.model import mbi_adapter as exchange  # noqa: PLC0415  # JAX takes seconds to import

        return replace(self, model=exchange.model_from_mbi(self.domain, field))
