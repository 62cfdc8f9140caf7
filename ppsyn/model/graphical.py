"""The graphical model: potentials on cliques, calibrated over a junction tree."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.domain import Clique, Domain, maximal
from ppsyn.errors import InvariantError
from ppsyn.generate import Step
from ppsyn.model import kernel
from ppsyn.model.program import build
from ppsyn.model.project import Projector
from ppsyn.model.tree import JunctionTree, junction_tree

FIRST_STEP = 0.0
"""A model that was never fitted has no step to resume from."""


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """A distribution over the domain, scaled to `total` rows.

    Attributes:
        potentials: Log-potentials of the measured cliques that no other contains.
        total: How many rows the model stands for.
        step: The last step of the fit, where the next fit starts.
        beliefs: The marginal of each node of the tree.
    """

    domain: Domain
    potentials: Mapping[Clique, Floats]
    total: float
    step: float
    tree: JunctionTree
    beliefs: tuple[Floats, ...]

    @cached_property
    def _projector(self) -> Projector:
        return Projector(self.tree, self.beliefs, self.total)

    def project(self, clique: Clique) -> Floats:
        """Expected counts of a marginal, one axis an attribute."""
        return self._projector.project(clique)

    def steps(self) -> tuple[Step, ...]:
        """The model as a chain of conditional tables, for generation."""
        return tuple(self._step(index) for index in range(len(self.tree.nodes)) if self._new(index))

    def _new(self, index: int) -> Clique:
        separator = self.tree.separator(index)
        return tuple(name for name in self.tree.nodes[index] if name not in separator)

    def _step(self, index: int) -> Step:
        given, new, node = self.tree.separator(index), self._new(index), self.tree.nodes[index]
        table = np.transpose(self.beliefs[index], [node.index(name) for name in (*given, *new)])
        return Step(given, new, np.ascontiguousarray(table).reshape(self.domain.size(given), self.domain.size(new)))


def unfitted(domain: Domain) -> GraphicalModel:
    """The model that nothing has been measured for: uniform, one row in all."""
    return calibrated(domain, {}, 1.0, FIRST_STEP)


def calibrated(domain: Domain, potentials: Mapping[Clique, Floats], total: float, step: float) -> GraphicalModel:
    """The model with the given potentials, bit for bit as a fit that ended on them."""
    cliques = maximal(potentials)
    if len(cliques) != len(potentials):
        raise InvariantError("Expected potentials on cliques that do not contain each other.")
    tree = junction_tree(domain, cliques)
    program = build(tree, cliques, ())
    values, gradient = np.zeros(program.values), np.zeros(program.values)
    if not math.isfinite(kernel.infer(program, flatten(cliques, potentials), total, values, gradient)):
        raise InvariantError("Expected potentials that leave the model its mass.")
    return GraphicalModel(domain, dict(potentials), total, step, tree, node_beliefs(tree, values))


def flatten(cliques: tuple[Clique, ...], potentials: Mapping[Clique, Floats]) -> Floats:
    """The potentials in the order of the kernel's buffer."""
    return np.concatenate([np.zeros(0), *(potentials[clique].ravel() for clique in cliques)])


def node_beliefs(tree: JunctionTree, values: Floats) -> tuple[Floats, ...]:
    """Cut the kernel's buffer into the beliefs of the tree's nodes."""
    beliefs: list[Floats] = []
    at = 0
    for node in tree.nodes:
        size = tree.domain.size(node)
        beliefs.append(values[at : at + size].reshape(tree.domain.shape(node)).copy())
        at += size
    return tuple(beliefs)
