"""Expectations of the private table, batch by batch: nothing comes out but the rule that was broken."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ppsyn.arrays import Codes
from ppsyn.data.encoding import refusal_of
from ppsyn.errors import InvariantError, SourceError
from ppsyn.schemas.table import TableSchema
from ppsyn.validation.engine import Expectation, judge


def check_columns(frame: pd.DataFrame, names: Sequence[str], fragment: str) -> None:
    """See that a batch has these columns and no other.

    Privacy:
        Looks at the names of the columns alone, which are public.

    Raises:
        SourceError: If it has not.
    """
    expected = Expectation("expect_table_columns_to_match_set", None, {"column_set": list(names), "exact_match": True})
    if not _pass(frame.iloc[:0], [expected])[0]:
        raise SourceError(f"Expected the columns {', '.join(names)} in {fragment}, and no other.")


def check_codes(marked: Mapping[str, Codes], schema: TableSchema) -> None:
    """See that every code of a batch lies in its attribute's range, which one that marks a refused value does not.

    A table passes exactly if each of its batches does.

    Privacy:
        Reads private codes. Stopping tells that a value is refused (PRIVACY.md, L2);
        the error names the column and the rule, never the value nor how many.

    Raises:
        DomainRefusedError: If a column refuses a value; the first such column of the schema.
    """
    frame = pd.DataFrame({column.name: marked[column.name].astype(np.int64) for column in schema.columns})
    expected = [
        Expectation("expect_column_values_to_be_between", column.name, {"min_value": 0, "max_value": column.size - 1})
        for column in schema.columns
    ]
    for column, is_met in zip(schema.columns, _pass(frame, expected), strict=True):
        if not is_met:
            raise refusal_of(column)


def _pass(frame: pd.DataFrame, expected: Sequence[Expectation]) -> list[bool]:
    verdicts = judge(frame, expected)
    if not all(verdict.was_carried_out for verdict in verdicts):
        raise InvariantError("A check of the private table could not be carried out; nothing was spent.")
    return [verdict.success for verdict in verdicts]
