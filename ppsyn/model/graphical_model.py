"""The graphical model: potentials on cliques, calibrated over a junction tree."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ppsyn.arrays import Codes, Flags, Floats
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

ZERO = -1e300
"""The potential of a cell in which there can be no row: finite, so that steps may be taken from it, and lost in it."""


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
    def is_blank(self) -> bool:
        """Whether nothing but rules is known: all rows that they leave are alike."""
        return all(((table == 0.0) | (table == ZERO)).all() for table in self.potentials.values())

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

    @cached_property
    def _leaves_rows(self) -> tuple[Flags | None, ...]:
        """The cells of each node that can be completed further down the tree; None where that are all."""
        tree, found = self.tree, list[Flags | None]([None] * len(self.tree.nodes))
        if not tree.domain.zeros:
            return tuple(found)
        for index in range(len(tree.nodes) - 1, -1, -1):
            node = tree.nodes[index]
            allowed = tree.domain.allowed(node)
            for child in tree.neighbours[index]:
                below = found[child] if child != tree.parents[index] else None
                if below is not None:
                    apart = tuple(a for a, name in enumerate(tree.nodes[child]) if name not in node)
                    shape = [tree.domain[name].size if name in tree.nodes[child] else 1 for name in node]
                    message = below.any(axis=apart).reshape(shape)
                    allowed = message if allowed is None else allowed & message
            found[index] = None if allowed is None else np.broadcast_to(allowed, tree.domain.shape(node))
        return tuple(found)

    def possible(self, clique: Clique) -> Flags:
        """In which cells of a marginal the rules leave rows, over the groups of values that the model holds apart."""
        if not self.domain.zeros:
            return np.ones(self.compression.model_domain.shape(clique), np.bool_)
        return self._uniform.project(clique) > 0

    @cached_property
    def _uniform(self) -> Projector:
        """The model that nothing but the rules is known of."""
        uniform = uniform_model(self.compression)
        return Projector(uniform.tree, uniform.beliefs, uniform.total)

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
        if (leaves := self._leaves_rows[index]) is not None:
            # What has no mass left, and comes up all the same, takes any cell that breaks no rule.
            spare = np.transpose(leaves, [node.index(name) for name in (*given, *new)]).reshape(weights.shape)
            weights = np.where(weights.any(axis=1, keepdims=True), weights, spare)
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
    off_tree, domain = dict(off_tree or {}), compression.model_domain
    if len(maximal(potentials)) != len(potentials):
        raise InvariantError("Expected potentials on cliques that do not contain each other.")
    cliques = with_zeros(domain, potentials)
    potentials = {
        clique: forbid(domain, clique, potentials.get(clique, np.zeros(domain.shape(clique))))
        for clique in (*potentials, *(clique for clique in cliques if clique not in potentials))
    }
    if len(cliques) != len(potentials):
        raise InvariantError("Expected potentials on all that a rule is about.")
    if not all(np.isfinite(table).all() and (table >= 0).all() for table in off_tree.values()):
        raise InvariantError("Expected off-tree marginals that are finite and non-negative.")
    tree = junction_tree(domain, cliques)
    program = build(tree, cliques, ())
    beliefs, marginals = np.zeros(program.node_start[-1]), np.zeros(program.marginals)
    loss = kernel.infer(program, flatten(cliques, potentials), total, beliefs, marginals, np.zeros_like(marginals))
    if not math.isfinite(loss):
        raise InvariantError("Expected potentials that leave the model its mass.")
    return GraphicalModel(
        compression.domain,
        potentials,
        total,
        step,
        tree,
        unflatten(compression.model_domain, tree.nodes, beliefs),
        compression,
        off_tree,
    )


def with_zeros(inner: Domain, cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """The cliques that carry potentials: those measured and those that rules are about, of which no other contains."""
    return maximal((*cliques, *(zeros.clique for zeros in inner.zeros)))


def forbid(inner: Domain, clique: Clique, potentials: Floats) -> Floats:
    """The potentials of a clique, with the cells that rules about it forbid at zero mass."""
    allowed = inner.allowed(clique)
    return potentials if allowed is None else np.where(allowed, potentials, ZERO)


def flatten(cliques: tuple[Clique, ...], potentials: Mapping[Clique, Floats]) -> Floats:
    """The potentials in the order of the kernel's buffer."""
    return np.concatenate([np.zeros(0), *(flat(potentials[clique]) for clique in cliques)])


def unflatten(domain: Domain, cliques: Sequence[Clique], buffer: Floats) -> tuple[Floats, ...]:
    """Cut a buffer of the kernel into the cliques' tables."""
    parts = np.split(buffer, np.cumsum([domain.size(clique) for clique in cliques])[:-1])
    return tuple(unflat(part, domain.shape(clique)) for clique, part in zip(cliques, parts, strict=True))
