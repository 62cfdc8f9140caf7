"""A published folder tells nothing but the answers: two of neighbouring tables, with the same answers, are the same."""

import json

import pytest

from ppsyn.data.snapshot import Shelf, open_snapshot
from ppsyn.releases.layout import LEDGER_JSON, MANIFEST, REPORT, VALIDATION
from ppsyn.runs.record import private_folder
from ppsyn.runs.run import Run
from ppsyn.selftest import pipeline
from ppsyn.selftest.attacks import case_of, compare_folders
from ppsyn.selftest.folder import differences, features
from ppsyn.selftest.pipeline import Stage


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    released = Stage(case_of("ppsyn"), tmp_path_factory.mktemp("stage")).release(1, has_canary=True, is_published=True)
    return dict(released.folder)


@pytest.mark.parametrize("name", ["independent", "ppsyn", "persons", "resumed"])
def test_the_same_answers_of_neighbouring_tables_make_the_same_folder(name: str) -> None:
    assert compare_folders(name, 3) == []


def _rows_of(run: Run) -> int:
    snapshot = open_snapshot(Shelf(run.private, private_folder(run.ref.run)), run.record.table)
    return int(snapshot.count([("x",)])[0].sum())


def _spaces(run: Run) -> None:
    key = f"staging/{run.ref.run}/{run.token}/{VALIDATION}"
    run.releases.put(key, run.releases.get(key) + b" " * _rows_of(run))


def test_a_file_whose_length_tells_how_many_rows_there_are_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = pipeline.stage_records

    def planted(run: Run) -> None:
        _spaces(run)
        original(run)

    monkeypatch.setattr(pipeline, "stage_records", planted)
    assert VALIDATION in compare_folders("independent", 3)


@pytest.mark.parametrize(
    "name", [MANIFEST, LEDGER_JSON, REPORT, "model.npz", "synthetic.parquet", "measurements.parquet"]
)
def test_one_more_byte_is_a_difference(folder: dict[str, bytes], name: str) -> None:
    assert differences(folder, folder) == []
    assert name in differences(folder, folder | {name: folder[name] + b"\n"})


def test_a_file_more_is_a_difference(folder: dict[str, bytes]) -> None:
    assert differences(folder, folder | {"rows.txt": b"41"}) == ["rows.txt"]


def test_another_number_in_the_ledger_or_the_manifest_is_a_difference(folder: dict[str, bytes]) -> None:
    manifest = json.loads(folder[MANIFEST])
    changed = json.dumps(manifest | {"rows": manifest["rows"] + 1}, indent=2).encode() + b"\n"
    assert MANIFEST in differences(folder, folder | {MANIFEST: changed})
    other = folder[LEDGER_JSON].replace(b'"step": 0', b'"step": 7')
    assert LEDGER_JSON in differences(folder, folder | {LEDGER_JSON: other})


def test_the_adversary_sees_every_file(folder: dict[str, bytes]) -> None:
    found = features(folder)
    assert {name.split(" ")[0] for name in found} == set(folder)
    assert found[f"{REPORT} size"] == len(folder[REPORT])
    assert found[f"{MANIFEST} .guarantee.rho=1/2"] == 1
    assert found["synthetic.parquet rows"] == json.loads(folder[MANIFEST])["rows"]
