"""Running Great Expectations: in memory, silently, without files or network."""
# Great Expectations leaves many of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pandas as pd

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
