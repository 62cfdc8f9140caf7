"""A draft of a schema for a table whose rows nobody looks at, as a YAML file."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import cast

import pandas as pd
import pyarrow as pa
import yaml
from typing_extensions import override

from ppsyn.data.encoding.parsing import Raw
from ppsyn.data.sources import names_of, read_frames
from ppsyn.data.sources.reading import columns_of
from ppsyn.errors import ConfigError, SourceError
from ppsyn.schema_draft.columns import Drafted, draft_column, propose
from ppsyn.schema_draft.relations import relations
from ppsyn.schemas.files import Unfilled
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
        return _page(_title(source), f"the names and types of the columns of {_name(source)} alone", drafted)
    _check_apart(source, sample)
    seen = _values(sample, fields.names)
    drafted = [_drafted(field, seen) for field in fields]
    return _page(_title(source), f"values of {_name(sample)}, which is said to be public", drafted)


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
    """Refuse a table without a header, whose first row would be taken for names. The error shows nothing of it."""
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


_WIDTH = 110
_LIKE_A_NUMBER = re.compile(r"[-+.0-9][-+.:_0-9eE]*")


class _Dumper(yaml.SafeDumper):
    """Puts quotes around all texts that look like numbers, not just around those that YAML takes for some."""

    @override
    def represent_str(self, data: str) -> yaml.ScalarNode:
        node = super().represent_str(data)
        if _LIKE_A_NUMBER.fullmatch(data):
            node.style = "'"
        return node


_Dumper.add_representer(str, _Dumper.represent_str)


def _page(title: str, origin: str, drafted: Sequence[Drafted]) -> str:
    """The file: what it is made from, what is to be done, and the columns."""
    columns = [line for one in drafted if one.fields is not None for line in _column(one)]
    left_out = [one for one in drafted if one.fields is None]
    lines = [
        f"# A draft of a schema, from {origin}.",
        "# Replace every !fill by what is publicly known: a code book, a law, common sense. Never look at the",
        "# rows: bounds or values read off the table leak, and no noise covers that.",
        "# Ids, names and free text belong into `excluded`. Few, wide bins make better synthetic data.",
        f"name: {_slug(title)}",
        *(["columns:", *columns] if columns else ["columns: []"]),
        *(["excluded:"] if left_out else []),
        *(f"  - {_written(one.name)}  # {_plain(one.note)}" for one in left_out),
        *_related([one.name for one in drafted if one.fields is not None]),
    ]
    return "\n".join(lines) + "\n"


def _related(names: Sequence[str]) -> list[str]:
    """What names tell of rules, as comments."""
    found = relations(names)
    if not found:
        return []
    return [
        "# By their names, these may hold. Fill in and move to the column, or to `rules`, what is publicly known to:",
        *(f"#   {_plain(line)}" for line in found),
    ]


def _column(one: Drafted) -> list[str]:
    note = f"  # {_plain(one.note)}" if one.note else ""
    fields = one.fields or {}
    return [
        f"  - name: {_written(one.name)}{note}",
        *(f"    {name}:{_value(value)}" for name, value in fields.items()),
    ]


def _value(value: object) -> str:
    if isinstance(value, Unfilled):
        return f" !fill {value.hint}"
    if not isinstance(value, list):
        return f" {_written(value)}"
    lines = _dumped(cast("list[object]", value), _WIDTH).splitlines()
    return f" {lines[0]}" if len(lines) == 1 else "".join(f"\n      {line.strip()}" for line in lines)


def _written(value: object) -> str:
    """A plain value as YAML has it, in quotes where it would be read as something else."""
    return _dumped([value], 10**9)[1:-1]


def _dumped(value: object, width: int) -> str:
    return yaml.dump(value, Dumper=_Dumper, default_flow_style=True, allow_unicode=True, width=width).strip()


def _plain(text: str) -> str:
    return " ".join(text.split())


def _slug(title: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", title.lower())) or "table"
