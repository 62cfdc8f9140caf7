"""A synthesis on disk: a folder with JSON for what is said and an npz for what is counted. No pickle."""

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from ppsyn.code_version import code_version
from ppsyn.domain import domain_of
from ppsyn.errors import ConfigError, PPSynError, translated
from ppsyn.privacy.ledger import Ledger, Spend
from ppsyn.releases.layout import MANIFEST
from ppsyn.releases.reader import open_release
from ppsyn.schemas.config import AlgorithmConfig, PrivacyConfig
from ppsyn.schemas.files import other_format, read_whole
from ppsyn.schemas.limits import ARRAYS_BYTES, DOCUMENT_BYTES
from ppsyn.schemas.locations import Location
from ppsyn.schemas.run import CodeVersion
from ppsyn.schemas.table import TableSchema
from ppsyn.schemas.types import FrozenModel, Rational
from ppsyn.serialization import Fitted, pack, unpack
from ppsyn.storage import open_store
from ppsyn.synthesis import Synthesis

FORMAT = "ppsyn-synthesis-3"

_JSON, _MODEL = "synthesis.json", "model.npz"


class _Spend(FrozenModel):
    kind: Literal["measure", "select", "compare"]
    rho: Rational
    digest: str
    clique: tuple[str, ...]


class _Document(FrozenModel):
    format: Literal["ppsyn-synthesis-3"]
    code: CodeVersion
    table: TableSchema
    privacy: PrivacyConfig
    config: AlgorithmConfig
    budget: Rational
    spends: tuple[_Spend, ...]
    seed: int


def save(synthesis: Synthesis, folder: Path | str) -> None:
    """Write the synthesis into a new or empty folder.

    Raises:
        ConfigError: If the folder has something in it already.
    """
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"Expected folder={path} to be new or empty.")
    path.mkdir(parents=True, exist_ok=True)
    fitted = Fitted(synthesis.measurements, synthesis.evidence, synthesis.rounds, synthesis.model, {})
    (path / _MODEL).write_bytes(pack(fitted))
    (path / _JSON).write_text(_document(synthesis).model_dump_json(indent=2) + "\n", encoding="utf-8")


def _document(synthesis: Synthesis) -> _Document:
    return _Document(
        format=FORMAT,
        code=code_version(),
        table=synthesis.schema,
        privacy=synthesis.privacy,
        config=synthesis.config,
        budget=synthesis.ledger.total,
        spends=tuple(_Spend(kind=s.kind, rho=s.rho, digest=s.digest, clique=s.clique) for s in synthesis.ledger.spends),
        seed=synthesis.seed,
    )


def load(folder: Path | str) -> Synthesis:
    """Read a synthesis, saved or published; its model and its rows come back bit for bit.

    Raises:
        ConfigError: If the folder does not hold one.
    """
    path = Path(folder)
    if (path / MANIFEST).is_file():
        return open_release(open_store(Location(url=str(path.resolve()))))
    broken, rule = (OSError, ValidationError, ValueError, PPSynError), f"Expected folder={path} to hold a synthesis"
    with translated(broken, to=ConfigError, message=lambda error: f"{rule}: {type(error).__name__}."):
        data = read_whole(path / _JSON, DOCUMENT_BYTES)
    other = other_format(data, FORMAT)
    if other is not None:
        raise ConfigError(f"Cannot read folder={path}. {other}")
    with translated(broken, to=ConfigError, message=lambda error: f"{rule}: {type(error).__name__}."):
        return _restore(_Document.model_validate_json(data), read_whole(path / _MODEL, ARRAYS_BYTES))


def _restore(document: _Document, model: bytes) -> Synthesis:
    fitted = unpack(model, domain_of(document.table))
    ledger = Ledger(document.budget, tuple(Spend(s.kind, s.rho, s.digest, s.clique) for s in document.spends))
    return Synthesis.from_state(fitted, ledger, document.table, document.privacy, document.config, document.seed)
