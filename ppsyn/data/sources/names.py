"""The columns that the private table must have. Names are public."""

from collections.abc import Sequence

from ppsyn.errors import SchemaError, SourceError
from ppsyn.schemas.config import PersonUnit
from ppsyn.schemas.table import TableSchema


def needed(schema: TableSchema, person: PersonUnit | None) -> list[str]:
    """The columns to read: those of the schema, then the person column.

    Raises:
        SchemaError: If the person column is not among those left out of the release.
    """
    names = [column.name for column in schema.columns]
    if person is None:
        return names
    if person.column not in schema.excluded:
        raise SchemaError(
            f"Expected the person column {person.column!r} in `excluded` of the schema {schema.name!r}: "
            "it is read, but never released."
        )
    return [*names, person.column]


def check_names(found: Sequence[str], fragment: str, schema: TableSchema) -> None:
    """Refuse a fragment whose columns are not those of the schema and of `excluded`, each once.

    Privacy:
        A name that the schema does not have is told only once all of the schema's
        are there. A file without a header thus never has its first row told.

    Raises:
        SourceError: It names the fragment and the column.
    """
    expected = [*(column.name for column in schema.columns), *schema.excluded]
    for name in expected:
        if name not in found:
            advice = " or take it out of `excluded`" if name in schema.excluded else ""
            raise SourceError(f"Expected a column {name!r} in {fragment}. Add it there{advice}.")
    for name in found:
        if name not in expected:
            raise SourceError(f"Expected no column {name!r} in {fragment}. Add it to `columns` or to `excluded`.")
        if found.count(name) > 1:
            raise SourceError(f"Expected the column {name!r} once in {fragment}.")
