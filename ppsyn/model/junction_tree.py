"""Junction trees: how large a model would be, and its shape."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ppsyn.arrays import Floats
from ppsyn.domain import Clique, Domain
from ppsyn.jit import compiled

BYTES_PER_CELL = 8
_MB = 2**20

Adjacency = NDArray[np.bool_]


@compiled
def _eliminate(graph: Adjacency, log_sizes: Floats, by_fill: bool) -> Adjacency:
    """Eliminate attributes greedily; row k is the clique that the k-th elimination forms.

    The cheapest attribute goes first: the one whose clique has the fewest cells, or,
    `by_fill`, the one that adds the fewest edges, then the fewest cells. Costs are
    found anew only near what went before.
    """
    n = graph.shape[0]
    graph = graph.copy()
    alive, stale = np.ones(n, np.bool_), np.ones(n, np.bool_)
    weights, fills = np.zeros(n), np.zeros(n, np.int64)
    formed = np.zeros((n, n), np.bool_)
    for step in range(n):
        best = -1
        for a in range(n):
            if not alive[a]:
                continue
            if stale[a]:
                weights[a], fills[a] = _cost(graph, alive, log_sizes, a, by_fill)
                stale[a] = False
            if best < 0 or fills[a] < fills[best] or (fills[a] == fills[best] and weights[a] < weights[best]):
                best = a
        formed[step, best] = True
        alive[best] = False
        for b in range(n):
            if alive[b] and graph[best, b]:
                formed[step, b] = stale[b] = True
                for c in range(n):
                    if c != b and alive[c] and graph[best, c]:
                        graph[b, c] = True
                    if by_fill and graph[b, c]:
                        stale[c] = True
    return formed


@compiled
def _cost(graph: Adjacency, alive: NDArray[np.bool_], log_sizes: Floats, a: int, by_fill: bool) -> tuple[float, int]:
    """The logarithm of the cells of an attribute's clique, and, `by_fill`, the edges that it lacks."""
    weight, fill = log_sizes[a], 0
    for b in range(graph.shape[0]):
        if alive[b] and graph[a, b]:
            weight += log_sizes[b]
            if by_fill:
                for c in range(b):
                    if alive[c] and graph[a, c] and not graph[b, c]:
                        fill += 1
    return weight, fill


@compiled
def _is_maximal(formed: Adjacency) -> NDArray[np.bool_]:
    """Which elimination cliques no earlier one contains (a later one never can)."""
    n = formed.shape[0]
    kept = np.ones(n, np.bool_)
    for k in range(n):
        members = np.flatnonzero(formed[k])
        for earlier in range(k):
            if kept[earlier]:
                inside = True
                for a in members:
                    if not formed[earlier, a]:
                        inside = False
                        break
                if inside:
                    kept[k] = False
                    break
    return kept


@compiled
def _cells(formed: Adjacency, kept: NDArray[np.bool_], log_sizes: Floats) -> float:
    total = 0.0
    for k in range(formed.shape[0]):
        if kept[k]:
            weight = 0.0
            for a in range(formed.shape[1]):
                if formed[k, a]:
                    weight += log_sizes[a]
            total += math.exp(weight)
    return total


@compiled
def _triangulate(graph: Adjacency, log_sizes: Floats) -> tuple[Adjacency, float]:
    """The smaller of two greedy triangulations: its maximal cliques and their cells."""
    formed = _eliminate(graph, log_sizes, False)
    kept = _is_maximal(formed)
    cells = _cells(formed, kept, log_sizes)
    formed_2 = _eliminate(graph, log_sizes, True)
    kept_2 = _is_maximal(formed_2)
    cells_2 = _cells(formed_2, kept_2, log_sizes)
    if cells_2 < cells:
        return formed_2[kept_2], cells_2
    return formed[kept], cells


@dataclass(frozen=True)
class InteractionGraph:
    """Which attributes are measured together."""

    domain: Domain
    adjacency: Adjacency

    @cached_property
    def _log_sizes(self) -> Floats:
        return np.log([float(attribute.size) for attribute in self.domain.attributes])

    def with_clique(self, clique: Clique) -> "InteractionGraph":
        """The graph after measuring one more clique."""
        adjacency = self.adjacency.copy()
        _connect(adjacency, [self.domain.rank[name] for name in clique])
        return InteractionGraph(self.domain, adjacency)

    def holds(self, clique: Clique) -> bool:
        """Whether measuring the clique adds no edge."""
        ranks = [self.domain.rank[name] for name in clique]
        return all(self.adjacency[a, b] for a, b in combinations(ranks, 2))

    def maximal_cliques(self) -> tuple[Clique, ...]:
        """The nodes of the junction tree."""
        members, _ = _triangulate(self.adjacency, self._log_sizes)
        names = np.array(self.domain.names, dtype=object)
        return tuple(sorted((tuple(names[row]) for row in members), key=self._key))

    def _key(self, clique: Clique) -> tuple[int, ...]:
        return tuple(self.domain.rank[name] for name in clique)

    def model_mb(self) -> float:
        """The size of the model's beliefs, in MB, before anything is fitted."""
        _, cells = _triangulate(self.adjacency, self._log_sizes)
        return cells * BYTES_PER_CELL / _MB


def table_mb(domain: Domain, clique: Clique) -> float:
    """The size of a marginal, in MB."""
    return domain.size(clique) * BYTES_PER_CELL / _MB


def _connect(adjacency: Adjacency, ranks: Sequence[int]) -> None:
    for a, b in combinations(ranks, 2):
        adjacency[a, b] = adjacency[b, a] = True


def interaction_graph(domain: Domain, cliques: Iterable[Clique]) -> InteractionGraph:
    """The graph of the cliques, and of the attributes that rules join."""
    n = len(domain.attributes)
    adjacency = np.zeros((n, n), np.bool_)
    for clique in (*cliques, *(zeros.clique for zeros in domain.zeros)):
        _connect(adjacency, [domain.rank[name] for name in clique])
    return InteractionGraph(domain, adjacency)


@dataclass(frozen=True)
class JunctionTree:
    """A forest of cliques with the running intersection property.

    Attributes:
        nodes: Cliques that together cover every attribute, parents before children.
        parents: The index of each node's parent; -1 for a root.
    """

    domain: Domain
    nodes: tuple[Clique, ...]
    parents: tuple[int, ...]

    def separator(self, index: int) -> Clique:
        """What a node shares with its parent; empty for a root."""
        parent = self.parents[index]
        return () if parent < 0 else tuple(name for name in self.nodes[index] if name in self.nodes[parent])

    def home(self, clique: Clique) -> int | None:
        """The smallest node that holds the clique, if any does."""
        near = self._holders.get(clique[0], []) if clique else range(len(self.nodes))
        fits = [index for index in near if set(clique) <= set(self.nodes[index])]
        return min(fits, key=lambda index: (self.domain.size(self.nodes[index]), index), default=None)

    @cached_property
    def _holders(self) -> dict[str, list[int]]:
        return _holders(self.nodes)

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """The indices adjacent to each node."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for index, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(index)
                found[index].append(parent)
        return tuple(tuple(row) for row in found)


def junction_tree(domain: Domain, cliques: Iterable[Clique]) -> JunctionTree:
    """A junction tree whose nodes hold every clique and what every rule is about. Deterministic."""
    nodes = interaction_graph(domain, cliques).maximal_cliques()
    meeting = {pair for holders in _holders(nodes).values() for pair in combinations(holders, 2)}
    edges = sorted((-len(set(nodes[i]) & set(nodes[j])), i, j) for i, j in meeting)
    # Kruskal: a spanning forest of largest separators is a junction tree.
    component = list(range(len(nodes)))
    joined: list[list[int]] = [[] for _ in nodes]
    for _, i, j in edges:
        if component[i] != component[j]:
            old, new = component[j], component[i]
            component = [new if c == old else c for c in component]
            joined[i].append(j)
            joined[j].append(i)
    return _rooted(domain, nodes, joined)


def _holders(nodes: Sequence[Clique]) -> dict[str, list[int]]:
    """The indices of the nodes that hold each attribute, in order."""
    found: dict[str, list[int]] = {}
    for index, node in enumerate(nodes):
        for name in node:
            found.setdefault(name, []).append(index)
    return found


def _rooted(domain: Domain, nodes: tuple[Clique, ...], joined: list[list[int]]) -> JunctionTree:
    order: list[int] = []
    parent_of: dict[int, int] = {}
    for root in range(len(nodes)):
        if root in parent_of:
            continue
        parent_of[root] = -1
        order.append(root)
        queue = [root]
        while queue:
            node = queue.pop(0)
            for other in joined[node]:
                if other not in parent_of:
                    parent_of[other] = node
                    order.append(other)
                    queue.append(other)
    place = {node: index for index, node in enumerate(order)}
    parents = tuple(place[parent_of[node]] if parent_of[node] >= 0 else -1 for node in order)
    return JunctionTree(domain, tuple(nodes[node] for node in order), parents)
