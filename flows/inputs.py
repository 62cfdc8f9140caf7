"""The files that a release is told of, and whether they will do."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module

from ppsyn.errors import SchemaError
from schemas.files import SchemaFileError
from schemas.release import ReleaseConfig, load_release
from schemas.table import TableSchema


def read_inputs(file: str, settings: tuple[str, ...]) -> tuple[ReleaseConfig, TableSchema]:
    """The release file and the schema it names.

    Raises:
        SchemaError: With one sentence per fault of either.
    """
    try:
        config = load_release(file, settings)
        return config, TableSchema.load(config.table)
    except SchemaFileError as error:
        problem = str(error)
    raise SchemaError(problem)


def prepare(config: ReleaseConfig, table: TableSchema, *, is_new: bool) -> None:
    """Import what a release needs; and see, before Prefect is told, whether a new one can be done at all.

    Raises:
        PPSynError: If it cannot: the settings, the names of the columns, or what is left in the account.
    """
    with _without_collecting():
        import_module("flows.release")
        if is_new:
            records = import_module("ppsyn.runs.records")
            records.check_possible(config, table)
        import_module("great_expectations")


@contextmanager
def _without_collecting() -> Generator[None]:
    """Look for no garbage while importing, nor ever again among what was imported: there is none, and it takes long."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
