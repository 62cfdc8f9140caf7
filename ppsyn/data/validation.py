"""Great Expectations, in memory, silently, without files or network: how it is run, and what came in, once.

Of the private table nothing comes out but the rule that it broke. What is published has a module of its own
(`ppsyn/releases/validation.py`).
"""
# Great Expectations leaves many of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from typing_extensions import override

from ppsyn.arrays import Codes
from ppsyn.data.encoding import refusal_of
from ppsyn.errors import InvariantError
from ppsyn.schemas.table import TableSchema

if TYPE_CHECKING:
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult
    from great_expectations.datasource.fluent.pandas_datasource import DataFrameAsset

_NAME = "ppsyn"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of a table or of one of its columns; public."""

    name: str
    """As Great Expectations has it, such as `expect_column_values_to_be_in_set`."""
    column: str | None
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an expectation is met, and nothing else."""

    success: bool
    was_carried_out: bool


def judge(frame: pd.DataFrame, expectations: Sequence[Expectation]) -> list[Verdict]:
    """Hold a table against expectations; a verdict for each, in order.

    Privacy:
        The table may be private. It stays in memory, and of all that Great
        Expectations finds only success or failure is taken (BOOLEAN_ONLY).
    """
    asset = _asset()
    import great_expectations as gx  # noqa: PLC0415 - takes seconds
    from great_expectations.expectations.expectation_configuration import (  # noqa: PLC0415 - as above
        ExpectationConfiguration,
    )

    configurations = [
        ExpectationConfiguration(
            type=expectation.name,
            kwargs={**expectation.arguments, **({} if expectation.column is None else {"column": expectation.column})},
            meta={"number": number},
        )
        for number, expectation in enumerate(expectations)
    ]
    suite = gx.ExpectationSuite(name=_NAME, expectations=[c.to_domain_obj() for c in configurations])
    batch = asset.get_batch(asset.build_batch_request(options={"dataframe": frame}))
    found = batch.validate(suite, result_format="BOOLEAN_ONLY").results
    verdicts = dict(map(_verdict, found))
    return [verdicts.get(number, Verdict(success=False, was_carried_out=False)) for number in range(len(expectations))]


@cache
def _asset() -> "DataFrameAsset":
    """Where tables in memory become batches."""
    os.environ["GX_ANALYTICS_ENABLED"] = "False"  # it is read on import
    import great_expectations as gx  # noqa: PLC0415 - takes seconds
    from great_expectations.data_context.types.base import ProgressBarsConfig  # noqa: PLC0415 - as above

    context = gx.get_context(mode="ephemeral", cloud_mode=False)
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    return context.data_sources.add_pandas(_NAME).add_dataframe_asset(_NAME)


def _verdict(result: "ExpectationValidationResult") -> tuple[int, Verdict]:
    """The number of an expectation, and its verdict; one that ran into an error was not carried out."""
    number = -1 if result.expectation_config is None else int(result.expectation_config.meta["number"])
    return number, Verdict(bool(result.success), result.exception_info.get("raised_exception") is False)


class CodeRanges:
    """The smallest and the largest code of each attribute, over all batches of a table.

    All codes of an attribute lie in its range exactly if these two do. So one validation of them is one of all rows,
    whatever the table's size.

    Privacy:
        Reads private codes; what it keeps is private.
    """

    def __init__(self, schema: TableSchema) -> None:
        """Begin without rows."""
        self._schema = schema
        self._ranges: dict[str, tuple[int, int]] = {}

    @override
    def __repr__(self) -> str:
        """Show nothing of the table."""
        return "CodeRanges()"

    def add(self, codes: Mapping[str, Codes]) -> None:
        """Take in the codes of a batch."""
        for name, column in codes.items():
            if column.size:
                low, high = self._ranges.get(name, (int(column[0]), int(column[0])))
                self._ranges[name] = min(low, int(column.min())), max(high, int(column.max()))

    def check(self) -> None:
        """Validate what was ingested: the attributes of the schema and no other, with codes in their ranges.

        Privacy:
            The error names the column and the rule, never the value nor how many (PRIVACY.md, L2).

        Raises:
            DomainRefusedError: If a code is out of its range; the first such column of the schema.
            InvariantError: If the attributes are not those of the schema, or a check could not be carried out.
        """
        if not self._ranges:
            return  # of no rows all is true
        columns = self._schema.attributes
        names = Expectation("expect_table_columns_to_match_set", None, {"column_set": [c.name for c in columns]})
        ranges = [
            Expectation("expect_column_values_to_be_between", c.name, {"min_value": 0, "max_value": c.size - 1})
            for c in columns
        ]
        frame = pd.DataFrame({name: np.array(found, np.int64) for name, found in self._ranges.items()})
        verdicts = judge(frame, [names, *ranges])
        if not verdicts[0].success or not all(verdict.was_carried_out for verdict in verdicts):
            raise InvariantError("A check of the private table could not be carried out; nothing was spent.")
        for column, verdict in zip(columns, verdicts[1:], strict=True):
            if not verdict.success:
                raise refusal_of(column)
