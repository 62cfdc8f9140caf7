"""The kinds of column: what each may hold, how it is divided into codes, and where outsiders go."""

from typing import Annotated, TypeAlias

from pydantic import Field

from ppsyn.schemas.columns.labelled import BooleanColumn, CategoricalColumn
from ppsyn.schemas.columns.numeric import IntegerColumn, RealColumn
from ppsyn.schemas.columns.temporal import DateColumn, DatetimeColumn

BinnedColumn: TypeAlias = IntegerColumn | RealColumn | DateColumn | DatetimeColumn
LabelledColumn: TypeAlias = CategoricalColumn | BooleanColumn
ColumnSchema: TypeAlias = Annotated[LabelledColumn | BinnedColumn, Field(discriminator="kind")]

KINDS = ("categorical", "boolean", "integer", "real", "date", "datetime")

__all__ = [
    "KINDS",
    "BinnedColumn",
    "BooleanColumn",
    "CategoricalColumn",
    "ColumnSchema",
    "DateColumn",
    "DatetimeColumn",
    "IntegerColumn",
    "LabelledColumn",
    "RealColumn",
]
