"""Read the files that a release names, and check them before anything starts."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module

import click
from pydantic import ValidationError

from ppsyn.errors import ConfigError, SchemaError, translated
from ppsyn.schemas.files import SchemaFileError, rule_of
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import ReleaseConfig, StoresConfig, load_release
from ppsyn.schemas.table import TableSchema


def read_inputs(file: str, settings: tuple[str, ...]) -> tuple[ReleaseConfig, TableSchema]:
    """The release file and the schema it names.

    Raises:
        SchemaError: With one sentence per fault of either.
    """
    config = read_release(file, settings)
    return config, read_schema(config.table)


def read_release(file: str, settings: tuple[str, ...] = ()) -> ReleaseConfig:
    """The release file alone.

    Raises:
        SchemaError: With one sentence per fault.
    """
    with translated(SchemaFileError, to=SchemaError, message=str):
        return load_release(file, settings)


def read_stores(file: str, settings: tuple[str, ...] = ()) -> StoresConfig:
    """The locations that a release file names.

    Raises:
        SchemaError: With one sentence per fault.
    """
    return read_release(file, settings).stores


def read_schema(file: str) -> TableSchema:
    """The schema in a file.

    Raises:
        SchemaError: With one sentence per fault.
    """
    with translated(SchemaFileError, to=SchemaError, message=str):
        return TableSchema.load(file)


def location_at(url: str, *, endpoint: str | None, region: str, credentials: str) -> Location:
    """A location that the command line names: what its address does not say itself, options say for all of a command.

    Raises:
        ConfigError: If there can be no such location.
    """

    def describe(error: ValidationError) -> str:
        return " ".join(rule_of(fault, is_secret=True) for fault in error.errors())

    with translated(ValidationError, to=ConfigError, message=describe):
        location = Location.model_validate(url)
        options = {"endpoint": endpoint if location.is_s3 else None, "region": region, "credentials": credentials}
        said = location.model_dump(include=location.model_fields_set)
        return Location.model_validate({**options, **said})


def prepare(config: ReleaseConfig, table: TableSchema, *, resume: str | None, is_new: bool) -> bool:
    """Import what a release needs; and see, before Prefect starts, whether a new one can be done at all.

    Returns:
        Whether a new one is to begin.

    Raises:
        PPSynError: If it cannot: the settings, the names of the columns, or what is left in the account.
    """
    with _without_collecting():
        import_module("ppsyn.flows.release")
        from ppsyn.runs.preflight import check_possible, unfinished_runs  # noqa: PLC0415  # so that errors come first

        begins = resume is None and (is_new or next(unfinished_runs(config, table), None) is None)
        if begins:
            for sentence in check_possible(config, table):
                click.echo(sentence, err=True)
        import_module("great_expectations")
    return begins


@contextmanager
def _without_collecting() -> Generator[None]:
    """Look for no garbage while importing, nor ever again among what was imported: there is none, and it takes long."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
