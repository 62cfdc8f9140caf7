"""A fitted model with what it was fitted to, as one npz file: JSON for what is said, arrays for what is counted."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray
from pydantic import ValidationError

from ppsyn.domain import Domain
from ppsyn.errors import ConfigError, PPSynError
from ppsyn.model.graphical import GraphicalModel, calibrated
from ppsyn.model.program import Measurement
from ppsyn.partition.cells import Partition
from ppsyn.synthesizer import Round
from schemas.base import FrozenModel

Arrays = Mapping[str, NDArray[np.generic]]

_DOCUMENT = "document"


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What the loop has learned. The same bits come back from `pack` and `unpack`.

    Attributes:
        notes: Whatever else goes with it, as text.
    """

    measurements: tuple[Measurement, ...]
    rounds: tuple[Round, ...]
    model: GraphicalModel
    notes: Mapping[str, str]


class _Measurement(FrozenModel):
    clique: tuple[str, ...]
    groups: int
    sigma: float
    deviation: float | None


class _Round(FrozenModel):
    clique: tuple[str, ...]
    groups: int
    sigma: float
    surprise: float
    noise: float


class _Document(FrozenModel):
    measurements: tuple[_Measurement, ...]
    rounds: tuple[_Round, ...]
    potentials: tuple[tuple[str, ...], ...]
    total: float
    step: float
    notes: dict[str, str]


def pack(fitted: Fitted) -> bytes:
    """The file. Equal inputs give equal bytes; there is no pickle in it."""
    model = fitted.model
    document = _Document(
        measurements=tuple(
            _Measurement(clique=m.clique, groups=m.partition.count, sigma=m.sigma, deviation=m.deviation)
            for m in fitted.measurements
        ),
        rounds=tuple(
            _Round(clique=r.clique, groups=r.groups, sigma=r.sigma, surprise=r.surprise, noise=r.noise)
            for r in fitted.rounds
        ),
        potentials=tuple(model.potentials),
        total=model.total,
        step=model.step,
        notes=dict(fitted.notes),
    )
    arrays: dict[str, NDArray[np.generic]] = {
        _DOCUMENT: np.frombuffer(document.model_dump_json().encode(), np.uint8),
    }
    for index, measurement in enumerate(fitted.measurements):
        arrays[f"groups{index}"] = measurement.partition.groups
        arrays[f"counts{index}"] = measurement.noisy_counts
        if measurement.denoised is not None:
            arrays[f"denoised{index}"] = measurement.denoised
    for index, table in enumerate(model.potentials.values()):
        arrays[f"potentials{index}"] = table
    return pack_arrays(arrays)


def unpack(data: bytes, domain: Domain) -> Fitted:
    """What was packed.

    Raises:
        ConfigError: If the file holds something else.
    """
    try:
        return _restore(unpack_arrays(data), domain)
    except (ValidationError, KeyError, ValueError, TypeError, AttributeError, PPSynError) as error:
        problem = f"Expected a fitted model of this table: {type(error).__name__}."
    raise ConfigError(problem)


def _restore(arrays: Arrays, domain: Domain) -> Fitted:
    document = _Document.model_validate_json(arrays[_DOCUMENT].tobytes())
    _check_arrays(arrays, document, domain)
    measurements = tuple(
        Measurement(
            m.clique,
            Partition(arrays[f"groups{i}"].astype(np.int32), m.groups),
            arrays[f"counts{i}"].astype(np.int64),
            m.sigma,
            arrays[f"denoised{i}"].astype(np.float64) if f"denoised{i}" in arrays else None,
            m.deviation,
        )
        for i, m in enumerate(document.measurements)
    )
    potentials = {
        clique: arrays[f"potentials{i}"].astype(np.float64).reshape(domain.shape(clique))
        for i, clique in enumerate(document.potentials)
    }
    rounds = tuple(Round(r.clique, r.groups, r.sigma, r.surprise, r.noise) for r in document.rounds)
    return Fitted(measurements, rounds, calibrated(domain, potentials, document.total, document.step), document.notes)


def _check_arrays(arrays: Arrays, document: _Document, domain: Domain) -> None:
    """Refuse arrays that are missing, too many, or of another shape or type than was packed."""
    expected: dict[str, tuple[type[np.generic], int]] = {_DOCUMENT: (np.uint8, arrays[_DOCUMENT].size)}
    for i, m in enumerate(document.measurements):
        expected[f"groups{i}"] = (np.int32, domain.size(domain.clique(m.clique)))
        expected[f"counts{i}"] = (np.int64, m.groups)
        if m.deviation is not None:
            expected[f"denoised{i}"] = (np.float64, m.groups)
    for i, clique in enumerate(document.potentials):
        expected[f"potentials{i}"] = (np.float64, domain.size(domain.clique(clique)))
    found = {name: (array.dtype.type, array.size) for name, array in arrays.items()}
    if found != expected:
        raise ValueError("other arrays than were packed")


def pack_arrays(arrays: Arrays) -> bytes:
    """Arrays as an npz file, without pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpack_arrays(data: bytes) -> dict[str, NDArray[np.generic]]:
    """The arrays of an npz file.

    Raises:
        ValueError: If it is not one.
    """
    try:
        with NpzFile(io.BytesIO(data), allow_pickle=False) as arrays:
            names = arrays.files
            if len(set(names)) == len(names):
                return {name: arrays[name] for name in names}
            problem = "an array twice"
    except (BadZipFile, OSError, EOFError, RuntimeError, MemoryError) as error:  # NotImplementedError is a RuntimeError
        problem = f"not an npz file ({type(error).__name__})"
    raise ValueError(problem)
