"""Where a command finds the stores and releases that it is told of."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from typing_extensions import override

from ppsyn.schemas.texts import check_path

if TYPE_CHECKING:
    from ppsyn.schemas.locations import Location
    from ppsyn.storage import Store

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
    for option in (
        click.option("--endpoint", envvar="AWS_ENDPOINT_URL", help="An S3 server other than Amazon's."),
        click.option("--region", default="us-east-1", show_default=True, help="The region of a bucket."),
        click.option(
            "--credentials", default="AWS", show_default=True,
            help="NAME of the environment's NAME_ACCESS_KEY_ID and NAME_SECRET_ACCESS_KEY.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def store_options(function: F) -> F:
    """Where accounts and runs are kept."""
    help_text = "Where accounts and runs are kept: a folder or s3://bucket/prefix."
    option = click.option("--store", default="out", envvar="PPSYN_STORE", show_default=True, help=help_text)
    return option(bucket_options(function))


def release_file(function: F) -> F:
    """The release file, which names all locations of a release, each with its keys."""
    return click.argument("file", required=False, type=click.Path(dir_okay=False))(function)


def locations_in(file: str, settings: tuple[str, ...] = ()) -> "tuple[Store, list[Location]]":
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


def open_release_at(address: str, **location: Any) -> "Store":
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


def open_store_at(store: str, endpoint: str | None, region: str, credentials: str) -> "Store":
    """The store at a location that the command line names.

    Raises:
        ConfigError: If there is no such location.
    """
    from ppsyn.errors import ConfigError
    from ppsyn.flows.preflight import location_at
    from ppsyn.storage import open_store

    location = location_at(store, endpoint=endpoint, region=region, credentials=credentials)
    if location.is_local and not Path(store).is_dir():
        raise ConfigError(f"There is no folder {store}.")
    return open_store(location)
