"""Columns with many values, released from CSV as a user would: they work, or are refused before anything is spent."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from ppsyn.errors import PPSynError
from ppsyn.flows.cli.main import main
from ppsyn.flows.cli.output import Exit, exit_of
from ppsyn.flows.preflight import prepare, read_inputs

CITIES, ZIPS, ROWS = 1_000, 99_999, 4_000


LISTED = {"kind": "categorical", "values": [f"z{z:05d}" for z in range(ZIPS)], "other": "elsewhere"}
NUMBERED = {"kind": "integer", "lower": 0, "upper": ZIPS}


def write_release(folder: Path, zips: dict[str, object], **changes: object) -> Path:
    rng = np.random.default_rng(3)
    city = rng.integers(0, CITIES, ROWS)
    lines = [f"c{c},z{c * 100 + rng.integers(100):05d},{rng.integers(0, 100_000)},{c % 2}" for c in city.tolist()]
    (folder / "t.csv").write_text("city,zip,income,old\n" + "\n".join(lines) + "\n", encoding="utf-8")
    columns = [
        {"name": "city", "kind": "categorical", "values": [f"c{c}" for c in range(CITIES)], "outside": "refuse"},
        {"name": "zip", **zips},
        {"name": "income", "kind": "integer", "lower": 0, "upper": 99_999},
        {"name": "old", "kind": "boolean", "outside": "refuse"},
    ]
    (folder / "s.yaml").write_text(yaml.safe_dump({"name": "many", "columns": columns}), encoding="utf-8")
    release: dict[str, object] = {
        "dataset": "many",
        "source": {"kind": "csv", "path": "t.csv"},
        "schema": "s.yaml",
        "privacy": {"epsilon": 2.0, "delta": 1e-6},
        "account": {"cap": {"epsilon": 9.0, "delta": 1e-6}},
        "algorithm": {"rounds": 4},
        "stores": {"root": "out"},
        **changes,
    }
    (folder / "r.yaml").write_text(yaml.safe_dump(release), encoding="utf-8")
    return folder / "r.yaml"


@pytest.mark.slow
def test_columns_of_a_thousand_and_of_a_hundred_thousand_values_are_released_and_audited(tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["release", str(write_release(tmp_path, LISTED)), "--quiet"])
    assert told.exit_code == 0, told.output
    (published,) = (tmp_path / "out" / "releases" / "many").glob("2*")
    assert (published / "report.html").stat().st_size < 2**20
    assert (published / "validation.json").stat().st_size < 2**16
    assert CliRunner().invoke(main, ["audit", str(published)]).exit_code == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"algorithm": {"max_model_size_mb": 1.0}},
            ["max_model_size_mb=1 allows less", "'zip' has 100,000", "fewer bins or values"],
        ),
        (
            {"algorithm": {"workload": {"cliques": [["zip", "income"]]}}},
            ["got one of 10,000,000,000", "'income' has 100,000 values"],
        ),
    ],
)
def test_what_is_too_large_is_refused_by_name_before_anything_is_spent(
    tmp_path: Path, changes: dict[str, object], told: list[str]
) -> None:
    inputs = read_inputs(str(write_release(tmp_path, NUMBERED, **changes)), ())
    with pytest.raises(PPSynError) as caught:
        prepare(*inputs, resume=None, is_new=True)
    assert all(text in str(caught.value) for text in told), str(caught.value)
    assert exit_of(caught.value) == Exit.MISTAKE
    assert not (tmp_path / "out").exists()
