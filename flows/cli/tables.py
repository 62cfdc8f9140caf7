"""The private table that a command is told of: files, a bucket, or what a release file names."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ppsyn.data.sources.files import find_fragments
from ppsyn.errors import ConfigError, SchemaError, SourceError, translated
from ppsyn.flows.preflight import location_at
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.files import SchemaFileError
from ppsyn.schemas.release import CsvSource, ParquetSource, Source, load_release

_RELEASE_FILES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Table:
    """A table, and whose rows it holds if that is said."""

    source: Source
    person: PersonUnit | None = None


def table_at(address: str, delimiter: str, **way: Any) -> Table:
    """The table at an address, or the one that the release file there names.

    Raises:
        SchemaError: If the release file is at fault.
        ConfigError: If there can be no such location.
        SourceError: If nothing of a known kind is there.
    """
    if PurePosixPath(address).suffix.lower() not in _RELEASE_FILES:
        return Table(files_at(address, delimiter, **way))
    with translated(SchemaFileError, to=SchemaError, message=str):
        config = load_release(address)
    return Table(config.source, config.privacy.person)


def files_at(address: str, delimiter: str, **way: Any) -> CsvSource | ParquetSource:
    """The files at an address: by the ending of its name, or by what is in the folder.

    Raises:
        ConfigError: If there can be no such location.
        SourceError: If no such files are there, or files of both kinds.
    """
    if len(delimiter) != 1:
        raise ConfigError("Expected the delimiter to be one character.")
    path = location_at(address, **way).resolved_against(Path.cwd())
    csv, parquet = CsvSource(kind="csv", path=path, delimiter=delimiter), ParquetSource(kind="parquet", path=path)
    kinds = {".csv": csv, ".parquet": parquet}
    named = kinds.get(PurePosixPath(address).suffix.lower())
    if named is not None:
        return named
    found = [source for source in (csv, parquet) if _has_files(source)]
    if len(found) == 1:
        return found[0]
    told = "both kinds" if found else "neither kind"
    raise SourceError(
        f"Expected {address} to be a .csv or .parquet file, a folder of one kind of them, or a release file; "
        f"it has {told}."
    )


def _has_files(source: CsvSource | ParquetSource) -> bool:
    """Whether a folder holds files of this kind; a single file without an ending is of none."""
    if source.path.is_local and not Path(source.path.url).is_dir():
        return False
    try:
        return bool(find_fragments(source))
    except SourceError:
        return False
