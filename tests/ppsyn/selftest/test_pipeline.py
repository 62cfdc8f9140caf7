"""What releases share that are made one after another."""

from pathlib import Path

import pytest

from ppsyn.errors import PPSynError
from ppsyn.selftest.attacks import case_of
from ppsyn.selftest.pipeline import Stage


def test_the_table_is_encoded_once_for_each_side_and_anew_for_what_is_published(tmp_path: Path) -> None:
    stage = Stage(case_of("resumed"), tmp_path)
    stage.release(1, has_canary=False, is_published=False)
    stage.release(2, has_canary=True, is_published=False)
    (tmp_path / "table.parquet").unlink()
    assert stage.release(3, has_canary=True, is_published=False).transcript
    with pytest.raises(PPSynError):
        stage.release(4, has_canary=True, is_published=True)
    assert stage.release(5, has_canary=False, is_published=True).folder


def test_the_other_run_of_an_account_answers_and_is_no_part_of_the_transcript(tmp_path: Path) -> None:
    alone = Stage(case_of("ppsyn"), tmp_path).release(1, has_canary=True, is_published=False)
    beside = Stage(case_of("overlapping"), tmp_path).release(1, has_canary=True, is_published=False)
    assert sum(request.rho for request, _ in beside.transcript) == sum(request.rho for request, _ in alone.transcript)
