"""A draft of a schema for a table whose rows nobody looks at."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pandas as pd
import pyarrow as pa

from ppsyn.data.encoding.parsing import Raw
from ppsyn.data.sources import names_of, read_frames
from ppsyn.data.sources.reading import columns_of
from ppsyn.errors import ConfigError, SourceError
from ppsyn.schema_draft.from_sample import propose
from ppsyn.schema_draft.from_types import Drafted, draft_column
from ppsyn.schema_draft.yaml_text import page
from ppsyn.schemas.locations import Location
from ppsyn.schemas.release import CsvSource, ParquetSource, Source, SqlSource

_NO_NAME = re.compile(r"\s*|[-+]?[0-9.,]+([eE][-+]?[0-9]+)?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?")
"""What is rather a value than a name: nothing, a number, a date."""


def draft_schema(source: Source, sample: CsvSource | ParquetSource | None = None) -> str:
    """A YAML draft of the schema of a table.

    Args:
        source: The private table.
        sample: A table that is public, whose values may be looked at.

    Privacy:
        Of the private table the names and types of its columns are read, and no row.

    Raises:
        SourceError: If the table has no header, or a table cannot be read.
        ConfigError: If the sample is the private table.
    """
    fields = columns_of(source)
    _check_names(fields.names, source)
    if sample is None:
        drafted = [draft_column(field) for field in fields]
        return page(_title(source), f"the names and types of the columns of {_name(source)} alone", drafted)
    _check_apart(source, sample)
    seen = _values(sample, fields.names)
    drafted = [_drafted(field, seen) for field in fields]
    return page(_title(source), f"values of {_name(sample)}, which is said to be public", drafted)


def _drafted(field: pa.Field, seen: dict[str, Raw]) -> Drafted:
    return propose(draft_column(field), seen[field.name]) if field.name in seen else draft_column(field)


def _values(sample: CsvSource | ParquetSource, names: Sequence[str]) -> dict[str, Raw]:
    """The columns of the public sample that the private table has too."""
    common = [name for name in names_of(sample) if name in names]
    if not common:
        raise SourceError(f"Expected {sample.path.url} to have a column of the table; it has none.")
    frames = list(read_frames(sample, common))
    if not frames:
        raise SourceError(f"Expected {sample.path.url} to have rows.")
    return {name: pd.concat([frame[name] for frame in frames], ignore_index=True) for name in common}


def _check_names(names: Sequence[str], source: Source) -> None:
    """Refuse a table without a header, whose first row would be taken for names. Nothing of it is told."""
    if not names or len(set(names)) != len(names) or any(_NO_NAME.fullmatch(name) for name in names):
        raise SourceError(
            f"Expected {_address(source)} to begin with the names of its columns: each once, none empty, none a "
            "number or a date. Give the table a header."
        )


def _check_apart(source: Source, sample: CsvSource | ParquetSource) -> None:
    if not isinstance(source, SqlSource) and _overlap(source.path, sample.path):
        raise ConfigError(f"Expected a public sample apart from the private table; {sample.path.url} is a part of it.")


def _overlap(private: Location, public: Location) -> bool:
    """Whether one place holds the other."""
    if private.is_local != public.is_local:
        return False
    if private.is_local:
        left, right = Path(private.url).resolve(), Path(public.url).resolve()
        return left.is_relative_to(right) or right.is_relative_to(left) or left.samefile(right)
    both = [PurePosixPath(location.url.rstrip("/")) for location in (private, public)]
    return both[0].is_relative_to(both[1]) or both[1].is_relative_to(both[0])


def _address(source: Source) -> str:
    return "the query" if isinstance(source, SqlSource) else source.path.url


def _name(source: Source) -> str:
    """What the table is called, without the way to it: a draft may be shown around."""
    return "the query" if isinstance(source, SqlSource) else PurePosixPath(source.path.url.rstrip("/")).name


def _title(source: Source) -> str:
    return "table" if isinstance(source, SqlSource) else PurePosixPath(_name(source)).stem
