"""What codes stand for, as the axis of a table."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import columns

from ppsyn.generation.decoding import cells_of, decode_column
from ppsyn.schemas.columns import CategoricalColumn, ColumnSchema, DateColumn, IntegerColumn, RealColumn


@settings(deadline=None)
@given(column=columns(), seed=st.integers(0, 2**32))
def test_every_value_that_a_code_may_be_decoded_to_is_at_its_place(column: ColumnSchema, seed: int) -> None:
    cells = cells_of([column])
    assert (len(cells), cells.name, cells.is_unique) == (column.size, column.name, True)
    assert cells.isna().tolist() == [code == column.null_code for code in range(column.size)]
    codes = np.arange(column.value_count, dtype=np.int32)
    values = decode_column(codes, column, np.random.Generator(np.random.PCG64(seed)))
    for value, label in zip(values, cells, strict=False):
        if not isinstance(label, pd.Interval):
            assert value == label
        else:
            moment = pd.Timestamp(value) if isinstance(column, DateColumn) else value
            assert moment in label or (
                isinstance(column, RealColumn) and value == label.right == column.intervals.ends[-1]
            )


def test_cells_are_those_of_a_table_in_the_order_of_its_axes() -> None:
    sex = CategoricalColumn(name="sex", values=("m", "f"), outside="refuse")
    age = IntegerColumn(name="age", lower=0, upper=19, step=10, nullable=True)
    cells = cells_of([age, sex])
    assert list(cells.names) == ["age", "sex"]
    young, old = pd.Interval(0, 9, closed="both"), pd.Interval(10, 19, closed="both")
    assert cells[:4].tolist() == [(young, "m"), (young, "f"), (old, "m"), (old, "f")]
    assert cells.get_level_values("sex")[4:].tolist() == ["m", "f"]
    assert cells.get_level_values("age").isna().tolist() == [False] * 4 + [True] * 2
    counts = pd.Series(np.arange(6), cells)
    assert counts.xs("f", level="sex")[12] == 3
    assert counts.unstack("sex").columns.tolist() == ["m", "f"]


def test_whole_numbers_and_days_of_their_own_are_themselves_and_bins_of_reals_touch() -> None:
    assert cells_of([IntegerColumn(name="n", lower=3, upper=5)]).tolist() == [3, 4, 5]
    days = DateColumn.model_validate({"name": "d", "lower": "2020-02-28", "upper": "2020-03-01", "unit": "day"})
    assert [str(day) for day in cells_of([days])] == ["2020-02-28", "2020-02-29", "2020-03-01"]
    reals = cells_of([RealColumn(name="r", lower=0, upper=1, bins=2)])
    assert list(map(str, reals)) == ["[0.0, 0.5)", "[0.5, 1.0)"]
