"""The files that a release is told of."""

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
