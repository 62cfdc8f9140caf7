"""To mbi and back: its models, its measurements, and its estimator as an engine.

Importing this module imports JAX and sets it to double precision, which mbi needs
for tables of more than a few thousand rows.
"""
# JAX and mbi are annotated in part, and chex hides the fields of mbi's dataclasses.
# pyright: reportUnknownMemberType=false, reportCallIssue=false

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from ppsyn.arrays import Codes, Floats
from ppsyn.domain import Clique, Domain
from ppsyn.errors import InvariantError
from ppsyn.model.compression import Compression
from ppsyn.model.estimation import Effort, Fit, compress_measurements, estimate_total, fit_off_tree
from ppsyn.model.graphical_model import FIRST_STEP, GraphicalModel, calibrate, uniform_model, with_zeros
from ppsyn.model.measurement import Measurement, unit_of
from ppsyn.privacy.partition import Partition, finest
from ppsyn.privacy.residuals import Axes

jax.config.update("jax_enable_x64", True)
with warnings.catch_warnings(action="ignore"):
    # mbi warns of JAX's compilation cache, which is JAX's default and the user's to choose.
    import mbi


_LEAST_SHARE = 1e-200
"""What mbi sees of a value that no row is expected to have: its potentials are finite."""


@dataclass(frozen=True, eq=False)
class GroupQuery:
    """The linear query of a partition: sums a marginal's cells over its groups, and of a grid leaves contrasts."""

    groups: Codes
    count: int
    axes: Axes = ()

    def __call__(self, factor: mbi.Factor) -> jax.Array:
        """Group sums of the factor, or what of them is orthogonal to all functions of one axis."""
        sums = jax.ops.segment_sum(factor.datavector(), self.groups, num_segments=self.count)
        return _centred(sums, self.axes) if self.axes else sums

    def op_norm_sq(self) -> float:
        """The largest group's number of cells."""
        return float(np.bincount(self.groups, minlength=self.count).max())


def _centred(sums: jax.Array, axes: Axes) -> jax.Array:
    boxes, every = sums.reshape(axes), range(len(axes))
    slices = (boxes.mean(axis=tuple(a for a in every if a != axis), keepdims=True) for axis in every)
    return (boxes - sum(slices) + (len(axes) - 1) * boxes.mean()).ravel()


def domain_to_mbi(domain: Domain) -> mbi.Domain:
    """The attributes with their sizes."""
    return mbi.Domain(domain.names, domain.shape(domain.names))


def measurements_to_mbi(measurements: Sequence[Measurement]) -> list[mbi.LinearMeasurement]:
    """The measurements as linear queries on their marginals, with the answers as they were drawn."""
    return [
        mbi.LinearMeasurement(m.noisy_counts / m.unit, m.clique, m.sigma / m.unit, query=_query(m.partition))
        for m in measurements
    ]


def _query(partition: Partition) -> GroupQuery | mbi.DatavectorQuery:
    return (
        mbi.DatavectorQuery()
        if partition == finest(partition.cells)
        else GroupQuery(partition.groups, partition.count, partition.axes)
    )


def measurements_from_mbi(domain: Domain, measurements: Sequence[mbi.LinearMeasurement]) -> tuple[Measurement, ...]:
    """Measurements whose query is a marginal or a partition of one.

    Raises:
        TypeError: If a query is of another kind.
    """
    return tuple(_from_mbi(domain, measurement) for measurement in measurements)


def _from_mbi(domain: Domain, measurement: mbi.LinearMeasurement) -> Measurement:
    listed = tuple(str(name) for name in measurement.clique)
    clique = domain.clique(listed)
    # For each cell of the clique in the domain's order, its place in the order listed.
    places = np.arange(domain.size(clique)).reshape(domain.shape(listed))
    places = places.transpose([listed.index(name) for name in clique]).ravel()
    answer, query = np.asarray(measurement.noisy_measurement), cast("object", measurement.query)
    if isinstance(query, GroupQuery):
        partition = Partition(np.ascontiguousarray(query.groups[places]), query.count, query.axes)
    elif isinstance(query, mbi.DatavectorQuery):
        partition, answer = finest(places.size), answer.ravel()[places]
    else:
        raise TypeError(f"Expected a marginal or a GroupQuery, got {type(query).__name__}.")
    unit = unit_of(partition)
    answer = np.rint(answer * unit).astype(np.int64) if partition.axes else answer
    return Measurement(clique, partition, answer, float(measurement.stddev) * unit)


def model_to_mbi(model: GraphicalModel) -> mbi.MarkovRandomField:
    """The model as mbi's, over the table's domain, with the marginals of its potentials' cliques.

    Values that the model takes as one have equal potentials, but for the logarithms of their shares. It is the tree
    alone: off-tree marginals are none of its own.
    """
    model, compression = model.tree_only, model.compression
    potentials = {clique: compression.spread(clique, table) for clique, table in model.potentials.items()}
    for name, attribute in compression.attributes.items():
        clique = next((clique for clique in potentials if name in clique), (name,))
        shares = np.log(np.maximum(attribute.shares, _LEAST_SHARE)).reshape([-1 if n == name else 1 for n in clique])
        potentials[clique] = potentials.get(clique, np.zeros(compression.domain.shape(clique))) + shares
    domain = domain_to_mbi(model.domain)
    return mbi.MarkovRandomField(
        potentials=_vector(domain, potentials),
        marginals=_vector(domain, {clique: model.project(clique) for clique in potentials}),
        total=model.total,
    )


def _vector(domain: mbi.Domain, tables: dict[Clique, Floats]) -> mbi.CliqueVector:
    factors: dict[mbi.Clique, mbi.Factor] = {
        clique: mbi.Factor(domain.project(clique), jnp.asarray(table)) for clique, table in tables.items()
    }
    return mbi.CliqueVector(domain, list(tables), factors)


def model_from_mbi(domain: Domain, field: mbi.MarkovRandomField) -> GraphicalModel:
    """The model with mbi's potentials, calibrated here."""
    potentials: dict[Clique, Floats] = {}
    tables = {domain.clique(map(str, clique)): clique for clique in field.potentials.cliques}
    for clique in with_zeros(domain, tables):
        potentials[clique] = np.zeros(domain.shape(clique))
    for clique, key in tables.items():
        outer = next(other for other in potentials if set(clique) <= set(other))
        table = np.asarray(field.potentials[key].transpose(clique).datavector(flatten=False))
        potentials[outer] += table.reshape([domain[name].size if name in clique else 1 for name in outer])
    return calibrate(Compression(domain), potentials, float(np.asarray(field.total)), FIRST_STEP)


def fit(measurements: Sequence[Measurement], warm: GraphicalModel, effort: Effort) -> Fit:
    """Fit with mbi's mirror descent, warm-started."""
    compression = warm.compression
    if not measurements:
        return Fit(uniform_model(compression), 0.0, 0)
    compressed = [m for m in compress_measurements(compression, measurements) if not m.is_off_tree]
    field = mbi.estimation.MirrorDescent().estimate(
        domain_to_mbi(compression.model_domain),
        [
            replace(linear, noisy_measurement=m.contrast(m.target), stddev=m.scale)
            for linear, m in zip(measurements_to_mbi(compressed), compressed, strict=True)
        ],
        known_total=estimate_total(compressed),
        iters=effort.iterations,
        warm_start=model_to_mbi(
            replace(warm, domain=compression.model_domain, compression=Compression(compression.model_domain))
        )
        if warm.potentials
        else None,
        tol=effort.tolerance,
    )
    if not isinstance(field, mbi.MarkovRandomField):
        raise InvariantError("mbi's estimator returned something else than a Markov random field.")
    model = replace(model_from_mbi(compression.model_domain, field), domain=compression.domain, compression=compression)
    in_tree = [m for m in measurements if not m.is_off_tree]
    return Fit(fit_off_tree(model, measurements, effort), loss(model, in_tree), effort.iterations)


def loss(model: GraphicalModel, measurements: Sequence[Measurement]) -> float:
    """Half the weighted squared residuals of the model."""
    residuals = (
        m.contrast(m.partition.sum_expected(model.project(m.clique)) - m.target) / m.scale for m in measurements
    )
    return float(sum(0.5 * float(r @ r) for r in residuals))
