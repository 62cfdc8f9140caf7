"""Domains, potentials and measurements small enough to check against the full joint distribution."""

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from ppsyn.arrays import Floats
from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition, number_groups

UNHURRIED = settings(deadline=None, max_examples=50)  # the first call compiles
SEEDS = st.integers(0, 2**32)


def rng_of(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def domain_of(**sizes: int) -> Domain:
    return Domain(tuple(Attribute(name, size) for name, size in sizes.items()))


@st.composite
def domains(draw: st.DrawFn, most: int = 5, size: int = 4) -> Domain:
    """Up to `most` attributes; names in an order that is not the alphabet's."""
    sizes = draw(st.lists(st.integers(1, size), min_size=1, max_size=most))
    return domain_of(**{name: size for name, size in zip("cadbfeg", sizes, strict=False)})


@st.composite
def cliques_of(draw: st.DrawFn, domain: Domain, least: int = 0, degree: int = 3) -> tuple[Clique, ...]:
    clique = st.sets(st.sampled_from(domain.names), min_size=1, max_size=degree).map(domain.clique)
    return tuple(draw(st.lists(clique, min_size=least, max_size=6)))


def random_potentials(domain: Domain, cliques: Sequence[Clique], spread: float, seed: int) -> dict[Clique, Floats]:
    rng = rng_of(seed)
    return {clique: rng.uniform(-spread, spread, domain.shape(clique)) for clique in cliques}


def joint_of(domain: Domain, potentials: Mapping[Clique, Floats], total: float) -> Floats:
    """The whole distribution, cell by cell, from the sum of its potentials."""
    logs = np.zeros(domain.shape(domain.names))
    for clique, table in potentials.items():
        logs = logs + table.reshape([domain[name].size if name in clique else 1 for name in domain.names])
    weights = np.exp(logs - logs.max())
    return weights * (total / weights.sum())


def marginal_of(domain: Domain, joint: Floats, clique: Clique) -> Floats:
    return joint.sum(axis=tuple(axis for axis, name in enumerate(domain.names) if name not in clique))


def query_matrix(domain: Domain, clique: Clique, partition: Partition) -> Floats:
    """One row a group, one column a cell of the full joint."""
    rows = []
    for group in range(partition.count):
        inside = (partition.groups == group).reshape(domain.shape(clique))
        shape = [domain[name].size if name in clique else 1 for name in domain.names]
        rows.append(np.broadcast_to(inside.reshape(shape), domain.shape(domain.names)).ravel())
    return np.array(rows, np.float64)


def loss_of(domain: Domain, joint: Floats, measurements: Sequence[Measurement]) -> float:
    residuals = (
        (query_matrix(domain, m.clique, m.partition) @ joint.ravel() - m.noisy_counts) / m.sigma for m in measurements
    )
    return 0.5 * sum(float(residual @ residual) for residual in residuals)


@st.composite
def partitions(draw: st.DrawFn, cells: int) -> Partition:
    labels = draw(st.lists(st.integers(0, 5), min_size=cells, max_size=cells))
    return number_groups(np.array(labels, np.int32))


@st.composite
def measurements_of(draw: st.DrawFn, domain: Domain, rows: int = 1000) -> tuple[Measurement, ...]:
    """Noisy group counts of one table, so that they agree with each other up to the noise."""
    rng = rng_of(draw(SEEDS))
    joint = rng.multinomial(rows, rng.dirichlet(np.full(domain.size(domain.names), 0.5)))
    found = []
    for clique in draw(cliques_of(domain, least=1)):
        partition = draw(partitions(domain.size(clique)))
        sigma = draw(st.sampled_from([0.5, 5.0, 50.0]))
        exact = query_matrix(domain, clique, partition) @ joint
        noisy_counts = np.rint(exact + rng.normal(0, sigma, partition.count)).astype(np.int64)
        found.append(Measurement(clique, partition, noisy_counts, sigma))
    return tuple(found)


def total_variation(left: Floats, right: Floats) -> float:
    return float(0.5 * np.abs(left / left.sum() - right / right.sum()).sum())
