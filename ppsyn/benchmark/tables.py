"""Benchmark tables: integer codes in `NAME.csv.gz` beside domain sizes in `NAME-domain.json`; and the bundled one."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import PositiveInt, TypeAdapter, ValidationError

from ppsyn import schemas
from ppsyn.data.encoding import EncodedTable, encode
from ppsyn.domain import Attribute, Clique, Domain
from ppsyn.errors import ConfigError, SchemaError, translated
from ppsyn.evaluation.metrics import fitting_cliques
from ppsyn.schemas.table import TableSchema

BUNDLED = "adult"

_ROOT = Path(__file__).resolve().parents[2]
_SIZES = TypeAdapter(dict[str, PositiveInt])
_CODES, _DOMAIN = ".csv.gz", "-domain.json"


@lru_cache(maxsize=4)
def open_table(folder: str | None, name: str) -> EncodedTable:
    """The table called `name` in `folder`, or the bundled one; read once.

    Raises:
        ConfigError: If there is none, or its files do not hold one.
    """
    known = names_in(folder)
    if name not in known:
        place = "without --data-dir" if folder is None else f"in {folder}"
        listed = ", ".join(known) or f"none; a table is NAME{_CODES} and NAME{_DOMAIN}"
        raise ConfigError(f"There is no table {name!r} {place}. Tables there: {listed}.")
    return _bundled() if folder is None else read_table(Path(folder), name)


def names_in(folder: str | None) -> tuple[str, ...]:
    """The tables that there are in `folder`, or are bundled."""
    if folder is None:
        return (BUNDLED,)
    path = Path(folder)
    if not path.is_dir():
        raise ConfigError(f"Expected a folder at {folder}, got none. Check --data-dir.")
    found = (file.name.removesuffix(_CODES) for file in path.glob(f"*{_CODES}"))
    return tuple(sorted(name for name in found if (path / f"{name}{_DOMAIN}").is_file()))


def _bundled() -> EncodedTable:
    file = _ROOT / "examples" / "adult" / "adult.parquet"
    if not file.is_file():
        raise ConfigError("The Adult table is bundled with the sources only; give --data-dir.")
    schema = TableSchema.load(Path(schemas.__path__[0]) / "tables" / "adult.yaml")
    return encode(pd.read_parquet(file), _without_rules(schema))


def _without_rules(schema: TableSchema) -> TableSchema:
    """The schema as other mechanisms know it: every column is an attribute, and no rule is known."""
    columns = tuple(column.model_copy(update={"follows": None}) for column in schema.columns)
    return TableSchema(name=schema.name, columns=columns, excluded=schema.excluded)


def read_table(folder: Path, name: str) -> EncodedTable:
    """The table called `name` in `folder`.

    Raises:
        ConfigError: If the files do not hold a table of codes.
    """
    broken, rule = (OSError, EOFError, ValueError, ValidationError), f"Expected a readable table {name!r} in {folder}"
    with translated(broken, to=ConfigError, message=lambda error: f"{rule}: {type(error).__name__}."):
        sizes = _SIZES.validate_json((folder / f"{name}{_DOMAIN}").read_bytes())
        frame = pd.read_csv(folder / f"{name}{_CODES}")
    domain = Domain(tuple(Attribute(attribute, size) for attribute, size in sizes.items()))
    for attribute in domain.names:
        if attribute not in frame or frame[attribute].dtype.kind not in "iu":
            raise ConfigError(f"Expected {name}{_CODES} to have a column {attribute!r} of whole numbers.")
    with translated(SchemaError, to=ConfigError, message=lambda error: f"{name}{_CODES}: {error}"):
        return EncodedTable(domain, {attribute: frame[attribute].to_numpy(np.int32) for attribute in sizes})


def write_table(folder: Path, name: str, table: EncodedTable) -> None:
    """Write a table in the form that `read_table` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {attribute.name: attribute.size for attribute in table.domain.attributes}
    (folder / f"{name}{_DOMAIN}").write_text(json.dumps(sizes), encoding="utf-8")
    columns = {attribute: table.columns[attribute] for attribute in table.domain.names}
    pd.DataFrame(columns).to_csv(folder / f"{name}{_CODES}", index=False)


def digest_of(private_table: EncodedTable) -> str:
    """By which a table is known again. Private."""
    hashed = hashlib.sha256()
    for attribute in private_table.domain.attributes:
        hashed.update(f"{attribute.name!r} {attribute.size} {attribute.is_ordered}\n".encode())
        hashed.update(private_table.columns[attribute.name].tobytes())
    return hashed.hexdigest()[:16]


def random_workload(
    domain: Domain, degree: int = 3, count: int = 64, max_cells: int = 10_000, seed: int = 0
) -> tuple[Clique, ...]:
    """`count` marginals drawn from all of `degree` attributes with at most `max_cells` cells.

    Raises:
        ConfigError: If there is none.
    """
    fits = fitting_cliques(domain, degree, max_cells)
    if not fits:
        raise ConfigError(f"Expected a marginal of degree={degree} with at most {max_cells:,} cells, got none.")
    chosen = np.random.default_rng(seed).choice(len(fits), min(count, len(fits)), replace=False)
    return tuple(fits[int(index)] for index in chosen.tolist())
