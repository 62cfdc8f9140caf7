"""Parquet files: every value as it is stored, whatever else its column holds."""
# pyarrow has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet, types

from ppsyn.data.encoding.parsing import Raw
from ppsyn.data.sources.batches import regroup
from ppsyn.data.sources.files import UNREADABLE, Fragment
from ppsyn.errors import SchemaError, SourceError, translated
from ppsyn.schemas.release import ParquetSource

_MISFIT = b""
"""Stands for a value of a type that fits no column: a list, an interval, a time of day."""


def parquet_names(fragment: Fragment) -> list[str]:
    """The names of the columns, from the file's footer.

    Raises:
        SourceError: If it is not a Parquet file.
    """
    return list(_footer(fragment).names)


def parquet_types(fragment: Fragment) -> pa.Schema:
    """The names and types of the columns, without what else a footer may tell: its statistics are private.

    Raises:
        SourceError: If it is not a Parquet file.
    """
    return pa.schema([field.remove_metadata() for field in _footer(fragment)])


def check_ids(fragment: Fragment, person_column: str) -> None:
    """Refuse a person column of a type that is read as misfits.

    Raises:
        SchemaError: If the persons could not be told apart by it.
    """
    if _is_misfit(_footer(fragment).field(person_column).type):
        raise SchemaError(
            f"Expected the person column {person_column!r} of {fragment.url} to hold plain identifiers: "
            "numbers or text, not lists or times."
        )


def _footer(fragment: Fragment) -> pa.Schema:
    broken = (*UNREADABLE, pa.ArrowException, ValueError)
    with (
        translated(broken, to=SourceError, message=parquet_rule(fragment)),
        fragment.open() as file,
        parquet.ParquetFile(file) as opened_file,
    ):
        schema = opened_file.schema_arrow
        _ = schema.names  # one that is not UTF-8 is found out here
        return schema


def parquet_frames(fragment: Fragment, source: ParquetSource, names: Sequence[str]) -> Iterator[pd.DataFrame]:
    """The columns of these names, so many rows at a time.

    Privacy:
        The type of a column is that of the file. A null changes no other value.
    """
    with fragment.open() as file, parquet.ParquetFile(file) as opened_file:
        blocks = opened_file.iter_batches(source.batch_rows, columns=list(names), use_threads=False)
        for table in regroup(blocks, source.batch_rows):
            yield pd.DataFrame({name: _plain(table[name]) for name in names})


def parquet_rule(fragment: Fragment) -> str:
    """The rule that a file which cannot be parsed has broken."""
    return f"Expected {fragment.url} to be a whole and undamaged Parquet file, with its text in UTF-8."


def _plain(column: pa.ChunkedArray) -> Raw:
    """A column of numbers, truth values, text, bytes or moments; of anything else, misfits."""
    kind = column.type
    if types.is_string_view(kind) or types.is_binary_view(kind):  # pandas has none of them
        column.validate(full=True)
        whole = pa.large_string() if types.is_string_view(kind) else pa.large_binary()
        return _plain(column.cast(whole))
    if types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind):
        column.validate(full=True)  # of a number or a moment it would refuse odd values, which are read as any other
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if types.is_dictionary(kind):
        return _plain(pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], kind.value_type))
    if types.is_date(kind) or types.is_timestamp(kind):
        return _moments(column)
    if _is_misfit(kind):
        return pd.Series([_MISFIT if valid else None for valid in column.is_valid().to_pylist()], dtype=object)
    return pd.Series(pd.arrays.ArrowExtensionArray(column))


def _is_misfit(kind: pa.DataType) -> bool:
    return types.is_nested(kind) or types.is_time(kind) or types.is_duration(kind) or types.is_interval(kind)


def _moments(column: pa.ChunkedArray) -> Raw:
    """Dates and timestamps as pandas has them, which reaches further than the years of Python."""
    kind = column.type
    is_day = types.is_date32(kind)
    unit = "s" if is_day else "ms" if types.is_date64(kind) else kind.unit
    ticks = column.cast(pa.int32() if is_day else pa.int64()).fill_null(0).to_numpy().astype(np.int64)
    values = (ticks * 86_400 if is_day else ticks).view(f"datetime64[{unit}]")
    index = pd.DatetimeIndex(np.where(column.is_valid().to_numpy(), values, np.datetime64("NaT", unit)))
    has_zone = types.is_timestamp(kind) and kind.tz is not None
    return pd.Series(index.tz_localize("UTC") if has_zone else index)
