"""Marginals of a calibrated tree, inside its nodes and across them."""

from dataclasses import dataclass, field

import numpy as np

from ppsyn.arrays import Floats
from ppsyn.domain import Clique, Domain
from ppsyn.jit import compiled
from ppsyn.model.junction_tree import JunctionTree


@dataclass(frozen=True, slots=True, eq=False)
class _Factor:
    """A table over a clique."""

    clique: Clique
    table: Floats

    def sum_to(self, keep: set[str]) -> "_Factor":
        axes = tuple(axis for axis, name in enumerate(self.clique) if name not in keep)
        return _Factor(tuple(n for n in self.clique if n in keep), self.table.sum(axis=axes)) if axes else self

    def arranged(self, *parts: Clique) -> Floats:
        """The table with its axes grouped into the given parts, one axis a part."""
        order = [self.clique.index(name) for part in parts for name in part]
        sizes = iter(np.take(self.table.shape, order).tolist())
        shape = [int(np.prod([next(sizes) for _ in part], dtype=np.int64)) for part in parts]
        return np.ascontiguousarray(np.transpose(self.table, order)).reshape(shape)


@compiled
def _batched_product(left: Floats, right: Floats) -> Floats:
    """out[b, i, j] = sum over k of left[b, i, k] * right[b, k, j], summed in the order of k."""
    batches, rows, inner = left.shape
    out = np.zeros((batches, rows, right.shape[2]))
    for b in range(batches):
        for i in range(rows):
            for k in range(inner):
                weight = left[b, i, k]
                if weight != 0.0:
                    for j in range(right.shape[2]):
                        out[b, i, j] += weight * right[b, k, j]
    return out


def _contract(domain: Domain, left: _Factor, right: _Factor, keep: set[str]) -> _Factor:
    """Multiply two tables and sum out what is not kept."""
    left, right = left.sum_to(keep | set(right.clique)), right.sum_to(keep | set(left.clique))
    shared = [name for name in left.clique if name in right.clique]
    batch = tuple(name for name in shared if name in keep)
    inner = tuple(name for name in shared if name not in keep)
    rows = tuple(name for name in left.clique if name not in shared)
    columns = tuple(name for name in right.clique if name not in shared)
    table = _batched_product(left.arranged(batch, rows, inner), right.arranged(batch, inner, columns))
    clique = (*batch, *rows, *columns)
    return _Factor(clique, table.reshape(domain.shape(clique)))


@dataclass(frozen=True, slots=True, eq=False)
class Projector:
    """Marginals of a calibrated tree, each computed once."""

    tree: JunctionTree
    beliefs: tuple[Floats, ...]
    total: float
    _known: dict[Clique, Floats] = field(default_factory=dict[Clique, Floats])

    def project(self, clique: Clique) -> Floats:
        """Expected counts of a marginal."""
        if clique not in self._known:
            home = self.tree.home(clique)
            self._known[clique] = self._within(home, clique) if home is not None else self._across(clique)
        return self._known[clique]

    def _within(self, home: int, clique: Clique) -> Floats:
        return _Factor(self.tree.nodes[home], self.beliefs[home]).sum_to(set(clique)).table

    def _across(self, clique: Clique) -> Floats:
        """Contract the smallest subtrees that span the clique, one after another."""
        product: _Factor | None = None
        for wanted in self._by_component(clique):
            home = self.tree.home(wanted)
            part = _Factor(wanted, self._within(home, wanted)) if home is not None else self._span(wanted)
            domain = self.tree.domain
            product = part if product is None else _contract(domain, product, part, set(clique))
            if product is not part:
                product = _Factor(product.clique, product.table / self.total)
        if product is None:
            return np.array(self.total)
        return product.arranged(*((name,) for name in clique))

    def _by_component(self, clique: Clique) -> list[Clique]:
        """The clique cut into the parts that lie in different trees of the forest."""
        parts: dict[int, list[str]] = {}
        for name in clique:
            node = next(index for index, other in enumerate(self.tree.nodes) if name in other)
            while self.tree.parents[node] >= 0:
                node = self.tree.parents[node]
            parts.setdefault(node, []).append(name)
        return [tuple(part) for part in parts.values()]

    def _span(self, wanted: Clique) -> _Factor:
        """The marginal of attributes of one tree that no single node holds."""
        nodes, names = self._spanning(wanted), set(wanted)
        root = max(nodes, key=lambda node: (len(names & set(self.tree.nodes[node])), node))
        return self._collect(root, -1, nodes, names).sum_to(names)

    def _spanning(self, wanted: Clique) -> set[int]:
        """The nodes left after dropping every leaf whose wanted attributes its neighbour has too."""
        names = set(wanted)
        first = next(index for index, node in enumerate(self.tree.nodes) if names & set(node))
        nodes = self._component(first)
        dropped = True
        while dropped:
            dropped = False
            for node in sorted(nodes):
                around = [other for other in self.tree.neighbours[node] if other in nodes]
                if len(around) == 1 and names & set(self.tree.nodes[node]) <= set(self.tree.nodes[around[0]]):
                    nodes.remove(node)
                    dropped = True
        return nodes

    def _component(self, first: int) -> set[int]:
        found, queue = {first}, [first]
        while queue:
            new = [other for other in self.tree.neighbours[queue.pop()] if other not in found]
            found.update(new)
            queue.extend(new)
        return found

    def _collect(self, node: int, toward: int, nodes: set[int], names: set[str]) -> _Factor:
        """A node's table times its subtree's, over wanted attributes and those shared with `toward`."""
        members = set(self.tree.nodes[node])
        upward = members & set(self.tree.nodes[toward]) if toward >= 0 else set[str]()
        messages = [
            self._collect(other, node, nodes, names)
            for other in self.tree.neighbours[node]
            if other in nodes and other != toward
        ]
        needed = set(upward | (names & members)).union(*(set(m.clique) & members for m in messages))
        product = _Factor(self.tree.nodes[node], self.beliefs[node]).sum_to(needed)
        if toward >= 0:
            product = _given(product, upward)
        for i, message in enumerate(messages):
            later = set[str]().union(*(set(m.clique) & members for m in messages[i + 1 :]))
            product = _contract(self.tree.domain, product, message, upward | names | later)
        return product


def _given(factor: _Factor, names: set[str]) -> _Factor:
    """The conditional table given `names`; zero where they have no mass."""
    axes = tuple(axis for axis, name in enumerate(factor.clique) if name not in names)
    mass = factor.table.sum(axis=axes, keepdims=True)
    table = np.divide(factor.table, mass, out=np.zeros_like(factor.table), where=mass > 0)
    return _Factor(factor.clique, table)
