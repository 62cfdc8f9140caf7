"""The graphical model: potentials on cliques, calibrated over a junction tree."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ppsyn.arrays import Codes, Floats
from ppsyn.domain import Clique, Domain, maximal
from ppsyn.errors import InvariantError
from ppsyn.generation.refinement import Aim, cuts_of, within_reach
from ppsyn.generation.sampling import Plan, Step, blocks, check_count, prepare
from ppsyn.model import kernel
from ppsyn.model.compression import Compression
from ppsyn.model.inference_plan import build, flat, unflat
from ppsyn.model.junction_tree import JunctionTree, junction_tree, table_mb
from ppsyn.model.off_tree import reconcile
from ppsyn.model.projection import Projector

FIRST_STEP = 0.0
"""A model that was never fitted has no step to resume from."""


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """A distribution over the domain, scaled to `total` rows.

    Attributes:
        domain: The table's.
        compression: How the domain becomes the tree's, which potentials and beliefs are over.
        potentials: Log-potentials of the measured cliques that no other contains.
        total: How many rows the model stands for.
        step: The last step of the fit, where the next fit starts.
        beliefs: The marginal of each node of the tree.
        off_tree: Further marginals, which the tree does not have; over groups of values, as the tree's are.
    """

    domain: Domain
    potentials: Mapping[Clique, Floats]
    total: float
    step: float
    tree: JunctionTree
    beliefs: tuple[Floats, ...]
    compression: Compression
    off_tree: Mapping[Clique, Floats] = field(default_factory=dict[Clique, Floats])

    @cached_property
    def _projector(self) -> Projector:
        return Projector(self.tree, self.beliefs, self.total)

    @cached_property
    def _agreeing(self) -> dict[Clique, Floats]:
        return {}

    @property
    def tree_only(self) -> "GraphicalModel":
        """The tree alone."""
        return replace(self, off_tree={})

    @property
    def off_tree_mb(self) -> float:
        """What the off-tree marginals take up, in MB."""
        return sum(table_mb(self.compression.model_domain, clique) for clique in self.off_tree)

    @property
    def size_mb(self) -> float:
        """What the model takes up, in MB."""
        return sum(table_mb(self.compression.model_domain, node) for node in self.tree.nodes) + self.off_tree_mb

    def project(self, clique: Clique) -> Floats:
        """Expected counts of a marginal, one axis an attribute."""
        return self.compression.expand(clique, self.project_compressed(clique))

    def project_compressed(self, clique: Clique) -> Floats:
        """Expected counts of a marginal over the groups of values that the model holds apart."""
        if clique not in self._agreeing:
            self._agreeing[clique] = reconcile(clique, self._projector.project(clique), self.off_tree)
        return self._agreeing[clique]

    def blocks(self, rows: int, seed: int, cliques: Sequence[Clique] = ()) -> Iterator[dict[str, Codes]]:
        """Codes of synthetic rows, a block at a time; arguments are checked at once.

        Args:
            rows: How many.
            seed: Equal seeds give equal rows.
            cliques: Marginals that the rows are brought nearer to besides the off-tree ones, as far as there is time.
        """
        check_count("rows", rows)
        made = blocks(self.plan(rows, cliques), rows, seed)
        return ({name: codes[name] for name in self.domain.names} for codes in made)

    def plan(self, rows: int, cliques: Sequence[Clique]) -> Plan:
        """What every block of a table of so many rows is made by.

        Rows are always brought nearer to off-tree marginals, which the tree does not have, and to as many others as
        there is time for.
        """
        steps = self.steps()
        cuts = cuts_of([(step.given, step.new) for step in steps])
        named = {self._named(clique): clique for clique in cliques if clique not in self.off_tree}
        others = (named[clique] for clique in within_reach(cuts, named, rows))
        return prepare(
            steps, self.compression.generation_domain, [self._aim(clique) for clique in (*self.off_tree, *others)]
        )

    def _aim(self, clique: Clique) -> Aim:
        return Aim(self._named(clique), self.project_compressed(clique).ravel() / self.total)

    def steps(self) -> tuple[Step, ...]:
        """The model as a chain of conditional tables, over `compression.generation_domain`."""
        steps = (self._step(index) for index in range(len(self.tree.nodes)) if self._new(index))
        return (*steps, *self.compression.expansion_steps())

    def _new(self, index: int) -> Clique:
        separator = self.tree.separator(index)
        return tuple(name for name in self.tree.nodes[index] if name not in separator)

    def _step(self, index: int) -> Step:
        given, new, node = self.tree.separator(index), self._new(index), self.tree.nodes[index]
        table = np.transpose(self.beliefs[index], [node.index(name) for name in (*given, *new)])
        weights = np.ascontiguousarray(table).reshape(self.tree.domain.size(given), self.tree.domain.size(new))
        return Step(self._named(given), self._named(new), weights)

    def _named(self, clique: Clique) -> Clique:
        return tuple(map(self.compression.group_name, clique))


def uniform_model(compression: Compression) -> GraphicalModel:
    """The model that nothing has been measured for: uniform, one row in all."""
    return calibrate(compression, {}, 1.0, FIRST_STEP)


def calibrate(
    compression: Compression,
    potentials: Mapping[Clique, Floats],
    total: float,
    step: float,
    off_tree: Mapping[Clique, Floats] | None = None,
) -> GraphicalModel:
    """The model with the given potentials, bit for bit as a fit that ended on them."""
    cliques, off_tree = maximal(potentials), dict(off_tree or {})
    if len(cliques) != len(potentials):
        raise InvariantError("Expected potentials on cliques that do not contain each other.")
    if not all(np.isfinite(table).all() and (table >= 0).all() for table in off_tree.values()):
        raise InvariantError("Expected off-tree marginals that are finite and non-negative.")
    tree = junction_tree(compression.model_domain, cliques)
    program = build(tree, cliques, ())
    beliefs, marginals = np.zeros(program.node_start[-1]), np.zeros(program.marginals)
    loss = kernel.infer(program, flatten(cliques, potentials), total, beliefs, marginals, np.zeros_like(marginals))
    if not math.isfinite(loss):
        raise InvariantError("Expected potentials that leave the model its mass.")
    return GraphicalModel(
        compression.domain,
        dict(potentials),
        total,
        step,
        tree,
        unflatten(compression.model_domain, tree.nodes, beliefs),
        compression,
        off_tree,
    )


def flatten(cliques: tuple[Clique, ...], potentials: Mapping[Clique, Floats]) -> Floats:
    """The potentials in the order of the kernel's buffer."""
    return np.concatenate([np.zeros(0), *(flat(potentials[clique]) for clique in cliques)])


def unflatten(domain: Domain, cliques: Sequence[Clique], buffer: Floats) -> tuple[Floats, ...]:
    """Cut a buffer of the kernel into the cliques' tables."""
    parts = np.split(buffer, np.cumsum([domain.size(clique) for clique in cliques])[:-1])
    return tuple(unflat(part, domain.shape(clique)) for clique, part in zip(cliques, parts, strict=True))
