"""A fitted model with what it was fitted to, as one npz file: JSON for what is said, arrays for what is counted."""

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from ppsyn.arrays import Codes, Floats
from ppsyn.domain import Domain, domain_of
from ppsyn.errors import ConfigError, PPSynError, translated
from ppsyn.mechanisms.base import Round
from ppsyn.mechanisms.past import Belief, Change, Past
from ppsyn.mechanisms.translation import Earlier
from ppsyn.model.compression import CompressedAttribute, Compression
from ppsyn.model.graphical_model import GraphicalModel, calibrate
from ppsyn.model.measurement import Measurement
from ppsyn.privacy.partition import Partition
from ppsyn.schemas.table import TableSchema
from ppsyn.schemas.types import FrozenModel

Arrays = Mapping[str, NDArray[np.generic]]

_DOCUMENT = "document"

_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<dtype>[<>|][biuf]([1248]|16))', 'fortran_order': False, "
    rb"'shape': \((?P<shape>([0-9]{1,18},? ?){0,8})\), \} *\n",
    re.DOTALL,
)
"""What numpy writes before an array, in the first version of its format."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What the loop has learned. The same bits come back from `pack` and `unpack`.

    Attributes:
        measurements: The answers as they were drawn.
        evidence: What the model was fitted to.
        notes: Whatever else goes with it, as text.
    """

    measurements: tuple[Measurement, ...]
    evidence: tuple[Measurement, ...]
    rounds: tuple[Round, ...]
    model: GraphicalModel
    notes: Mapping[str, str]


class _Measurement(FrozenModel):
    clique: tuple[str, ...]
    groups: int
    axes: tuple[int, ...]
    sigma: float


class _Evidence(_Measurement):
    of: int | None
    """The measurement whose groups and counts it has, if it has those of one."""
    is_off_tree: bool


class _Round(FrozenModel):
    clique: tuple[str, ...]
    groups: int
    sigma: float
    distance: float
    noise: float
    moved: float


class _Compressed(FrozenModel):
    attribute: str
    groups: int


class _Document(FrozenModel):
    format: Literal["ppsyn-model-3"]
    compressed: tuple[_Compressed, ...]
    measurements: tuple[_Measurement, ...]
    evidence: tuple[_Evidence, ...]
    rounds: tuple[_Round, ...]
    potentials: tuple[tuple[str, ...], ...]
    off_tree: tuple[tuple[str, ...], ...]
    total: float
    step: float
    notes: dict[str, str]


def pack(fitted: Fitted) -> bytes:
    """The file. Equal inputs give equal bytes; there is no pickle in it."""
    model = fitted.model
    sources = [_source(evidence, fitted.measurements) for evidence in fitted.evidence]
    document = _Document(
        format="ppsyn-model-3",
        compressed=tuple(
            _Compressed(attribute=name, groups=f.groups.count) for name, f in model.compression.attributes.items()
        ),
        measurements=tuple(
            _Measurement(clique=m.clique, groups=m.partition.count, axes=m.partition.axes, sigma=m.sigma)
            for m in fitted.measurements
        ),
        evidence=tuple(
            _Evidence(
                clique=e.clique,
                groups=e.partition.count,
                axes=e.partition.axes,
                sigma=e.sigma,
                of=of,
                is_off_tree=e.is_off_tree,
            )
            for e, of in zip(fitted.evidence, sources, strict=True)
        ),
        rounds=tuple(
            _Round(clique=r.clique, groups=r.groups, sigma=r.sigma, distance=r.distance, noise=r.noise, moved=r.moved)
            for r in fitted.rounds
        ),
        potentials=tuple(model.potentials),
        off_tree=tuple(model.off_tree),
        total=model.total,
        step=model.step,
        notes=dict(fitted.notes),
    )
    arrays: dict[str, NDArray[np.generic]] = {
        _DOCUMENT: np.frombuffer(document.model_dump_json().encode(), np.uint8),
    }
    for index, compressed in enumerate(model.compression.attributes.values()):
        arrays[f"compression{index}"] = compressed.groups.groups
        arrays[f"shares{index}"] = compressed.shares
    for index, measurement in enumerate(fitted.measurements):
        arrays[f"groups{index}"] = measurement.partition.groups
        arrays[f"counts{index}"] = measurement.noisy_counts
    for index, (evidence, of) in enumerate(zip(fitted.evidence, sources, strict=True)):
        if of is None:
            arrays[f"own_groups{index}"] = evidence.partition.groups
            arrays[f"own_counts{index}"] = evidence.noisy_counts
    for index, table in enumerate(model.potentials.values()):
        arrays[f"potentials{index}"] = table
    for index, table in enumerate(model.off_tree.values()):
        arrays[f"off_tree{index}"] = table
    return pack_arrays(arrays)


def _source(evidence: Measurement, measurements: Sequence[Measurement]) -> int | None:
    """The measurement that shares its groups and counts with a piece of evidence."""
    shared = (
        index
        for index, m in enumerate(measurements)
        if m.partition is evidence.partition and m.noisy_counts is evidence.noisy_counts
    )
    return next(shared, None)


def unpack(data: bytes, domain: Domain) -> Fitted:
    """What was packed.

    Raises:
        ConfigError: If the file holds something else.
    """
    broken = ValidationError, KeyError, ValueError, TypeError, AttributeError, PPSynError
    with translated(
        broken, to=ConfigError, message=lambda error: f"Expected a fitted model of this table: {type(error).__name__}."
    ):
        return _restore(unpack_arrays(data), domain)


def _restore(arrays: Arrays, domain: Domain) -> Fitted:
    document = _Document.model_validate_json(arrays[_DOCUMENT].tobytes())
    _check_arrays(arrays, document, domain)
    measurements = _drawn(arrays, document)
    evidence = tuple(
        replace(
            measurements[e.of]
            if e.of is not None
            else _measurement(e, arrays[f"own_groups{i}"], arrays[f"own_counts{i}"]),
            sigma=e.sigma,
            is_off_tree=e.is_off_tree,
        )
        for i, e in enumerate(document.evidence)
    )
    compression = Compression(
        domain,
        {
            f.attribute: CompressedAttribute(
                Partition(arrays[f"compression{i}"].astype(np.int32), f.groups), arrays[f"shares{i}"].astype(np.float64)
            )
            for i, f in enumerate(document.compressed)
        },
    )
    potentials, off_tree = (
        {
            clique: arrays[f"{kind}{i}"].astype(np.float64).reshape(compression.model_domain.shape(clique))
            for i, clique in enumerate(cliques)
        }
        for kind, cliques in (("potentials", document.potentials), ("off_tree", document.off_tree))
    )
    rounds = tuple(Round(r.clique, r.groups, r.sigma, r.distance, r.noise, r.moved) for r in document.rounds)
    model = calibrate(compression, potentials, document.total, document.step, off_tree)
    return Fitted(measurements, evidence, rounds, model, document.notes)


def _measurement(stored: _Measurement, groups: NDArray[np.generic], counts: NDArray[np.generic]) -> Measurement:
    partition = Partition(groups.astype(np.int32), stored.groups, stored.axes)
    return Measurement(stored.clique, partition, counts.astype(np.int64), stored.sigma)


def _check_arrays(arrays: Arrays, document: _Document, domain: Domain) -> None:
    """Refuse arrays that are missing, too many, or of another shape or type than was packed."""
    expected: dict[str, tuple[type[np.generic], int]] = {_DOCUMENT: (np.uint8, arrays[_DOCUMENT].size)}
    sizes = {attribute.name: attribute.size for attribute in domain.attributes}
    for i, f in enumerate(document.compressed):
        expected[f"compression{i}"] = (np.int32, sizes[f.attribute])
        expected[f"shares{i}"] = (np.float64, sizes[f.attribute])
        sizes[f.attribute] = f.groups
    for i, m in enumerate(document.measurements):
        expected[f"groups{i}"] = (np.int32, domain.size(domain.clique(m.clique)))
        expected[f"counts{i}"] = (np.int64, m.groups)
    for i, e in enumerate(document.evidence):
        if e.of is None:
            expected[f"own_groups{i}"] = (np.int32, domain.size(domain.clique(e.clique)))
            expected[f"own_counts{i}"] = (np.int64, e.groups)
        elif not _is_of(e, document.measurements):
            raise ValueError("evidence of another measurement")
    for kind, cliques in (("potentials", document.potentials), ("off_tree", document.off_tree)):
        for i, clique in enumerate(cliques):
            expected[f"{kind}{i}"] = (np.float64, math.prod(sizes[name] for name in domain.clique(clique)))
    found = {name: (array.dtype.type, array.size) for name, array in arrays.items()}
    if found != expected:
        raise ValueError("other arrays than were packed")


def _is_of(evidence: _Evidence, measurements: Sequence[_Measurement]) -> bool:
    if evidence.of is None or not 0 <= evidence.of < len(measurements):
        return False
    source = measurements[evidence.of]
    return (source.clique, source.groups, source.axes) == (evidence.clique, evidence.groups, evidence.axes)


class _Belief(FrozenModel):
    clique: tuple[str, ...]
    groups: int
    axes: tuple[int, ...]
    variance: float


class _Change(FrozenModel):
    clique: tuple[str, ...]
    square: float
    noise: float
    rows: float
    degrees: int


class _Past(FrozenModel):
    format: Literal["ppsyn-past-1"]
    beliefs: tuple[_Belief, ...]
    total: float
    total_variance: float
    changes: tuple[_Change, ...]
    value_groups: tuple[_Compressed, ...]


def pack_past(past: Past) -> bytes:
    """What earlier releases tell, as a file. Equal inputs give equal bytes."""
    document = _Past(
        format="ppsyn-past-1",
        beliefs=tuple(
            _Belief(clique=b.clique, groups=b.partition.count, axes=b.partition.axes, variance=b.variance)
            for b in past.beliefs
        ),
        total=past.total,
        total_variance=past.total_variance,
        changes=tuple(_Change.model_validate(asdict(change)) for change in past.changes),
        value_groups=tuple(
            _Compressed(attribute=name, groups=groups.count) for name, groups in past.value_groups.items()
        ),
    )
    arrays: dict[str, NDArray[np.generic]] = {
        _DOCUMENT: np.frombuffer(document.model_dump_json().encode(), np.uint8),
    }
    for index, belief in enumerate(past.beliefs):
        arrays[f"groups{index}"], arrays[f"counts{index}"] = belief.partition.groups, belief.counts
    for index, groups in enumerate(past.value_groups.values()):
        arrays[f"value_groups{index}"] = groups.groups
    return pack_arrays(arrays)


def unpack_past(data: bytes, domain: Domain) -> Past:
    """What was packed.

    Raises:
        ConfigError: If the file holds something else.
    """
    broken = ValidationError, KeyError, ValueError, TypeError, AttributeError, PPSynError
    rule = "Expected what earlier releases tell of this table"
    with translated(broken, to=ConfigError, message=lambda error: f"{rule}: {type(error).__name__}."):
        return _restore_past(unpack_arrays(data), domain)


def _restore_past(arrays: Arrays, domain: Domain) -> Past:
    document = _Past.model_validate_json(arrays[_DOCUMENT].tobytes())
    expected: dict[str, tuple[type[np.generic], int]] = {_DOCUMENT: (np.uint8, arrays[_DOCUMENT].size)}
    for i, b in enumerate(document.beliefs):
        expected[f"groups{i}"] = (np.int32, domain.size(domain.clique(b.clique)))
        expected[f"counts{i}"] = (np.float64, b.groups)
        if domain.clique(b.clique) != b.clique or not (math.isfinite(b.variance) and b.variance > 0):
            raise ValueError("no belief about this table")
    for i, f in enumerate(document.value_groups):
        expected[f"value_groups{i}"] = (np.int32, domain[f.attribute].size)
    if {name: (array.dtype.type, array.size) for name, array in arrays.items()} != expected:
        raise ValueError("other arrays than were packed")
    beliefs = tuple(
        Belief(
            b.clique,
            Partition(_ints(arrays[f"groups{i}"]), b.groups, b.axes),
            _floats(arrays[f"counts{i}"]),
            b.variance,
        )
        for i, b in enumerate(document.beliefs)
    )
    changes = tuple(Change(c.clique, c.square, c.noise, c.rows, c.degrees) for c in document.changes)
    value_groups = {
        f.attribute: Partition(_ints(arrays[f"value_groups{i}"]), f.groups) for i, f in enumerate(document.value_groups)
    }
    return Past(beliefs, document.total, document.total_variance, changes, value_groups)


def _ints(array: NDArray[np.generic]) -> Codes:
    return array.astype(np.int32)


def _floats(array: NDArray[np.generic]) -> Floats:
    return array.astype(np.float64)


def unpack_told(data: bytes, table: TableSchema) -> Earlier:
    """Of a packed model, what a later release may learn from it; the model itself is not made again.

    Raises:
        ConfigError: If the file holds something else.
    """
    broken = ValidationError, KeyError, ValueError, TypeError, AttributeError, PPSynError
    rule = "Expected a fitted model of this table"
    with translated(broken, to=ConfigError, message=lambda error: f"{rule}: {type(error).__name__}."):
        arrays = unpack_arrays(data)
        document = _Document.model_validate_json(arrays[_DOCUMENT].tobytes())
        _check_arrays(arrays, document, domain_of(table))
        value_groups = {
            c.attribute: Partition(_ints(arrays[f"compression{i}"]), c.groups)
            for i, c in enumerate(document.compressed)
        }
        return Earlier(table, _drawn(arrays, document), value_groups)


def _drawn(arrays: Arrays, document: _Document) -> tuple[Measurement, ...]:
    """The answers as they were drawn."""
    return tuple(
        _measurement(m, arrays[f"groups{i}"], arrays[f"counts{i}"]) for i, m in enumerate(document.measurements)
    )


def pack_arrays(arrays: Arrays) -> bytes:
    """Arrays as an npz file, without pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpack_arrays(data: bytes) -> dict[str, NDArray[np.generic]]:
    """The arrays of an npz file as `pack_arrays` makes them: stored as they are, so that none is larger than the file.

    Raises:
        ValueError: If it is not one.
    """
    broken = BadZipFile, OSError, EOFError, RuntimeError  # NotImplementedError is a RuntimeError
    with (
        translated(broken, to=ValueError, message=lambda error: f"not an npz file ({type(error).__name__})"),
        ZipFile(io.BytesIO(data)) as file,
    ):
        found = file.infolist()
        if len({info.filename for info in found}) < len(found):
            raise ValueError("an array twice")
        if sum(info.file_size for info in found) > len(data):
            raise ValueError("arrays that share bytes")
        return {info.filename.removesuffix(".npy"): _array(file, info) for info in found}


def _array(file: ZipFile, info: ZipInfo) -> NDArray[np.generic]:
    """An array of the file, of which the header says as many bytes as there are."""
    if info.compress_type != ZIP_STORED or info.file_size != info.compress_size:
        raise ValueError("an array that is compressed")
    data = file.read(info)
    header = _HEADER.match(data)
    if header is None:
        raise ValueError("an array of another format")
    dtype, shape = np.dtype(header["dtype"].decode()), tuple(map(int, header["shape"].replace(b",", b" ").split()))
    if math.prod(shape) * dtype.itemsize != len(data) - header.end():
        raise ValueError("an array of another shape than it has bytes for")
    return np.frombuffer(data, dtype, offset=header.end()).reshape(shape)
