"""A release of a table that breaks every rule: no row of it does, and all that reads it knows the rules."""

from pathlib import Path

import pandas as pd
import pytest
from distributed.protocol import deserialize, serialize
from support.published import Published, make_release
from support.ruled import private_rows, ruled_schema

from ppsyn import synthesize
from ppsyn.data.encoding import rows_broken
from ppsyn.errors import ConfigError, SchemaError
from ppsyn.releases.audit import audit
from ppsyn.releases.reader import open_release
from ppsyn.releases.validation import validate
from ppsyn.schemas.table import TableSchema

OTHERS = ("aim", "mst", "mwem", "independent")
ABSENT = ["grown", "days", "region"]
"""Columns that are computed whatever the private table says, and may be missing from it."""


def broken_in(frame: pd.DataFrame, schema: TableSchema) -> dict[str, int]:
    """How many rows break which rule, of those that some do."""
    return {name: int(found.sum()) for name, found in rows_broken(frame, schema) if found.any()}


def release_of(folder: Path, mechanism: str = "ppsyn", policy: str = "repair") -> Published:
    """A release of a table most of whose rows break rules."""
    frame = private_rows(500)
    rounds = {"rounds": 4} if mechanism == "ppsyn" else {}
    frame = frame.drop(columns=ABSENT) if policy == "repair" else frame
    frame = frame.astype({name: "str" for name in ("status", "role", "sex", "office", "region") if name in frame})
    changes = {"algorithm": {"mechanism": mechanism, "max_fit_steps": 20, **rounds}}
    return make_release(folder, frame, ruled_schema(policy), changes=changes)


@pytest.mark.parametrize(
    ("mechanism", "policy"),
    [
        ("ppsyn", "repair"),
        ("ppsyn", "drop"),
        *(pytest.param(each, "repair", marks=pytest.mark.slow) for each in OTHERS),
    ],
)
def test_no_row_of_a_release_breaks_a_rule_however_many_are_made(mechanism: str, policy: str, tmp_path: Path) -> None:
    made = release_of(tmp_path, mechanism, policy)
    schema = ruled_schema(policy)
    assert [finding for finding in audit(made.store, made.account) if finding.problem is not None] == []
    opened = open_release(made.store)
    assert broken_in(opened.table, schema) == {}
    assert broken_in(opened.generate(140_000, seed=5), schema) == {}
    report = made.store.get("report.html").decode()
    assert f"0 of {len(opened.table):,}" in report
    assert "where role is husband, sex is male and status is married" in report


def test_a_table_with_a_row_that_breaks_a_rule_does_not_pass_validation() -> None:
    schema = ruled_schema()
    release = synthesize(private_rows(300), schema, rho=1.0, progress=False, rounds=2)
    table = release.table
    assert validate(iter([table]), schema).success
    for column, value, about in (("sex", "female", "husbands"), ("region", "north", "region"), ("days", 731, "days")):
        forged = table.copy()
        forged.loc[forged.index[0], ["role", "office", column]] = ["husband", "bonn", value]
        found = validate(iter([table, forged]), schema)
        assert about in {result.column for result in found.results if not result.success}


@pytest.mark.slow
def test_a_saved_model_keeps_its_rules_and_a_worker_makes_the_same_rows(tmp_path: Path) -> None:
    opened = open_release(release_of(tmp_path).store)
    recipe = opened.recipe(1000, 3)
    sent = deserialize(*serialize(recipe))
    pd.testing.assert_frame_equal(sent.block(0), recipe.block(0))
    assert broken_in(opened.with_mbi(opened.to_mbi()[0]).generate(3000), ruled_schema()) == {}


def test_rules_that_cannot_be_kept_stop_a_release_before_anything_is_spent() -> None:
    frame, schema = private_rows(50), ruled_schema()
    with pytest.raises(ConfigError, match="mbi does not keep them"):
        synthesize(frame, schema, rho=1.0, estimator="mbi")
    with pytest.raises(SchemaError, match="can keep; with the rule 'children are single'"):
        synthesize(frame, schema, rho=1.0, max_model_size_mb=0.001)
    document = schema.model_dump(mode="json")
    document["rules"].append({"name": "nobody", "never": {"role": "wife", "office": ["ulm", "bonn", "kiel", None]}})
    with pytest.raises(SchemaError, match="'nobody' leaves no row with code 1 of 'role'"):
        synthesize(frame, TableSchema.model_validate(document), rho=1.0)
