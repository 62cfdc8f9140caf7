"""A release on disk: a folder with JSON for what is said and an npz for what is counted. No pickle."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, ValidationError

from ppsyn.discretize import domain_of
from ppsyn.dp.ledger import Ledger, Spend
from ppsyn.errors import ConfigError, PPSynError
from ppsyn.model.graphical import calibrated
from ppsyn.model.program import Measurement
from ppsyn.partition.cells import Partition
from ppsyn.synthesis import Synthesis
from ppsyn.synthesizer import Round
from schemas.base import FrozenModel
from schemas.config import AlgorithmConfig, PrivacyConfig
from schemas.table import TableSchema

FORMAT = "ppsyn-synthesis-1"

_JSON, _ARRAYS = "synthesis.json", "arrays.npz"

Rational = Annotated[Fraction, PlainSerializer(str, return_type=str, when_used="json")]


class _Spend(FrozenModel):
    kind: Literal["measure", "select"]
    rho: Rational
    digest: str
    clique: tuple[str, ...]


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
    format: Literal["ppsyn-synthesis-1"]
    table: TableSchema
    privacy: PrivacyConfig
    config: AlgorithmConfig
    budget: Rational
    spends: tuple[_Spend, ...]
    measurements: tuple[_Measurement, ...]
    rounds: tuple[_Round, ...]
    potentials: tuple[tuple[str, ...], ...]
    total: float
    step: float
    seed: int


def save(synthesis: Synthesis, folder: Path | str) -> None:
    """Write the release into a new or empty folder.

    Raises:
        ConfigError: If the folder has something in it already.
    """
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"Expected folder={path} to be new or empty.")
    path.mkdir(parents=True, exist_ok=True)
    np.savez(path / _ARRAYS, allow_pickle=False, **_arrays(synthesis))
    (path / _JSON).write_text(_document(synthesis).model_dump_json(indent=2) + "\n", encoding="utf-8")


def _document(synthesis: Synthesis) -> _Document:
    return _Document(
        format=FORMAT,
        table=synthesis.schema,
        privacy=synthesis.privacy,
        config=synthesis.config,
        budget=synthesis.ledger.total,
        spends=tuple(_Spend(kind=s.kind, rho=s.rho, digest=s.digest, clique=s.clique) for s in synthesis.ledger.spends),
        measurements=tuple(
            _Measurement(clique=m.clique, groups=m.partition.count, sigma=m.sigma, deviation=m.deviation)
            for m in synthesis.measurements
        ),
        rounds=tuple(
            _Round(clique=r.clique, groups=r.groups, sigma=r.sigma, surprise=r.surprise, noise=r.noise)
            for r in synthesis.rounds
        ),
        potentials=tuple(synthesis.model.potentials),
        total=synthesis.model.total,
        step=synthesis.model.step,
        seed=synthesis.seed,
    )


def _arrays(synthesis: Synthesis) -> dict[str, NDArray[np.generic]]:
    arrays: dict[str, NDArray[np.generic]] = {}
    for index, measurement in enumerate(synthesis.measurements):
        arrays[f"groups{index}"] = measurement.partition.groups
        arrays[f"counts{index}"] = measurement.noisy_counts
        if measurement.denoised is not None:
            arrays[f"denoised{index}"] = measurement.denoised
    for index, table in enumerate(synthesis.model.potentials.values()):
        arrays[f"potentials{index}"] = table
    return arrays


def load(folder: Path | str) -> Synthesis:
    """Read a release; its model and its rows come back bit for bit.

    Raises:
        ConfigError: If the folder does not hold a release.
    """
    path = Path(folder)
    try:
        document = _Document.model_validate_json((path / _JSON).read_text(encoding="utf-8"))
        with np.load(path / _ARRAYS, allow_pickle=False) as arrays:
            return _restore(document, {name: arrays[name] for name in arrays.files})
    except (OSError, ValidationError, BadZipFile, ValueError, KeyError, PPSynError) as error:
        raise ConfigError(f"Expected folder={path} to hold a release: {type(error).__name__}.") from error


def _restore(document: _Document, arrays: dict[str, NDArray[np.generic]]) -> Synthesis:
    domain = domain_of(document.table)
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
    return Synthesis(
        schema=document.table,
        privacy=document.privacy,
        config=document.config,
        ledger=Ledger(document.budget, tuple(Spend(s.kind, s.rho, s.digest, s.clique) for s in document.spends)),
        measurements=measurements,
        rounds=tuple(Round(r.clique, r.groups, r.sigma, r.surprise, r.noise) for r in document.rounds),
        model=calibrated(domain, potentials, document.total, document.step),
        seed=document.seed,
    )
