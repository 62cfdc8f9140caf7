import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ppsyn
from ppsyn import api
from ppsyn.errors import ConfigError, DomainRefusedError, ModelTooLargeError, PPSynError, SchemaError
from ppsyn.schemas.table import TableSchema

CANARY = "Q7-canary-value"
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "progress": False}
QUICK = {"rounds": 4, "max_fit_steps": 20}


def schema_of(*columns: dict[str, object], excluded: tuple[str, ...] = ()) -> TableSchema:
    return TableSchema.model_validate({"name": "people", "columns": columns, "excluded": excluded})


AGE = {"name": "age", "kind": "integer", "lower": 0, "upper": 99, "step": 10, "dtype": "Int64", "nullable": True}
SEX = {"name": "sex", "kind": "categorical", "values": ["f", "m"], "other": "other"}
PEOPLE = schema_of(AGE, SEX)


def people(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(20, 60, rows), "sex": rng.choice(["f", "m"], rows)})


def release(frame: pd.DataFrame, schema: TableSchema = PEOPLE, **options: object) -> ppsyn.Synthesis:
    return ppsyn.synthesize(frame, schema, **{**BUDGET, **QUICK, **options})  # pyright: ignore[reportArgumentType]


def test_a_release_has_the_table_the_model_the_ledger_and_the_measurements() -> None:
    result = release(people())
    assert list(result.table.columns) == ["age", "sex"]
    assert str(result.table["age"].dtype) == "Int64"
    assert result.ledger.left == 0
    assert result.epsilon() == pytest.approx(1.0, rel=1e-6)
    assert len(result.ledger.spends) >= len(result.measurements)
    assert abs(len(result.table) - 400) < 200


def test_a_release_resembles_its_table() -> None:
    result = release(people(20_000))
    assert result.table["age"].between(20, 59).mean() > 0.95


@pytest.mark.parametrize(
    "frame",
    [
        people(0),
        people(1),
        pd.DataFrame({"age": [None] * 50, "sex": [None] * 50}),
        pd.DataFrame({"age": [33] * 50, "sex": ["f"] * 50}),
        pd.DataFrame({"age": [-5, 10**30, float("nan"), "x"] * 5, "sex": ["f", "??", None, 7] * 5}, dtype=object),
    ],
    ids=["empty", "one row", "all null", "constant", "outsiders"],
)
def test_odd_tables_give_a_release_like_any_other(frame: pd.DataFrame) -> None:
    result = release(frame)
    assert result.ledger.left == 0
    assert list(result.table.columns) == ["age", "sex"]


def test_one_column_of_one_value_is_released() -> None:
    schema = schema_of({"name": "k", "kind": "integer", "lower": 3, "upper": 3})
    assert set(release(pd.DataFrame({"k": [3] * 900}), schema).table["k"]) == {3}


def test_ten_thousand_values_are_released() -> None:
    schema = schema_of({"name": "k", "kind": "integer", "lower": 0, "upper": 9_999}, SEX)
    frame = pd.DataFrame({"k": np.arange(1_000) * 7, "sex": ["f", "m"] * 500})
    assert release(frame, schema).table["k"].between(0, 9_999).all()


def test_a_workload_of_pairs_too_large_for_max_cells_says_what_to_change() -> None:
    schema = schema_of({"name": "k", "kind": "integer", "lower": 0, "upper": 9_999}, SEX)
    with pytest.raises(ConfigError, match="max_cells"):
        release(pd.DataFrame({"k": [1], "sex": ["f"]}), schema, workload={"degree": 2})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": None}, "Give epsilon and delta, or rho"),
        ({"rho": 0.1}, "not both"),
        ({"epsilon": 1e-12, "delta": 1e-12}, "small"),
        ({"workload": {"cliques": [["age", "zip"]]}}, "zip"),
        ({"workload": {"cliques": []}}, "cliques"),
        ({"workload": {"cliques": [list("abcdefghi")]}}, "at most 8"),
        ({"rounds": 0}, "rounds"),
        ({"max_model_size_mb": -1}, "max_model_size_mb"),
        ({"partition": "grid"}, "partition"),
        ({"colour": "blue"}, "colour"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"person": ("id", 0)}, "max_rows"),
    ],
)
def test_bad_settings_are_refused_before_the_table_is_read(options: dict[str, object], words: str) -> None:
    unread = pd.DataFrame({CANARY: [1]})
    with pytest.raises(ConfigError, match=words) as caught:
        release(unread, **options)
    assert CANARY not in str(caught.value)


def test_a_model_that_cannot_fit_is_refused_before_the_table_is_read() -> None:
    with pytest.raises(ModelTooLargeError):
        release(pd.DataFrame({CANARY: [1]}), max_model_size_mb=1e-6)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (people().rename(columns={"sex": "gender"}), "gender"),
        (people().drop(columns="sex"), "sex"),
        (pd.concat([people(), people()["sex"]], axis=1), "once"),
    ],
)
def test_columns_that_do_not_fit_the_schema_are_named(frame: pd.DataFrame, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        release(frame)


def test_a_refused_value_names_the_column_and_never_the_value() -> None:
    schema = schema_of(AGE, {"name": "sex", "kind": "categorical", "values": ["f", "m"], "outside": "refuse"})
    frame = people().assign(sex=[CANARY, *["f"] * 399])
    with pytest.raises(DomainRefusedError) as caught:
        release(frame, schema)
    assert caught.value.column == "sex"
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_missing_schema_file_is_a_clear_error() -> None:
    with pytest.raises(SchemaError, match=r"nowhere\.yaml"):
        ppsyn.synthesize(people(), "nowhere.yaml", epsilon=1.0, delta=1e-6)


def test_a_person_counts_with_at_most_so_many_rows() -> None:
    schema = schema_of(AGE, SEX, excluded=("id",))
    frame = people(2_000).assign(id=0)
    result = release(frame, schema, person=("id", 3), epsilon=10.0)
    assert result.model.total < 500


def test_noise_grows_with_the_rows_a_person_may_have() -> None:
    schema = schema_of(AGE, SEX, excluded=("id",))
    frame = people().assign(id=np.arange(400))
    one, four = (release(frame, schema, person=("id", rows)) for rows in (1, 4))
    assert four.measurements[0].sigma == pytest.approx(4 * one.measurements[0].sigma, rel=1e-9)


def test_the_person_column_may_not_be_released() -> None:
    with pytest.raises(ConfigError, match="'age'"):
        release(people(), person=("age", 2))


def test_rho_buys_a_release_too() -> None:
    result = release(people(), epsilon=None, delta=None, rho=0.25)
    assert float(result.rho) == 0.25
    with pytest.raises(ConfigError, match="delta"):
        result.epsilon()
    assert result.epsilon(1e-6) > 0


def test_no_error_of_a_user_is_anything_else_than_ours(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: [", encoding="utf-8")
    with pytest.raises(PPSynError):
        ppsyn.synthesize(people(), bad, epsilon=1.0, delta=1e-6)


def test_progress_is_silent_unless_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    release(people(), progress=None)
    assert capfd.readouterr() == ("", "")
    release(people(), progress=True)
    shown = capfd.readouterr()
    assert "budget" in shown.err
    assert shown.out == ""


def test_every_setting_of_the_surface_is_documented() -> None:
    assert api.synthesize.__doc__ is not None
    assert all(f"{name}:" in api.synthesize.__doc__ for name in ("epsilon", "delta", "rho", "person", "seed"))
