"""The options and arguments that name a store, a release or a table, and how they are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import click
from typing_extensions import override

from ppsyn.schemas.texts import check_path

if TYPE_CHECKING:
    from ppsyn.schemas.config import PersonUnit
    from ppsyn.schemas.locations import Location
    from ppsyn.schemas.release import CsvSource, ParquetSource, Source
    from ppsyn.storage import Store

_RELEASE_FILES = (".yaml", ".yml")

_STORE = click.option(
    "--store",
    default="out",
    envvar="PPSYN_STORE",
    show_default=True,
    help="Where accounts and runs are kept: a folder or s3://bucket/prefix.",
)
_ENDPOINT = click.option("--endpoint", envvar="AWS_ENDPOINT_URL", help="An S3 server other than Amazon's.")
_REGION = click.option("--region", default="us-east-1", show_default=True, help="The region of a bucket.")
_CREDENTIALS = click.option(
    "--credentials",
    default="AWS",
    show_default=True,
    help="NAME of the environment's NAME_ACCESS_KEY_ID and NAME_SECRET_ACCESS_KEY.",
)

_PUBLISHED_FOLDERS = {"releases", "staging"}
"""Folders of a store whose contents are published."""

F = TypeVar("F", bound=Callable[..., Any])


class FilePath(click.Path):
    """The path of a file, which can be one."""

    def __init__(self, path_type: type[str] | type[Path] = str) -> None:
        """As text, or as a path."""
        super().__init__(dir_okay=False, path_type=path_type)

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            check_path(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)


def bucket_options(function: F) -> F:
    """How to reach a bucket."""
    return _ENDPOINT(_REGION(_CREDENTIALS(function)))


def store_options(function: F) -> F:
    """Where accounts and runs are kept."""
    return _STORE(bucket_options(function))


def release_file(function: F) -> F:
    """The release file, which names all locations of a release, each with its keys."""
    return click.argument("file", required=False, type=click.Path(dir_okay=False))(function)


def locations_in(file: str, settings: tuple[str, ...] = ()) -> tuple[Store, list[Location]]:
    """The locations that a release file names: the store with the accounts; and all, each once.

    Raises:
        PPSynError: If the file will not do, or the store cannot be used.
    """
    from ppsyn.flows.preflight import read_stores
    from ppsyn.storage import open_store

    stores = read_stores(file, settings)
    locations = {
        location.url: location for location in (stores.root, stores.private, stores.releases) if location is not None
    }
    return open_store(stores.root), list(locations.values())


def release_locations_in(file: str) -> tuple[Store, Location]:
    """The store with the accounts, and where releases are, as a release file names them.

    Raises:
        PPSynError: If the file will not do, or the store cannot be used.
    """
    from ppsyn.flows.preflight import read_stores
    from ppsyn.storage import open_store

    stores = read_stores(file)
    return open_store(stores.root), stores.releases or stores.root


def open_release_at(address: str, **location: Any) -> Store:
    """A published release; `.../DATASET/latest` is the one that was published last.

    Raises:
        ConfigError: If there is no such location or no latest release.
    """
    from ppsyn.releases.reader import latest_in

    above, _, last = address.partition("?")[0].rstrip("/").rpartition("/")
    if last != "latest":
        return open_store_at(address, **location)
    rest = address.partition("?")[2]
    return latest_in(open_store_at(f"{above or '.'}?{rest}" if rest else above or ".", **location))


def open_store_at(store: str, endpoint: str | None, region: str, credentials: str) -> Store:
    """The store at a location that the command line names.

    Raises:
        ConfigError: If there is no such location.
    """
    from ppsyn.errors import ConfigError
    from ppsyn.flows.preflight import location_at
    from ppsyn.storage import open_store

    location = location_at(store, endpoint=endpoint, region=region, credentials=credentials)
    if location.is_local and not Path(store).is_dir():
        raise ConfigError(f"Expected a folder at {store}, got none. Check the path.")
    return open_store(location)


def check_unpublished(path: Path, option: str, why: str) -> None:
    """Check that a file or folder to write would lie outside of all releases.

    Args:
        path: Where it would be.
        option: What names it on the command line.
        why: Why it may not lie in a release.

    Raises:
        ConfigError: If it would not.
    """
    from ppsyn.errors import ConfigError
    from ppsyn.releases.layout import MANIFEST

    full = path.resolve()
    for folder in (full, *full.parents):
        if folder.name in _PUBLISHED_FOLDERS or (folder / MANIFEST).exists():
            raise ConfigError(
                f"Expected {option}={path} to lie outside of releases: {why}, and {folder} is published. "
                "Name another place."
            )


def short_path(url: str) -> str:
    """An address; one below the current folder as a relative path."""
    path = Path(url)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else url


@dataclass(frozen=True, slots=True)
class PrivateTable:
    """A table, and the unit of privacy if it is known."""

    source: Source
    person: PersonUnit | None = None


def table_at(address: str, delimiter: str, **location: Any) -> PrivateTable:
    """The table at an address, or the one that the release file there names.

    Raises:
        SchemaError: If the release file is at fault.
        ConfigError: If there can be no such location.
        SourceError: If nothing of a known kind is there.
    """
    from ppsyn.errors import SchemaError, translated
    from ppsyn.schemas.files import SchemaFileError
    from ppsyn.schemas.release import load_release

    if PurePosixPath(address).suffix.lower() not in _RELEASE_FILES:
        return PrivateTable(files_at(address, delimiter, **location))
    with translated(SchemaFileError, to=SchemaError, message=str):
        config = load_release(address)
    return PrivateTable(config.source, config.privacy.person)


def files_at(address: str, delimiter: str, **location: Any) -> CsvSource | ParquetSource:
    """The files at an address: by the ending of its name, or by what is in the folder.

    Raises:
        ConfigError: If there can be no such location.
        SourceError: If no such files are there, or files of both kinds.
    """
    from ppsyn.errors import ConfigError, SourceError
    from ppsyn.flows.preflight import location_at
    from ppsyn.schemas.release import CsvSource, ParquetSource

    if len(delimiter) != 1:
        raise ConfigError("Expected the delimiter to be one character. For a tab, write '\\t'.")
    path = location_at(address, **location).resolved_against(Path.cwd())
    csv, parquet = CsvSource(kind="csv", path=path, delimiter=delimiter), ParquetSource(kind="parquet", path=path)
    kinds = {".csv": csv, ".parquet": parquet}
    named = kinds.get(PurePosixPath(address).suffix.lower())
    if named is not None:
        return named
    found = [source for source in (csv, parquet) if _has_files(source)]
    if len(found) == 1:
        return found[0]
    kinds_found = "both kinds" if found else "neither kind"
    raise SourceError(
        f"Expected {address} to be a .csv or .parquet file, a folder of one kind of them, or a release file; "
        f"it has {kinds_found}."
    )


def _has_files(source: CsvSource | ParquetSource) -> bool:
    """Whether a folder holds files of this kind; a single file without an ending is of none."""
    from ppsyn.data.sources.files import find_fragments
    from ppsyn.errors import SourceError

    if source.path.is_local and not Path(source.path.url).is_dir():
        return False
    try:
        return bool(find_fragments(source))
    except SourceError:
        return False
