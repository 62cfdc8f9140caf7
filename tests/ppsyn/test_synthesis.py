import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import knots

import ppsyn
from ppsyn.errors import ConfigError
from ppsyn.generation.sampling import BLOCK_ROWS
from ppsyn.model import mbi_adapter as exchange
from ppsyn.model.compression import Compression
from ppsyn.model.estimation import Effort, fit
from ppsyn.model.graphical_model import uniform_model
from ppsyn.schemas.table import TableSchema

CANARY_COUNT = 31_337
CANARY_TEXT = "zz-secret-canary"

SCHEMA = TableSchema.model_validate(
    {
        "name": "canaries",
        "columns": [
            {"name": "a", "kind": "integer", "lower": 0, "upper": 39},
            {"name": "b", "kind": "categorical", "values": ["x", "y", "z"], "other": "rest"},
            {"name": "c", "kind": "real", "lower": 0.0, "upper": 1.0, "bins": 4},
        ],
        "excluded": ["note"],
    }
)


def private_frame() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    a = np.where(rng.random(CANARY_COUNT) < 0.5, 7, rng.integers(0, 40, CANARY_COUNT))
    b = np.where(a == 7, "x", rng.choice(["y", "z", CANARY_TEXT], CANARY_COUNT))
    return pd.DataFrame({"a": a, "b": b, "c": rng.random(CANARY_COUNT), "note": CANARY_TEXT})


@pytest.fixture(scope="module")
def result() -> ppsyn.Synthesis:
    return ppsyn.synthesize(private_frame(), SCHEMA, epsilon=1.0, delta=1e-6, rounds=8, seed=11, progress=False)


def test_rows_come_back_from_the_seed_and_differ_without_it(result: ppsyn.Synthesis) -> None:
    pd.testing.assert_frame_equal(result.generate(1_000, seed=5), result.generate(1_000, seed=5))
    assert not result.generate(1_000, seed=5).equals(result.generate(1_000, seed=6))
    pd.testing.assert_frame_equal(result.table, result.generate())


def test_any_number_of_rows_can_be_made(result: ppsyn.Synthesis) -> None:
    assert [len(result.generate(rows)) for rows in (0, 1, 200_000)] == [0, 1, 200_000]
    assert result.generate(0).dtypes.equals(result.table.dtypes)


def test_generating_costs_nothing(result: ppsyn.Synthesis) -> None:
    spent = result.rho
    result.generate(10)
    assert result.rho == spent


def test_a_saved_release_comes_back_bit_for_bit(result: ppsyn.Synthesis, tmp_path: Path) -> None:
    ppsyn.save(result, tmp_path / "release")
    again = ppsyn.load(tmp_path / "release")
    assert again.ledger == result.ledger
    assert (again.schema, again.privacy, again.config, again.rounds) == (
        result.schema,
        result.privacy,
        result.config,
        result.rounds,
    )
    assert all(np.array_equal(x, y) for x, y in zip(again.model.beliefs, result.model.beliefs, strict=True))
    for ours, theirs in zip(result.measurements, again.measurements, strict=True):
        assert ours.partition == theirs.partition
        assert np.array_equal(ours.target, theirs.target)
    pd.testing.assert_frame_equal(again.table, result.table)


def test_saving_never_overwrites(result: ppsyn.Synthesis, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep", encoding="utf-8")
    with pytest.raises(ConfigError, match="empty"):
        ppsyn.save(result, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("damage", ["missing", "json", "arrays", "version"])
def test_a_folder_that_holds_no_release_is_a_clear_error(result: ppsyn.Synthesis, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "release"
    if damage != "missing":
        ppsyn.save(result, folder)
    if damage == "json":
        (folder / "synthesis.json").write_text("{", encoding="utf-8")
    if damage == "arrays":
        (folder / "model.npz").write_bytes(b"PK nothing")
    if damage == "version":
        document = json.loads((folder / "synthesis.json").read_text(encoding="utf-8"))
        (folder / "synthesis.json").write_text(json.dumps({**document, "format": "other-9"}), encoding="utf-8")
    with pytest.raises(ConfigError, match="release"):
        ppsyn.load(folder)


def test_nothing_private_is_in_the_files(result: ppsyn.Synthesis, tmp_path: Path) -> None:
    """Neither planted text nor the row count nor any exact marginal; and the search can find them."""
    ppsyn.save(result, tmp_path / "release")
    text = (tmp_path / "release" / "synthesis.json").read_text(encoding="utf-8")
    raw = b"".join(path.read_bytes() for path in (tmp_path / "release").iterdir())
    assert CANARY_TEXT.encode() not in raw
    assert str(CANARY_COUNT) not in text
    exact = {name: private_frame()[name].value_counts(sort=False).to_numpy() for name in ("a", "b")}
    with np.load(tmp_path / "release" / "model.npz") as arrays:
        stored = [arrays[name].ravel() for name in arrays.files]
    for counts in (*exact.values(), np.array([CANARY_COUNT])):
        assert not any(holds(array, counts) for array in stored)
    assert holds(np.concatenate([stored[0], np.sort(exact["a"])]), exact["a"])


def holds(array: np.ndarray, counts: np.ndarray) -> bool:
    """Whether all the counts occur in the array: by chance only if they are few and small."""
    return bool(np.isin(counts, array).all())


def test_a_marginal_has_error_bars_that_cover_the_truth(result: ppsyn.Synthesis) -> None:
    marginal = result.marginal(["b"])
    frame = private_frame()
    truth = frame["b"].replace(CANARY_TEXT, "rest").value_counts()[["x", "y", "z", "rest"]]
    assert (marginal.index.name, marginal.index.tolist()) == ("b", ["x", "y", "z", "rest"])
    assert (marginal["standard_error"] > 0).all()
    assert (np.abs(marginal["count"] - truth) < 6 * marginal["standard_error"] + 1).all()


def test_a_marginal_keeps_the_order_it_was_asked_in(result: ppsyn.Synthesis) -> None:
    one, other = result.marginal(["b", "a"]), result.marginal(["a", "b"])
    assert (list(one.index.names), list(other.index.names)) == (["b", "a"], ["a", "b"])
    assert one.index.is_unique
    pd.testing.assert_frame_equal(one.reorder_levels(["a", "b"]).loc[other.index], other)
    assert one["count"].unstack("a").index.tolist() == ["x", "y", "z", "rest"]
    assert one.loc[("x", 7), "count"] == pytest.approx(15_800, rel=0.1)  # half of the rows, as they were made
    assert one.loc[("x", 7), "count"] == result.model.project(("a", "b"))[7, 0]


def test_error_bars_shrink_with_more_budget() -> None:
    frame = private_frame()
    small, large = (
        ppsyn.synthesize(frame, SCHEMA, rho=rho, rounds=4, progress=False).marginal(["b"])["standard_error"].mean()
        for rho in (0.001, 0.1)
    )
    assert small > 3 * large


def test_a_marginal_of_an_unknown_attribute_is_a_clear_error(result: ppsyn.Synthesis) -> None:
    with pytest.raises(ConfigError, match="'zip'"):
        result.marginal(["zip"])
    with pytest.raises(ConfigError, match="distinct"):
        result.marginal(["a", "a"])


def test_mbi_users_get_a_field_and_measurements_and_can_come_back(result: ppsyn.Synthesis) -> None:
    field, measurements = result.to_mbi()
    assert isinstance(field, exchange.mbi.MarkovRandomField)
    assert all(isinstance(measurement, exchange.mbi.LinearMeasurement) for measurement in measurements)
    theirs = np.asarray(field.project(("a", "b")).datavector(flatten=False))
    assert np.allclose(theirs, result.model.project(("a", "b")))
    again = result.with_mbi(field)
    assert np.allclose(again.model.project(("a", "c")), result.model.project(("a", "c")))
    back = exchange.measurements_from_mbi(result.domain, measurements)
    refitted = fit(back, uniform_model(Compression(result.domain)), Effort(300, 1e-6)).model
    assert abs(refitted.total - result.model.total) < 1e-3 * result.model.total  # folding restates some answers


# A table that no tree under its cap holds


@pytest.fixture(scope="module")
def ring() -> ppsyn.Synthesis:
    return ppsyn.synthesize(knots.ring(), knots.SCHEMA, **knots.BUDGET, **knots.SETTINGS, seed=3, progress=False)


def test_what_the_tree_has_no_room_for_is_in_the_rows(ring: ppsyn.Synthesis) -> None:
    assert set(ring.model.off_tree) & set(knots.RING)
    assert ring.model.size_mb <= ring.config.max_model_size_mb
    assert min(knots.tied(ring.table).values()) > 0.92
    assert min(knots.tied(replace(ring, model=ring.model.tree_only).table).values()) < 0.6


def test_it_is_in_the_rows_however_many_there_are(ring: ppsyn.Synthesis) -> None:
    many = ring.generate(BLOCK_ROWS + 5_000)
    assert min(knots.tied(many.iloc[:BLOCK_ROWS]).values()) > 0.92
    assert min(knots.tied(many.iloc[BLOCK_ROWS:]).values()) > 0.92


def test_it_has_error_bars_and_comes_back_from_files(ring: ppsyn.Synthesis, tmp_path: Path) -> None:
    pair = next(iter(ring.model.off_tree))
    marginal = ring.marginal(pair)
    assert marginal["count"].sum() == pytest.approx(ring.model.total)
    assert (marginal["standard_error"] > 0).any()
    ppsyn.save(ring, tmp_path / "ring")
    again = ppsyn.load(tmp_path / "ring")
    pd.testing.assert_frame_equal(again.generate(), ring.table)
    pd.testing.assert_frame_equal(again.marginal(pair), marginal)


def test_mbi_gets_the_tree_and_all_that_was_measured(ring: ppsyn.Synthesis) -> None:
    pair = next(iter(ring.model.off_tree))
    field, measurements = ring.to_mbi()
    assert pair in {tuple(m.clique) for m in measurements}
    assert pair not in {tuple(clique) for clique in field.potentials.cliques}
